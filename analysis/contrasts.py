"""The contrasts of a campaign: which network is judged against which, from its points."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from analysis.derive import at_only_level
from analysis.statistics.intervals import ratios
from analysis.statistics import design as designs
from analysis.statistics.design import Design, Statement
from analysis.statistics.judgement import REFUSED, Control, Judgement, judge, judge_control, within_campaign
from analysis.statistics.judgement import Outcome, in_sequence
from runners.record import FalloffError


@dataclass(frozen=True)
class Contrast:
    """One network against a reference: the verdict on its fall, the negative control and the ratios.

    `primary` are the statements that the campaign was planned for, in their order; the verdicts of the others are
    corrected for each other. `control` is None when the campaign has no point without a network. `ratios` is over
    (nodes): `ratio` (geometric mean), `low`, `high` (95 %), `blocks`; `differences` is D over (block). All rest on the
    blocks that were judged, those of the last look.
    """

    network: str
    reference: str
    start: int
    end: int
    expected: str
    primary: bool
    verdict: Judgement
    control: Control | None
    ratios: xr.Dataset
    differences: xr.DataArray

    @property
    def what(self) -> str:
        """The place in words."""
        return f"{self.network} / {self.reference} from {self.start} to {self.end} nodes"

    @property
    def place(self) -> tuple[str, str, int, int]:
        """What is compared, from how many nodes to how many."""
        return self.network, self.reference, self.start, self.end


def contrasts(points: xr.Dataset) -> tuple[Contrast, ...]:
    """The primary statements in their order, then the secondary ones; where the negative control failed, all refused.

    Raises FalloffError when a network of theirs was not run.
    """
    design = designs.read(points)
    _check_levels(points, design)
    outcome = outcome_of(points)
    judged = points.isel(block=outcome.judged)
    evidence = points.evidence.item()
    others = within_campaign(
        [judge(_fall(judged, it), design.margin, evidence, design.one_sided) for it in design.secondary],
        design.one_sided,
    )
    refusal = next((it for it in outcome.judgements if it.answer == REFUSED), None)
    if refusal is not None:
        others = tuple(replace(it, answer=REFUSED, reason=refusal.reason) for it in others)
    primary = zip(design.primary, outcome.judgements, outcome.controls)
    gates = [
        None if values is None else judge_control(values, design.margin, design.one_sided)
        for values in _controls(judged, design, design.secondary)
    ]
    secondary = zip(design.secondary, others, gates)
    return (
        *(_contrast(judged, *one, primary=True) for one in primary),
        *(_contrast(judged, *one, primary=False) for one in secondary),
    )


def outcome_of(points: xr.Dataset) -> Outcome:
    """What the campaign's primary statements say at its last look, whatever factor they compare."""
    design = designs.read(points)
    falls = primary_differences(points).transpose("statement", "block") if design.primary else np.empty((0, 0))
    return in_sequence(
        np.asarray(falls),
        [it.expected for it in design.primary],
        _controls(points, design, design.primary),
        design.margin,
        points.evidence.item(),
        design.looks,
        design.one_sided,
    )


def is_over(points: xr.Dataset) -> bool:
    """Whether further blocks would change no answer: all primary statements are decided, or the last look is over."""
    return bool(designs.read(points).looks) and outcome_of(points).is_over


def log_ratios(points: xr.Dataset, level, reference, along: str = "interconnect") -> xr.DataArray:
    """log(rate_level / rate_reference) within each block, for two levels of the factor `along`.

    The dims are those of `points.rate` but `along`; NaN where one of the two is missing.
    """
    log_rate = np.log(points.rate)
    ratio = log_rate.sel({along: level}, drop=True) - log_rate.sel({along: reference}, drop=True)
    return ratio.rename("log_ratio").assign_attrs(units="1", long_name=f"log-ratio {level} / {reference}")


def differences(log_ratio: xr.DataArray, start: int, end: int | None = None) -> xr.DataArray:
    """D, dims (block): the log-ratio at `end` nodes (None: the most) minus the one at `start`."""
    last = int(log_ratio.nodes.max()) if end is None else end
    return log_ratio.sel(nodes=last, drop=True) - log_ratio.sel(nodes=start, drop=True)


def primary_differences(points: xr.Dataset) -> xr.DataArray:
    """D of every primary statement, dims (statement, block), whatever factor the design compares.

    Raises FalloffError when the design judges no fall over nodes.
    """
    design = designs.read(points)
    if not design.judges_falls:
        raise FalloffError(f"Campaign {points.attrs['campaign']} judges no fall over nodes.")
    alone = _of_one_level(points, design)
    return xr.concat([_fall(alone, it, design.compared) for it in design.primary], "statement")


def _fall(points: xr.Dataset, statement: Statement, along: str = "interconnect") -> xr.DataArray:
    ratio = log_ratios(points, statement.of, statement.against, along)
    return differences(ratio, statement.start, statement.end)


def _controls(points: xr.Dataset, design: Design, statements: tuple[Statement, ...]) -> list[np.ndarray | None]:
    """Of each statement the log-ratios where no network is used."""
    if design.negative_control is None:
        return [None] * len(statements)
    here = _of_one_level(points, design).sel(nodes=design.negative_control)
    return [log_ratios(here, it.of, it.against, design.compared).values for it in statements]


def _of_one_level(points: xr.Dataset, design: Design) -> xr.Dataset:
    """The points at the one level of every factor that is neither compared nor the number of nodes."""
    return at_only_level(points, *(set(points.rate.dims) - {design.compared, "nodes", "block"}))


def _check_levels(points: xr.Dataset, design: Design) -> None:
    wanted = {level for it in (*design.primary, *design.secondary) for level in (it.of, it.against)}
    absent = wanted - set(points.interconnect.values)
    if absent:
        raise FalloffError(
            f"Campaign {points.attrs['campaign']} compares networks of which {', '.join(sorted(absent))} was not run: "
            "run it on a testbed that has them all."
        )


def _contrast(points, statement: Statement, verdict: Judgement, control: Control | None, primary: bool) -> Contrast:
    return Contrast(
        network=statement.of,
        reference=statement.against,
        start=statement.start,
        end=statement.end,
        expected=statement.expected,
        primary=primary,
        verdict=verdict,
        control=control,
        ratios=ratios(log_ratios(points, statement.of, statement.against)),
        differences=_fall(points, statement),
    )
