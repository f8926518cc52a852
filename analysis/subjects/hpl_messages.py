"""Whether simulated messages take as long as those of HPL itself."""

from pathlib import Path

import pandas as pd

from analysis import paths
from analysis.wording import counted, percent

TRUST = paths.REFERENCE / "trust.csv"


def trust(file: Path = TRUST) -> pd.DataFrame:
    """Compare the simulation with HPL itself on modelled networks, where only messages take time.

    A row for each case of the file that tests/test_trust.py writes: network, P, Q, N, NB, BCAST and
    DEPTH as in HPL.dat, the times `unmocked_s` of HPL itself and `simulated_s`, and `difference`
    [1], simulated over HPL's own, less one.
    """
    cases = pd.read_csv(file)
    return cases.assign(difference=cases.simulated_s / cases.unmocked_s - 1)


def trust_in_words(cases: pd.DataFrame) -> str:
    """How far the simulation's time differs from HPL's own if only messages take time, in plain
    English (Markdown)."""
    largest = percent(cases.difference.abs().max(), 2)
    return (
        f"**With computation switched off, the simulation and HPL itself differ by at most {largest}** "
        f"({counted(len(cases), 'case')}, simulated evidence). In {int((cases.difference == 0).sum())} of them both "
        "print the same rate, to its last digit."
    )
