"""Statements on one's own data: falls of efficiency over nodes, estimates, and what these rest on."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from analysis import statements
from analysis.importing import BLOCKS
from analysis.statements import Statement, change, interval_in_words
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, SIZE_OPEN, Judgement
from analysis.statistics.unordered import IF_ALIKE
from analysis.wording import counted, level_in_words, listed, number, percent

LEVEL_95 = "95 % t interval"


def fall(
    dataset: xr.DataArray | xr.Dataset,
    network: str,
    name: str,
    judged: Judgement,
    start: int,
    end: int,
    ends: tuple[float, float],
    against: str = "",
    of: str = "efficiency",
    count: str = "nodes",
    differing: Sequence[str] = (),
) -> Statement:
    """Whether a network's efficiency falls off over nodes, or its ratio to another network's rate.

    `ends` are the values [1] at `start` and `end`; `differing` is what else differs between its points.
    """
    span = f"from {start} to {counted(end, count[:-1])}"
    where = f"{span}, with different {listed(differing)}" if differing else span
    who = f"{name} against {against}" if against else name
    subject = who if against else f"{name}'s {of}"
    lost = "" if judged.fall is None else change(judged.fall)
    basis = _basis(judged)
    if against:
        what = f"the ratio of their rates {lost}{basis}"
    else:
        what = f"its {of} goes from {percent(ends[0])} to {percent(ends[1])} and {lost}{basis}"
    sentence = {
        FALLS_OFF: f"**{name} falls off{_of(against)}** {where}: {what}.",
        FLAT: f"**{name} stays flat{_of(against)}** {where}: {what}.",
        RISES: f"**{name} rises{_of(against)}** {where}: {what}.",
        SIZE_OPEN: f"**{name} falls{_of(against)}** {where}: {what}. Whether by more than the margin of "
        f"{percent(judged.margin, 0)} is open.",
    }.get(judged.answer)
    if sentence is None and judged.interval is None and judged.fall is not None:
        sentence = f"**Whether {who} falls off {where} is open**: {what} in single runs, which have no interval."
    elif sentence is None:
        sentence = f"**Whether {who} falls off {where} is open**: {what}. {judged.reason}"
    return statements.judged_fall(
        dataset,
        f"{subject} falls off {span}",
        judged,
        kind=f"{level_in_words(judged.confidence or 0)} t interval over the {_unit(dataset)}s",
        n_of=_unit(dataset),
        primary=True,
        sentence=sentence,
        series=network,
    )


def estimate(
    dataset: xr.DataArray | xr.Dataset,
    sentence: str,
    subject: str,
    quantity: str,
    value: Sequence[float],
    n: int,
    unit: str = "1",
    **further,
) -> Statement:
    """An estimate (value, low, high) of a quantity in its unit; `sentence` has `{}` where its
    interval belongs."""
    ends = [end for end in value[1:] if end is not None and np.isfinite(end)]
    words = ""
    if len(ends) == 2:
        words = f" ({LEVEL_95} {' to '.join(map(number, ends))})"
        if unit == "1" and quantity in ("share", "error", "fall"):
            words = f" ({interval_in_words(ends).replace('interval', 't interval')})"
    return statements.value(
        dataset,
        subject,
        quantity,
        tuple(value),
        n,
        f"{LEVEL_95} over the {_unit(dataset)}s",
        unit=unit,
        n_of=_unit(dataset),
        sentence=sentence.format(words),
        **further,
    )


def caveat(dataset: xr.DataArray | xr.Dataset, runs: Sequence[int], margin: float | None) -> str:
    """What the verdicts rest on: the number of runs, whether they are blocks, and the margin."""
    few, most = min(runs), max(runs)
    each = f"{few}" if few == most else f"{few} to {most}"
    unit = "block" if _unit(dataset) == "block" else "run"
    kept = (
        f"The margin of {percent(margin, 0)} is Falloff's own and was not set before the runs."
        if margin
        else ""
    )
    if unit == "block":
        first = f"A block is one run of every point; there are {each}, and runs are compared within them."
    elif most < 2:
        first = "Every point is a single run, so that nothing is known of its scatter."
    else:
        first = (
            f"The order of the runs is not known. The {each} runs of a point therefore count as independent repeats: intervals "
            f"and answers hold {IF_ALIKE}, and what drifted while the runs were made is not in them."
        )
    return " ".join(filter(None, (first, kept)))


def _basis(judged: Judgement) -> str:
    if judged.interval is None:
        return ""
    low, high = judged.interval
    if (judged.fall or 0) < -statements.NOTHING:  # the interval of a gain has the gain's sign
        low, high = -high, -low
    interval = interval_in_words((low, high), None, judged.confidence or 0)
    return f" ({', '.join(filter(None, (interval, judged.condition)))})"


def _of(against: str) -> str:
    return f" against {against}" if against else ""


def _unit(dataset: xr.DataArray | xr.Dataset) -> str:
    return "block" if dataset.attrs.get("repeats", BLOCKS) == BLOCKS else "run"
