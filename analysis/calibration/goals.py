"""The goals for intervals and verdicts, and which cells of the calibration miss them."""

import pandas as pd

COVERAGE = (0.93, 0.97)  # the goal for the 95 % interval
AT_MOST = 0.05  # the goal for each wrong claim
ERRORS = 3  # standard errors outside a goal that are no longer chance among so many cells


def at_the_goal(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The cells for which a measure has a goal.

    Coverage: all. `flat`, `wrong_flat`: the fall is the margin. `falls_off`: there is no fall.
    `wrong_falls_off`: no primary fall, or one that is no more than the margin.
    """
    none, margin, large = sorted(results.fall.unique())
    falls = {
        "coverage_95": [none, margin, large],
        "flat": [margin],
        "wrong_flat": [margin],
        "falls_off": [none],
        "wrong_falls_off": [none, margin],
    }
    return results[results.fall.isin(falls[measure])]


def worst(cells: pd.DataFrame, measure: str) -> pd.Series:
    """The cell furthest from 95 % for coverage, the one with the largest rate for a wrong claim."""
    rates = (cells[measure] - 0.95).abs() if measure == "coverage_95" else cells[measure]
    return cells.loc[rates.idxmax()]


def missed(cells: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The cells that miss a measure's goal by more than ERRORS standard errors."""
    low, high = COVERAGE if measure == "coverage_95" else (0.0, AT_MOST)
    slack = ERRORS * cells[f"{measure}_se"]
    return cells[(cells[measure] < low - slack) | (cells[measure] > high + slack)]
