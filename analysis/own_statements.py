"""Statements on one's own data: falls of efficiency over nodes, estimates, and what these rest on."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from analysis import statements
from analysis.importing import BLOCKS
from analysis.statements import Statement, interval_in_words
from analysis.statistics.unordered import IF_ALIKE
from analysis.wording import number, percent

LEVEL_95 = "95 % t interval"


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
    return statements.estimated(
        statements.origin(dataset),
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


def _unit(dataset: xr.DataArray | xr.Dataset) -> str:
    return "block" if dataset.attrs.get("repeats", BLOCKS) == BLOCKS else "run"
