"""Everything that is derived from the paper's own cases, simulated on a model of its cluster."""

from dataclasses import dataclass

import xarray as xr

from analysis import published
from analysis.derive import at_only_level, points
from analysis.statistics import design as designs
from analysis.studies import contention as contended
from analysis.studies import sensitivity as varied
from analysis.studies.contention import Contention
from analysis.studies.efficiency import efficiency, shape, testbed
from analysis.studies.sensitivity import Sensitivity
from runners.record import FalloffError

CALIBRATED = "dgemm_flop_s"  # the one rate that is set so that one case has the printed efficiency


@dataclass(frozen=True)
class Paper:
    """The campaign's dataset and all that follows from it.

    `efficiency` is the share of Rpeak [1] over (interconnect, nodes), `shape` what `efficiency.shape` says of
    it. `network` is compared with `reference`: `ratios` [1] are their rates' over (nodes), and `relative_fall` [1] is
    the fall of that from
    the least to the most nodes, as the verdicts on other campaigns define it. `line` is the efficiency that
    the paper prints; one rate of the model is calibrated to it in one case, `calibrated`, whose efficiency
    this is. `today_run` is a shorter run of the campaign, made anew. What there was no data for is None.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    network: str
    reference: str
    efficiency: xr.DataArray
    shape: xr.Dataset
    ratios: xr.DataArray
    relative_fall: xr.DataArray
    margin: float
    line: float
    calibrated: xr.DataArray
    sensitivity: Sensitivity | None
    contention: Contention | None
    today_run: xr.Dataset | None

    @property
    def today_ratios(self) -> xr.DataArray:
        """As `ratios`, of the cases that were simulated anew."""
        return _ratio(efficiency(at_only_level(points(self.today_run), "block")), self.network, self.reference)


def analyse(
    paper: xr.Dataset,
    sensitivity: xr.Dataset | None = None,
    contention: xr.Dataset | None = None,
    today: xr.Dataset | None = None,
) -> Paper:
    """Derive efficiencies, their sensitivity to the model's rates, and the contention that would change them.

    Raises FalloffError when a dataset holds no HPL trial, has several blocks, or was simulated with
    other rates than the first.
    """
    for other in (sensitivity, contention):
        if other is not None:
            _check_model(paper, other)
    derived = points(paper)
    network, reference = designs.read(paper).pair
    cases = efficiency(at_only_level(derived, "block"))
    ratio = _ratio(cases, network, reference)
    return Paper(
        dataset=paper,
        points=derived,
        network=network,
        reference=reference,
        efficiency=cases,
        shape=shape(cases),
        ratios=ratio,
        margin=designs.read(paper).margin,
        relative_fall=1 - ratio.isel(nodes=-1, drop=True) / ratio.isel(nodes=0, drop=True),
        line=published.smith()["efficiency"]["line"]["value"] / 100,
        calibrated=cases.sel(interconnect=reference).isel(nodes=0),
        sensitivity=None if sensitivity is None else varied.analyse(sensitivity),
        contention=None if contention is None else contended.analyse(contention),
        today_run=today,
    )


def _ratio(cases: xr.DataArray, network: str, reference: str) -> xr.DataArray:
    return cases.sel(interconnect=network, drop=True) / cases.sel(interconnect=reference, drop=True)


def _check_model(dataset: xr.Dataset, other: xr.Dataset) -> None:
    if _model(dataset) != _model(other):
        raise FalloffError(
            f"Campaigns {dataset.attrs['campaign']} and {other.attrs['campaign']} were simulated with "
            f"different rates of testbed {testbed(other)['name']}; run the older one again."
        )


def _model(dataset: xr.Dataset) -> dict:
    """The numbers of a dataset's rates and networks, without the words beside them."""
    described = testbed(dataset)
    tables = {"rates": described["rates"], **described["network"], "": {"rpeak": described["rpeak"]}}
    return {
        (table, name): [entry[key] for key in ("value", "low", "high") if key in entry]
        for table, entries in tables.items()
        for name, entry in entries.items()
    }
