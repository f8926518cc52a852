"""HPL's messages by size: planted profiles come back, as numbers, as a figure and in words."""

import numpy as np
import pytest
import xarray as xr
from executed import executed, words
from synthetic import campaign

from runners.payload import LEAST

SHORT, LONG = 3000, 3 * 2**19  # B: in the classes from 2 KiB and from 1 MiB


def one_block(evidence="emulated", without=(), few=1000):
    """The synthetic scaling campaign of one block, in which n nodes sent `few` n^2 short and 10 n
    long messages.

    Runs on as many nodes as are in `without` have no payload.
    """
    dataset = campaign(blocks=1, nodes=(2, 4, 8))
    sent = np.full((2, dataset.sizes["trial"], len(LEAST)), np.nan)
    for trial in np.flatnonzero((dataset.runner == "hpl") & ~dataset.nodes.isin(without)):
        n = dataset.nodes.values[trial]
        sent[:, trial] = 0
        sent[0, trial, [12, 21]] = few * n**2, 10 * n
        sent[1, trial, [12, 21]] = few * n**2 * SHORT, 10 * n * LONG
    for name, values in zip(("payload_messages", "payload_bytes"), sent):
        dataset[name] = dataset[name].copy(data=values)
    return dataset.assign_coords(evidence=xr.full_like(dataset.evidence, evidence, dtype="<U9"))


@pytest.fixture(scope="module")
def of_both_kinds():
    """The notebook on simulated messages beside emulated ones."""
    return executed(
        "48", hpl_messages=one_block(), hpl_paper_simulated=one_block(evidence="simulated")
    )


def test_planted_numbers_come_back(of_both_kinds):
    """Shares and halves are those of the planted messages."""
    short, long = 64000, 80
    shares = [one.estimate for one in of_both_kinds.statements]
    assert shares[0] == pytest.approx(short / (short + long)) and len(shares) == 4
    assert shares[1] == pytest.approx(short * SHORT / (short * SHORT + long * LONG))
    assert [one.words for one in of_both_kinds.statements] == ["yes", "yes"] * 2
    assert "in messages of 2 KiB or more" in words(of_both_kinds)
    few = executed("48", hpl_messages=one_block(few=10))
    assert "in messages of 1 MiB or more" in words(few)
    assert [one.words for one in few.statements] == ["yes", "no"]


def test_kinds_of_evidence_stay_apart(of_both_kinds):
    """Each has its own profile, sentences and column of panels, whose steps add up to 100 %;
    nothing is pooled.
    """
    kinds = ["simulated", "emulated"]
    assert [one.evidence for one in of_both_kinds.statements[::2]] == kinds
    assert all(f"On 8 {kind} nodes" in words(of_both_kinds) for kind in kinds)
    axes = of_both_kinds.figures["payload"].figure.axes
    assert [each.get_title() for each in axes[:2]] == [f"{kind}, 8 nodes" for kind in kinds]
    for steps in (steps for panel in axes for steps in panel.patches):
        assert steps.get_data().values.sum() == pytest.approx(100)


def test_what_was_not_counted_is_not_told():
    """The profile is of the most nodes with a count; without any there is none, and that is
    said.
    """
    assert "On 4 emulated nodes" in words(executed("48", hpl_messages=one_block(without=(8,))))
    nothing = executed("48", hpl_messages=one_block(without=(2, 4, 8)))
    assert "cannot be said" in words(nothing)
    assert nothing.figures == {} and nothing.statements == ()
