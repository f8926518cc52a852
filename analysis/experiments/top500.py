"""What the sources' claims take from TOP500's lists; notebook 70 is their analysis."""

from dataclasses import dataclass

import pandas as pd

from analysis.top500_lists import Lists
from analysis.top500_numbers import Aggregate, aggregates


@dataclass(frozen=True)
class Top500:
    """The systems of all available lists, and what the sources print."""

    systems: pd.DataFrame
    aggregates: tuple[Aggregate, ...]


def analyse(lists: Lists) -> Top500:
    """Analyse the result of `top500_lists.read_folder`, even without any list."""
    return Top500(lists.systems, aggregates(lists.systems))
