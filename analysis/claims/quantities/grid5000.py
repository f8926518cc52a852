"""The quantities that the Grid'5000 experiment's claims are about: maxima, buffers, the bridge, and repeats."""

import numpy as np
import xarray as xr
from scipy import stats

from analysis import published
from analysis.claims.sample import Estimate, Found, Printed, origin, sample
from analysis.experiments import Studies
from analysis.experiments.long_repeats import Series
from analysis.statistics.repeats import variation_interval

PATH = "asymmetric"  # the source's own path, a tenth of its rates
UNTUNED = 65536  # B: what a window without scaling (RFC 7323) can be at most, and kernels of that time began with
FEW, MANY = 3, 7  # targets: where the source's stopped growing, and the most of the campaign's
MUCH_LOWER = (
    2 / 3
)  # of the most that the same transfer reached: the source's two maxima are in such a ratio


def ratio_of_maxima(studies: Studies) -> list[Found]:
    """The maximum from Lyon to Rennes over that from Rennes to Lyon."""
    rates = _maxima()
    return [Printed({"4.7 over 3.2 Gbit/s": rates["lyon_to_rennes"] / rates["rennes_to_lyon"]})]


def emulation_over_path(studies: Studies) -> list[Found]:
    """What node to node reaches with Ethernet over MX over the most between the sites."""
    rates = _maxima()
    return [Printed({"8.9 over 4.7 Gbit/s": rates["node_to_node"] / rates["lyon_to_rennes"]})]


def path_over_bridge(studies: Studies) -> list[Found]:
    """The maximum from Rennes to Lyon over what the bridge was saturated at."""
    saturation = published.grid5000()["bridge"]["saturation"]["value"]
    return [Printed({"3.2 over 3 Gbit/s": _maxima()["rennes_to_lyon"] / saturation})]


def sender_over_bridge(studies: Studies) -> list[Found]:
    """What one node can send over what the bridge was saturated at."""
    saturation = published.grid5000()["bridge"]["saturation"]["value"]
    return [Printed({"8.9 over 3 Gbit/s": _maxima()["node_to_node"] / saturation})]


def covered_round_trip(studies: Studies) -> list[Found]:
    """The longest round trip [s] that the buffers fill at the backbone's rate."""
    facts = published.grid5000()
    buffers, rate = facts["tcp"]["buffers"]["value"], facts["backbone"]["rate"]["value"]
    return [
        Printed({"64 MiB at 10 Gbit/s": 8 * buffers / rate, "64 MB at 10 Gbit/s": 8 * 64e6 / rate})
    ]


def untuned_over_tuned(studies: Studies) -> list[Found]:
    """Goodput with a small buffer over that with the largest one, with the kernel's default congestion control.

    In each block the geometric mean of both directions, which are equally wide neither here nor there.
    """
    study = studies.long_path
    if (
        study is None
        or PATH not in study.points.path.values
        or UNTUNED not in study.points.window_bytes.values
    ):
        return []
    goodput = np.log(study.points.goodput.sel(path=PATH, congestion_control=study.control))
    gain = goodput.sel(window_bytes=UNTUNED) - goodput.sel(window_bytes=study.largest_window)
    values = np.exp(gain.mean("direction", skipna=False))
    text = "goodput with 64 KiB over that with the largest buffer, both directions"
    return [sample(study.dataset, values, text)]


def growth_beyond_three(studies: Studies) -> list[Found]:
    """All flows' goodput together to the most targets over that to three."""
    study = studies.fan_out
    fans = [fan for fan in study.fans if fan.direction == "forward"] if study else []
    if not fans or not {FEW, MANY} <= set(fans[0].goodput.receivers.values.tolist()):
        return []
    goodput = fans[0].goodput
    text = f"goodput of all flows to {MANY} targets over that to {FEW}, in the same block"
    return [sample(study.dataset, goodput.sel(receivers=MANY) / goodput.sel(receivers=FEW), text)]


def variation_from_rennes(studies: Studies) -> list[Found]:
    """Coefficient of variation of the same transfer's goodput from Rennes to Lyon."""
    return _variation(studies, "forward")


def variation_from_lyon(studies: Studies) -> list[Found]:
    """As `variation_from_rennes`, from Lyon to Rennes."""
    return _variation(studies, "reverse")


def much_slower(studies: Studies) -> list[Found]:
    """The share of all transfers that are much slower than the fastest of their kind, with its exact interval."""
    repeats = studies.long_path.repeats if studies.long_path else None
    if repeats is None:
        return []
    goodputs = [series.judged.sample for series in repeats.series]
    slow = sum(
        int((np.array(goodput.values) < MUCH_LOWER * goodput.maximum).sum()) for goodput in goodputs
    )
    # Clopper and Pearson, Biometrika 26, 1934, 404-413
    test = stats.binomtest(slow, sum(goodput.n for goodput in goodputs))
    inner, outer = (tuple(test.proportion_ci(confidence)) for confidence in (0.90, 0.95))
    text = "share of transfers below two thirds of the fastest of their kind"
    return [
        Estimate(
            estimate=slow / test.n,
            interval_90=inner,
            interval_95=outer,
            kind="Clopper-Pearson",
            n=test.n,
            of=text,
            n_of="transfer",
            **origin(repeats.dataset),
        )
    ]


def _maxima() -> dict[str, float]:
    return {name: row["value"] for name, row in published.grid5000()["maximum"].items()}


def _variation(studies: Studies, direction: str) -> list[Found]:
    repeats = studies.long_path.repeats if studies.long_path else None
    if repeats is None:
        return []
    asked = (PATH, studies.long_path.control, direction)
    found = [
        series
        for series in repeats.series
        if (series.path, series.congestion_control, series.direction) == asked
    ]
    return [_estimate(repeats.dataset, series) for series in found]


def _estimate(dataset: xr.Dataset, series: Series) -> Estimate:
    judged = series.judged.sample
    inner, outer = (variation_interval(judged.variation, judged.n, level) for level in (0.90, 0.95))
    return Estimate(
        estimate=judged.variation,
        interval_90=inner,
        interval_95=outer,
        kind="modified McKay",
        n=judged.n,
        of=f"coefficient of variation of goodput, {series.congestion_control}",
        n_of="transfer",
        **origin(dataset),
    )
