"""The contrasts of a campaign: which network is judged against which, from its points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from analysis.dataset.derive import at_only_level
from analysis.statistics.design import Design, PlannedFall
from analysis.statistics.intervals import BLOCK, are_units, unit_in_words
from analysis.statistics.judgement import (
    REFUSED,
    Control,
    Judgement,
    SequenceVerdict,
    in_sequence,
    judge,
    judge_control,
    within_campaign,
)
from analysis.wording import kinds
from runners.records.plan import WITHOUT_MESSAGES
from runners.records.record import FalloffError


@dataclass(frozen=True)
class Contrast:
    """A statement with the verdict on its fall, the negative control and the ratios.

    `primary` are the statements that the campaign was planned for, in their order; the verdicts of
    the others are corrected for each other. `control` is None if the campaign has no point without
    a network. `differences` is D over (block). All of these use only the blocks that were judged,
    those of the last look.
    """

    statement: PlannedFall
    primary: bool
    verdict: Judgement
    control: Control | None
    differences: xr.DataArray


def contrasts(points: xr.Dataset) -> tuple[Contrast, ...]:
    """The primary statements in their order, then the secondary ones. If the negative control
    failed, all are refused.

    Raises FalloffError if one of their networks was not run, or none was planned.
    """
    plan = points.falloff.design
    statements = (*plan.primary, *plan.secondary)
    _check_levels(points, statements)
    outcome, primary, level = _outcome(points, plan), len(plan.primary), plan.one_sided
    judged, evidence = points.isel(block=outcome.judged), points.evidence.item()
    falls = [_fall(judged, statement) for statement in statements]
    of_blocks = block_sessions(judged)
    others = within_campaign(
        [judge(fall, plan.margin, evidence, level, of_blocks) for fall in falls[primary:]], level
    )
    refusals = [verdict.reason for verdict in outcome.judgements if verdict.answer == REFUSED]
    if refusals:
        others = tuple(replace(verdict, answer=REFUSED, reason=refusals[0]) for verdict in others)
    ratios = _controls(judged, plan, statements)
    sessions = sessions_of(points, evidence, judged.block.values.tolist())
    return tuple(
        Contrast(
            statement,
            place < primary,
            replace(in_sessions(verdict, sessions), evidence=_compared_kinds(evidence, statement)),
            None if ratios is None else judge_control(ratios[place], plan.margin, level, of_blocks),
            falls[place],
        )
        for place, (statement, verdict) in enumerate(
            zip(statements, (*outcome.judgements, *others))
        )
    )


def in_sessions(verdict: Judgement, sessions: int | None) -> Judgement:
    """A judgement with the number of its blocks' sessions, unless these are its units."""
    return replace(verdict, sessions=sessions) if verdict.n_of == BLOCK else verdict


def block_sessions(points: xr.Dataset | xr.DataArray) -> np.ndarray | None:
    """The session of each block of points, shape (blocks,); None if not recorded."""
    return points.session.values if "session" in points.coords else None


def _compared_kinds(evidence: str, statement: PlannedFall) -> str:
    """What a program reaches without messages is simulated (see `log_ratios`)."""
    return kinds(evidence, "simulated") if statement.against == WITHOUT_MESSAGES else evidence


def sessions_of(dataset: xr.Dataset, evidence: str, blocks: Sequence[int]) -> int | None:
    """The number of sessions in which these blocks ran; None if it is not recorded for one of them,
    or makes no difference."""
    by_block = dataset.falloff.block_sessions
    if evidence == "simulated" or not set(blocks) <= by_block.keys():
        return None
    return _number_of({block: by_block[block] for block in blocks})


def sessions_by_block(dataset: xr.Dataset) -> dict[int, list[int]]:
    """The sessions of each block; empty if not recorded, or if it makes no difference."""
    return {} if "simulated" in dataset.evidence.values else dataset.falloff.block_sessions


def basis(by_block: Mapping[int, Sequence[int]], n: int) -> tuple[int, str, int | None]:
    """What an interval over n blocks rests on, or over the sessions of all blocks: the number of
    its units, what they are, and if they are blocks, the number of their sessions."""
    last = [numbers[-1] for numbers in by_block.values()]
    if are_units(last) and n in (len(by_block), len(set(last))):
        return len(set(last)), unit_in_words(last), None
    return n, BLOCK, session_count(by_block, n)


def session_count(by_block: Mapping[int, Sequence[int]], blocks: int) -> int | None:
    """Number of sessions in which `blocks` blocks ran; None if it depends on which."""
    every = _number_of(by_block)
    return every if every == 1 or every and blocks == len(by_block) else None


def _number_of(by_block: Mapping[int, Sequence[int]]) -> int:
    return len({session for sessions in by_block.values() for session in sessions})


def _outcome(points: xr.Dataset, plan: Design) -> SequenceVerdict:
    """The verdicts on the campaign's primary statements at its last look, whatever factor they
    compare."""
    falls = primary_differences(points).transpose("statement", "block").values
    controls = _controls(points, plan, plan.primary)
    sessions = block_sessions(points)
    return in_sequence(falls, controls, plan, points.evidence.item(), sessions)


def is_over(points: xr.Dataset) -> bool:
    """Whether further blocks would change no answer: all primary statements are decided, or the
    last look is over."""
    plan = points.falloff.design
    return bool(plan.looks) and _outcome(points, plan).is_over


def log_ratios(
    points: xr.Dataset, level: Any, reference: Any, along: str = "interconnect"
) -> xr.DataArray:
    """log(rate_level / rate_reference) within each block, for two levels of the factor `along`.

    The reference may be WITHOUT_MESSAGES: the share that the program reaches, according to its
    design, if messages take no time. The dims are those of `points.rate` without `along`; NaN where
    either rate is missing.
    """
    if reference == WITHOUT_MESSAGES:
        reached = points.falloff.design.without_messages or {}
        of_nodes = np.vectorize(lambda nodes: reached.get(str(int(nodes)), np.nan), otypes=[float])
        reachable = xr.apply_ufunc(of_nodes, points.nodes)
        return np.log(points.share.sel({along: level}, drop=True) / reachable).rename("log_ratio")
    log_rate = np.log(points.rate)
    ratio = log_rate.sel({along: level}, drop=True) - log_rate.sel({along: reference}, drop=True)
    return ratio.rename("log_ratio")


def differences(log_ratio: xr.DataArray, start: int, end: int | None = None) -> xr.DataArray:
    """D, dims (block): the log-ratio at `end` nodes (None: the most) minus the one at `start`; NaN
    if these are the same nodes, which show no fall."""
    last = int(log_ratio.nodes.max()) if end is None else end
    change = log_ratio.sel(nodes=last, drop=True) - log_ratio.sel(nodes=start, drop=True)
    return change.where(last != start)


def primary_differences(points: xr.Dataset) -> xr.DataArray:
    """D of every primary statement, dims (statement, block), whatever factor the design compares.

    Raises FalloffError when the design judges no fall over nodes.
    """
    plan = points.falloff.design
    if not plan.judges_falls:
        raise FalloffError(f"Campaign {points.attrs['campaign']} judges no fall over nodes.")
    alone = _of_one_level(points, plan)
    return xr.concat(
        [_fall(alone, statement, plan.compared) for statement in plan.primary], "statement"
    )


def _fall(points: xr.Dataset, statement: PlannedFall, along: str = "interconnect") -> xr.DataArray:
    ratio = log_ratios(points, statement.of, statement.against, along)
    return differences(ratio, statement.start, statement.end)


def _controls(
    points: xr.Dataset, plan: Design, statements: Sequence[PlannedFall]
) -> np.ndarray | None:
    """The log-ratios on points without a network, over (statement, block); None if there is no such
    point."""
    if plan.negative_control is None:
        return None
    alone = _of_one_level(points, plan).sel(nodes=plan.negative_control)
    compared = [(statement.of, statement.against) for statement in statements]
    return np.array([log_ratios(alone, *levels, plan.compared) for levels in compared])


def _of_one_level(points: xr.Dataset, plan: Design) -> xr.Dataset:
    """The points at the only level of every factor that is neither compared nor the number of
    nodes."""
    return at_only_level(points, *(set(points.rate.dims) - {plan.compared, "nodes", "block"}))


def _check_levels(points: xr.Dataset, statements: Sequence[PlannedFall]) -> None:
    wanted = {level for statement in statements for level in (statement.of, statement.against)}
    if absent := ", ".join(sorted(wanted - {WITHOUT_MESSAGES, *points.interconnect.values})):
        what = (
            f"Campaign {points.attrs['campaign']} compares networks of which {absent} was not run"
        )
        raise FalloffError(f"{what}: run it on a testbed that has them all.")
