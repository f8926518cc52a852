"""The primary statements of a campaign: tested in a fixed order, after planned looks, behind a negative control.

A statement counts only if the one before it was decided as expected: with that order, no correction for their number
is needed. A campaign is judged only after so many valid blocks as its looks say, each look at the same nominal level;
its answer is that of the last look. `calibration` measures what the looks leave of that level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.statistics.judgement import (
    REFUSED,
    UNDECIDED,
    Control,
    Judgement,
    judge,
    judge_control,
)


@dataclass(frozen=True)
class Outcome:
    """What a fixed sequence says at its last look.

    `alone` holds each statement judged by itself, which decides when the campaign ends; `judgements` the same with
    those that do not count `undecided` or `refused`; `controls` each pair's negative control, None without one.
    `valid` counts the blocks in which every statement has a value; `judged` is a mask over the blocks: those that
    were looked at. `is_over` says whether further blocks would change nothing: all are decided, or the last look
    is over.
    """

    alone: tuple[Judgement, ...]
    judgements: tuple[Judgement, ...]
    controls: tuple[Control | None, ...]
    valid: int
    judged: np.ndarray
    is_over: bool


def last_look(valid: int, looks: Sequence[int]) -> int:
    """How many blocks are judged when so many are valid: 0 before the first look; all where no look was planned."""
    return max((look for look in looks if look <= valid), default=0) if looks else valid


def in_sequence(
    differences: np.ndarray,
    expected: Sequence[str],
    controls: Sequence[np.ndarray | None],
    margin: float,
    evidence: str,
    looks: Sequence[int] = (),
    one_sided: float = 0.05,
) -> Outcome:
    """Judge D, shape (statements, blocks), in order; `expected` holds each one's answer ("": any decision will do).

    `controls` holds for each statement the log-ratios where no network is used, shape (blocks,), or None. The first
    valid blocks are judged, as many as the last look that was reached says.
    """
    differences = np.asarray(differences, float).reshape(len(expected), -1)
    whole = np.isfinite(differences).all(axis=0)
    # Without planned looks a statement keeps the blocks that another one lacks.
    valid = int(whole.sum())
    judged = np.cumsum(whole) * whole
    judged = (
        (judged > 0) & (judged <= last_look(valid, looks)) if looks else np.ones(len(whole), bool)
    )
    alone = tuple(judge(d[judged], margin, evidence, one_sided) for d in differences)
    gates = tuple(
        None if c is None else judge_control(np.asarray(c)[judged], margin, one_sided)
        for c in controls
    )
    if looks and valid < looks[0]:
        reason = f"It is judged after {looks[0]} valid blocks; there are {valid}."
        alone = tuple(replace(one, answer=UNDECIDED, reason=reason, blocks=valid) for one in alone)
    return Outcome(
        alone=alone,
        judgements=_counted(alone, expected, gates),
        controls=gates,
        valid=valid,
        judged=judged,
        is_over=bool(looks) and valid >= looks[0] and (valid >= looks[-1] or _ends(alone, gates)),
    )


def _ends(alone: Sequence[Judgement], gates: Sequence[Control | None]) -> bool:
    refused = any(gate and gate.kind == "violated" for gate in gates)
    return not refused and all(one.decided for one in alone)


def _counted(
    alone: Sequence[Judgement], expected: Sequence[str], gates: Sequence[Control | None]
) -> tuple[Judgement, ...]:
    failed = [gate for gate in gates if gate is not None and gate.kind == "violated"]
    if failed:
        off = 100 * abs(failed[0].ratio - 1)
        reason = f"refused: the negative control failed: the rates differ by {off:.1f} % where no network is used."
        return tuple(replace(one, answer=REFUSED, reason=reason) for one in alone)
    counted, goes_on = [], True
    for one, wanted in zip(alone, expected):
        if not goes_on:
            reason = "It does not count: the statement before it was not decided as expected."
            one = replace(one, answer=UNDECIDED, reason=reason)
        counted.append(one)
        goes_on = goes_on and (one.answer == wanted if wanted else one.decided)
    return tuple(counted)
