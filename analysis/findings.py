"""What an experiment found, as data for `summary.json`: each statement with its answer, estimate
and interval."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.quoting import as_data, quoted
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    RISES,
    SIZE_OPEN,
    UNDECIDED,
    Control,
    Judgement,
)
from analysis.statistics.reproduction import CONFIDENCE, Reproduction
from analysis.wording import between, counted, percent, percent_range

VERSION = 1
NO_INTERVAL = (None, None)
T_INTERVAL = "95 % t interval over the blocks"
PERCENTILE = "95 % percentile interval over draws"
NOTHING = 0.0005  # a smaller loss counts as none
# The first words of a trial's reason, and what they mean.
REASONS = {"pace is host-bound": "the machine could not hold a node at its set speed"}
FAILED = "failed"  # no trial of today's run gave a reading
CONTROL_ANSWERS = {"holds": "the same", "violated": "different", "undecided": "undecided"}


@dataclass(frozen=True)
class Finding:
    """One statement and what it rests on; unknown fields are None or empty.

    `estimate` and `interval` are of `quantity` in `unit`; falls, gains and shares are fractions.
    `interval_kind` is its level and method, and `n` counts `n_of`. `primary` statements are those
    that a campaign was planned for. `campaign` and `digest` identify the trials. `today` says
    whether a shorter run of today reproduces the statement.
    """

    experiment: str
    statement: str
    answer: str
    quantity: str
    unit: str
    estimate: float | None
    interval: tuple[float, float] | None
    interval_kind: str
    n: int
    n_of: str
    evidence: str
    campaign: str
    digest: str
    primary: bool = False
    reason: str = ""
    today: dict | None = None


def text(findings: Iterable[dict]) -> str:
    """The text of `summary.json`, from findings as dictionaries."""
    found = {"version": VERSION, "findings": as_data(list(findings))}
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def origin(experiment: str, dataset: xr.Dataset) -> dict:
    """The source of the trials: the fields that all findings of a dataset share."""
    return {
        "experiment": experiment,
        "evidence": evidence_of(dataset),
        "campaign": dataset.attrs["campaign"],
        "digest": dataset.attrs["campaign_hash"],
    }


def evidence_of(dataset: xr.Dataset) -> str:
    """The kind of a dataset's evidence."""
    return dataset.evidence.values.ravel()[0].item()


def resting_on(dataset: xr.Dataset, n: int, interval: str = "", of: str = "block") -> str:
    """What a number rests on, in words: its interval if it has one, n and what n counts, and the
    kind of evidence."""
    return ", ".join(filter(None, (interval, counted(n, of), f"{evidence_of(dataset)} evidence")))


def interval_in_words(
    ends: Sequence[float] | None, decimals: int | None = None, level: float = 0.95, of: str = ""
) -> str:
    """An interval of this level with `decimals` decimals, in percent if None; empty if unknown
    (None, NaN)."""
    if ends is None or not np.isfinite(ends).all():
        return ""
    written = percent_range(ends) if decimals is None else between(ends, decimals)
    return " ".join(filter(None, (f"{100 * level:g} % interval", of, written)))


def judged_in_words(found: Judgement | Control, decimals: int | None = None, of: str = "") -> str:
    """The interval of a judgement, in the form of `interval_in_words`."""
    return interval_in_words(found.interval, decimals, found.confidence or 0, of)


def without_reading(dataset: xr.Dataset, noun: str = "trial") -> str:
    """How many trials of the design gave no reading, and why, in a sentence; empty if all gave
    one."""
    is_point = (dataset.role == "point").values
    reasons = Counter(dataset.reason.values[is_point & (dataset.status != "ok").values].tolist())
    if not reasons:
        return ""
    ((reason, _),) = reasons.most_common(1)
    told = next((words for start, words in REASONS.items() if reason.startswith(start)), "")
    most = ", most often" if len(reasons) > 1 else ""
    total = counted(int(is_point.sum()), noun)
    return f"{reasons.total()} of {total} gave no reading{most}: {told or quoted(reason)}."


def gave_nothing(dataset: xr.Dataset) -> bool:
    """Whether trials of the design were run but none gave a reading."""
    status = dataset.status.values[(dataset.role == "point").values]
    return bool(status.size) and not (status == "ok").any()


def of_fall(origin: dict, statement: str, found: Judgement, **further) -> Finding:
    """The finding of a judged fall."""
    about = {"answer": found.answer, "reason": found.reason, **further}
    return _judged(origin, statement, "fall", found.fall, found, **about)


def of_control(origin: dict, statement: str, found: Control, **further) -> Finding:
    """The finding of a ratio that is judged to be 1 or not."""
    answer = CONTROL_ANSWERS[found.kind]
    return _judged(origin, statement, "ratio", found.ratio, found, answer=answer, **further)


def _judged(origin: dict, statement: str, quantity: str, value, found, **further) -> Finding:
    estimate = value, *(found.interval or NO_INTERVAL)
    kind = f"{100 * (found.confidence or 0):g} % t interval over the blocks"
    return of_estimate(origin, statement, quantity, estimate, n=found.blocks, kind=kind, **further)


def of_estimate(
    origin: dict, statement: str, quantity: str, estimate, n: int, kind: str = T_INTERVAL, **further
) -> Finding:
    """The finding of an estimate (value, low, high), each None or NaN if unknown. It comes from `n`
    blocks, or from n of what `n_of` says; `kind` is the kind of its interval."""
    value, *ends = map(known, estimate)
    is_known = None not in ends
    return Finding(
        **origin,
        statement=statement,
        quantity=quantity,
        estimate=value,
        interval=tuple(ends) if is_known else None,
        interval_kind=kind if is_known else "",
        n=n,
        **{"unit": "1", "answer": "", "n_of": "block", **further},
    )


def at_place(means: xr.Dataset, of: str = "ratio") -> tuple[float, float, float]:
    """(mean, low, high) at a single place of means over blocks."""
    return tuple(float(means[name]) for name in (of, "low", "high"))


def change(fall: float) -> str:
    """A fall [1] in words, as a loss or a gain."""
    if abs(fall) < NOTHING:
        return "loses nothing"
    return f"loses {percent(fall)}" if fall > 0 else f"gains {percent(-fall)}"


def ratio_change(fall: float) -> str:
    """What a fall [1] does to the falling ratio, in words."""
    if abs(fall) < NOTHING:
        return "does not change"
    return f"falls by {percent(fall)}" if fall > 0 else f"rises by {percent(-fall)}"


def basis_in_words(judged: Judgement, whole: bool = True) -> str:
    """What a judgement rests on: its interval, and if `whole` also the blocks, the margin and the
    evidence."""
    parts = []
    if judged.interval:
        low, high = judged.interval
        # The interval of a gain has the gain's sign.
        ends = (-high, -low) if change(judged.fall).startswith("gains") else (low, high)
        of = "of the fall" if abs(judged.fall) < NOTHING else ""
        parts.append(interval_in_words(ends, None, judged.confidence, of))
    if whole:
        parts += [counted(judged.blocks, "block") + _of_sessions(judged)] if judged.interval else []
        parts += [f"margin {percent(judged.margin, 0)}", f"{judged.evidence} evidence"]
    return ", ".join(parts)


def _of_sessions(judged: Judgement) -> str:
    if judged.sessions is None:
        return ""
    return " of one session" if judged.sessions == 1 else f" of {judged.sessions} sessions"


def fall_in_words(judged: Judgement, name: str, against: str, span: str, whole: bool = True) -> str:
    """How the ratio of HPL's rates on two networks changes, in plain English (Markdown). An open
    answer has no numbers.

    `span` says from where to where; `whole` is the same as in `basis_in_words`.
    """
    what = "" if judged.fall is None else ratio_change(judged.fall)
    basis = basis_in_words(judged, whole)
    within = f" ({basis})" if basis else ""
    return {
        FALLS_OFF: f"**{name} falls off against {against}** {span}: the ratio of their rates {what}{within}.",
        FLAT: f"**{name} stays flat against {against}** {span}: their ratio {what}{within}.",
        RISES: f"**{name} gains on {against}** {span}: their ratio {what}{within}.",
        SIZE_OPEN: f"**{name} falls against {against}** {span}. Whether by more than the margin of "
        f"{percent(judged.margin, 0)} is open.",
    }.get(judged.answer, f"Whether {name} falls against {against} {span} is open. {judged.reason}")


def today_of(found: Reproduction | None, run: xr.Dataset | None) -> dict | None:
    """Whether a run of today reproduces a finding: the ratios of both (for falls, the remaining
    part), or that the run failed."""
    if run is not None and gave_nothing(run):
        return failed_today(run)
    if found is None or run is None:
        return None
    return {
        "answer": found.kind,
        "reason": found.reason,
        "judged_as": found.answers[1],
        "ratio": found.today,
        "reference_ratio": found.reference,
        "interval_of_their_ratio": found.interval,
        "interval_kind": f"{100 * CONFIDENCE:g} % t interval over the blocks",
        "n": found.blocks,
        **run_of_today(run),
    }


def run_of_today(run: xr.Dataset) -> dict:
    """The fields that every finding has about the run of today that it is compared with; `failed`
    is empty if no trial failed."""
    about = run.attrs
    return {
        "campaign": about["campaign"],
        "digest": about["campaign_hash"],
        "failed": without_reading(run),
    }


def failed_today(run: xr.Dataset) -> dict:
    """The fields of a finding whose run of today gave no result."""
    return {"answer": FAILED, "judged_as": "", "n": 0, **run_of_today(run)}


def above(interval: Sequence[float], value: float) -> str:
    """Whether the whole interval lies above a value; empty if unknown (NaN)."""
    low, high = interval
    if math.isnan(low) or math.isnan(high):
        return ""
    return "yes" if low > value else "no" if high < value else UNDECIDED


def known(value) -> float | None:
    """The value if it is a finite number, else None."""
    return None if value is None or not math.isfinite(value) else float(value)
