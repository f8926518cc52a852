"""HPL's messages by size: planted profiles come back, as numbers, as a figure and in words."""

import csv
import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from synthetic import campaign

from analysis.experiments import hpl_messages
from analysis.wording import byte_range, byte_size, number
from runners.payload import LEAST
from runners.record import FalloffError

SHORT, LONG = 3000, 3 * 2**19  # B: in the classes from 2 KiB and from 1 MiB


def counted(dataset, evidence="emulated", without=(), other=0, few=1000):
    """A campaign in which n nodes sent `few` n^2 short and 10 n long messages, and `other` more on 10GE.

    Runs on as many nodes as are in `without` have no payload.
    """
    sent = np.full((2, dataset.sizes["trial"], len(LEAST)), np.nan)
    for trial in np.flatnonzero((dataset.runner == "hpl") & ~dataset.nodes.isin(without)):
        n = dataset.nodes.values[trial]
        short = few * n**2 + other * (dataset.interconnect.values[trial] == "10gige")
        sent[:, trial] = 0
        sent[0, trial, [12, 21]] = short, 10 * n
        sent[1, trial, [12, 21]] = short * SHORT, 10 * n * LONG
    for name, values in zip(("payload_messages", "payload_bytes"), sent):
        dataset[name] = dataset[name].copy(data=values)
    dataset["evidence"] = dataset.evidence.copy(data=np.full(dataset.sizes["trial"], evidence))
    return dataset


def one_block(**changes):
    """The synthetic scaling campaign of one block, counted."""
    return counted(campaign(blocks=1, nodes=(2, 4, 8)), **changes)


@cache
def of_both_kinds():
    """The study of simulated messages beside emulated ones."""
    return hpl_messages.analyse(one_block(), one_block(evidence="simulated"))


def words(study):
    """Finding, captions and tables, hard spaces as spaces; nothing in them is left unknown."""
    tables = hpl_messages.messages_table(study), hpl_messages.cases_table(study)
    shown = [*hpl_messages.figures(study).values(), *tables]
    said = [hpl_messages.finding(study), *(each.markdown for each in shown)]
    text = "\n".join(said).replace("\u00a0", " ")
    assert not re.search(r"\b(nan|None|inf)\b", text)
    return text


def test_planted_numbers_come_back():
    """Totals, means, shares, medians and halves are those of the planted messages, at every node count."""
    found = of_both_kinds().profiles[0].summary
    for n in (2, 4, 8):
        at = found.sel(nodes=n)
        short, long = 1000 * n**2, 10 * n
        assert (at.messages, at.bytes) == (short + long, short * SHORT + long * LONG)
        assert at.mean_size == pytest.approx((short * SHORT + long * LONG) / (short + long))
        assert at.small_messages == pytest.approx(short / (short + long))
        assert at.small_bytes == pytest.approx(short * SHORT / (short * SHORT + long * LONG))
        assert at.median_size == 2048
        assert at.half_bytes_size == (2**20 if long * LONG > short * SHORT else 2048)


def test_growth_is_per_node():
    """A node's messages grow as the planted totals over n, its bytes likewise."""
    messages = 8010 / 2010
    volume = (8000 * SHORT + 10 * LONG) / (2000 * SHORT + 10 * LONG)
    assert f"a node's messages grow {messages:.1f}-fold and its bytes {volume:.1f}-fold" in words(
        of_both_kinds()
    )


@given(counts=st.lists(st.integers(0, 50), min_size=2, max_size=33).filter(any))
def test_the_class_of_half_holds_the_median(counts):
    """With every message at its class's least size, the class of half is the median's."""
    sizes = np.array(LEAST[: len(counts)])
    array = xr.DataArray([counts], {"nodes": [2], "size": sizes}, ("nodes", "size"))
    everything = np.repeat(sizes, counts)
    middle = everything[(len(everything) - 1) // 2]
    assert hpl_messages.summarise(array, array * sizes).median_size.item() == middle


def test_kinds_of_evidence_stay_apart():
    """Each has its own profile, rows and column of panels; nothing is pooled."""
    study = of_both_kinds()
    assert [profile.evidence for profile in study.profiles] == ["simulated", "emulated"]
    assert [row[0] for row in hpl_messages.messages_table(study).rows] == 3 * ["simulated"] + 3 * [
        "emulated"
    ]
    axes = hpl_messages.figures(study)["payload"].figure.axes
    assert [each.get_title() for each in axes] == ["simulated", "emulated", "", ""]
    alone = hpl_messages.analyse(one_block())
    assert [profile.evidence for profile in alone.profiles] == ["emulated"]
    assert len(hpl_messages.figures(alone)["payload"].figure.axes) == 2


def test_the_steps_of_a_histogram_are_all_of_it():
    """Each drawn node count's shares of messages, and of bytes, add up to 100 %."""
    for axes in hpl_messages.figures(of_both_kinds())["payload"].figure.axes:
        assert len(axes.patches) == 3
        for steps in axes.patches:
            assert steps.get_data().values.sum() == pytest.approx(100)


def test_the_networks_are_compared():
    """The same messages on all networks, other ones on one of them, or no other network."""
    assert "On 10GE and control HPL sends exactly the same messages as on GigE" in words(
        of_both_kinds()
    )
    assert "HPL sends other messages" in words(hpl_messages.analyse(one_block(other=1)))
    alone = one_block()
    alone = alone.isel(trial=np.flatnonzero(alone.interconnect != "10gige"))
    design = alone.attrs["design"].replace('"gige", "10gige", "unshaped"', '"gige"')
    study = hpl_messages.analyse(alone.assign_attrs(design=design))
    assert study.profiles[0].same is None and "messages as on" not in words(study)


def test_a_run_of_today_is_compared():
    """It sends the same messages or others, and without a count of its own nothing is said."""
    for today, again in (
        (one_block(), True),
        (one_block(few=999), False),
        (one_block(without=(2, 4, 8)), None),
    ):
        study = hpl_messages.analyse(one_block(), today=today)
        assert study.again is again and ("Today's run" in words(study)) is (again is not None)


def test_what_was_not_counted_is_said():
    """Node counts without a payload are missing; without any there is no profile, and that is said."""
    study = hpl_messages.analyse(one_block(without=(4,)))
    (profile,) = study.profiles
    assert profile.missing == (4,) and profile.summary.nodes.values.tolist() == [2, 8]
    assert "Without a count: 4 nodes." in words(study)
    nothing = hpl_messages.analyse(one_block(without=(2, 4, 8)))
    assert nothing.profiles == () and "cannot be said" in hpl_messages.finding(nothing)
    assert hpl_messages.figures(nothing) == {} and list(hpl_messages.findings(nothing)) == []
    assert (
        hpl_messages.messages_table(nothing) is None and hpl_messages.cases_table(nothing) is None
    )


def test_several_blocks_are_refused():
    """A profile is of one run a point: which of several would it be?"""
    with pytest.raises(FalloffError, match="single level of block"):
        hpl_messages.analyse(counted(campaign(blocks=2)))


def test_the_emulated_bytes_are_set_against_the_interfaces():
    """What the interfaces sent over what HPL handed to MPI."""
    dataset = one_block()
    chosen = (dataset.nodes == 8) & (dataset.interconnect == "gige") & (dataset.role == "point")
    run = dataset.isel(trial=np.flatnonzero(chosen)[0])
    ratio = run.bytes_sent.sum().item() / run.payload_bytes.sum().item()
    assert f"interfaces sent {number(ratio)} times" in words(hpl_messages.analyse(dataset))


def test_two_sizes_are_claimed_only_where_they_are_apart():
    """Short messages by number and long ones by bytes are; short ones that hold half of the bytes, too, are not."""
    assert "at least 256 times as long" in words(hpl_messages.analyse(one_block(few=10)))
    assert "of about the same size" in words(of_both_kinds())


def test_findings_are_the_shares_of_small_messages():
    """As data, of every profile on its most nodes, a count of one run without an interval."""
    found = list(hpl_messages.findings(of_both_kinds()))
    assert [each.evidence for each in found] == 2 * ["simulated"] + 2 * ["emulated"]
    assert found[0].estimate == pytest.approx(64000 / 64080) and found[0].interval is None


def cases(file, *rows):
    """The study of a file as the comparison writes it: GigE at N = 2048 and NB 128, the real run takes 1 s."""
    with open(file, "w", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened)
        table.writerow(
            ["network", "P", "Q", "N", "NB", "BCAST", "DEPTH", "unmocked_s", "simulated_s"]
        )
        table.writerows(
            [
                ("gige", P, Q, 2048, 128, BCAST, DEPTH, 1.0, 1 + off)
                for P, Q, BCAST, DEPTH, off in rows
            ]
        )
    return hpl_messages.trust(file)


def test_the_simulation_is_set_against_hpl_itself(tmp_path):
    """Largest differences by grid and look-ahead, and the worst case, which is named only where there is one."""
    apart = cases(
        tmp_path / "t.csv",
        (2, 2, 0, 0, 0.0),
        (2, 2, 0, 1, 0.002),
        (3, 2, 1, 1, -0.001),
        (3, 2, 5, 1, -0.004),
    )
    assert (apart.same, apart.largest) == (1, pytest.approx(0.004))
    said = hpl_messages.trust_finding(apart).replace("\u00a0", " ")
    assert "at most 0.40 %** (4 cases" in said and "takes less time" in said
    assert "3 × 2 nodes on GigE, NB = 128, BCAST = 5, DEPTH = 1" in said
    assert hpl_messages.trust_table(apart).rows == (
        ("2 × 2", "0.00", "0.20", "2"),
        ("3 × 2", "—", "0.40", "2"),
    )
    alike = hpl_messages.trust_finding(
        cases(tmp_path / "t.csv", (2, 2, 0, 0, 0.0), (2, 2, 0, 1, 0.0))
    )
    assert "worst case" not in alike and "In 2 of them" in alike


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1020 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2**31, "2 GiB"),
        (None, "—"),
    ],
)
def test_sizes_in_words(size, text):
    """Binary units, three digits, no closing zeros."""
    assert byte_size(size).replace("\u00a0", " ") == text
    assert byte_range((1024, 2048)).replace("\u00a0", " ") == "1 KiB to 2 KiB"
