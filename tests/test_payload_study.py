"""HPL's messages by size: planted profiles come back, as numbers, as a figure and in words."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from synthetic import campaign

from analysis.facts import payload as facts
from analysis.figures import payload as figures
from analysis.studies import payload
from analysis.wording import byte_range, byte_size, templates
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
    return payload.analyse(one_block(evidence="simulated"), one_block())


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
    known = facts.collect(of_both_kinds())["profiles"][0]
    (first, *_, last) = known["points"]
    assert [p["messages_per_node"] for p in (first, last)] == [1000 * n + 10 for n in (2, 8)]
    assert known["messages_per_node_growth"] == pytest.approx(8010 / 2010)
    assert known["bytes_per_node_growth"] == pytest.approx((8000 * SHORT + 10 * LONG) / (2000 * SHORT + 10 * LONG))


@given(counts=st.lists(st.integers(0, 50), min_size=2, max_size=33).filter(any))
def test_the_class_of_half_holds_the_median(counts):
    """With every message at its class's least size, the class of half is the median's."""
    sizes = np.array(LEAST[: len(counts)])
    array = xr.DataArray([counts], {"nodes": [2], "size": sizes}, ("nodes", "size"))
    everything = np.repeat(sizes, counts)
    middle = everything[(len(everything) - 1) // 2]
    assert payload.summarise(array, array * sizes).median_size.item() == middle


def test_kinds_of_evidence_stay_apart():
    """Each has its own profile, table and column of panels; nothing is pooled."""
    assert [profile.evidence for profile in of_both_kinds().profiles] == ["simulated", "emulated"]
    figure = figures.draw(of_both_kinds())["payload"]
    assert len(figure.axes) == 4
    assert [axes.get_title().split(":")[0] for axes in figure.axes[:2]] == ["simulated", "emulated"]
    alone = payload.analyse(None, one_block())
    assert [profile.evidence for profile in alone.profiles] == ["emulated"]
    assert len(figures.draw(alone)["payload"].axes) == 2


def test_the_steps_of_a_histogram_are_all_of_it():
    """Each drawn node count's shares of messages, and of bytes, add up to 100 %."""
    for axes in figures.draw(of_both_kinds())["payload"].axes:
        assert len(axes.patches) == 3
        for steps in axes.patches:
            assert steps.get_data().values.sum() == pytest.approx(100)


def test_the_networks_are_compared():
    """The same messages on all networks, other ones on one of them, or no other network."""
    assert of_both_kinds().profiles[0].same is True
    assert payload.analyse(None, one_block(other=1)).profiles[0].same is False
    alone = one_block()
    alone = alone.isel(trial=np.flatnonzero(alone.interconnect != "10gige"))
    design = alone.attrs["design"].replace('"gige", "10gige", "unshaped"', '"gige"')
    (profile,) = payload.analyse(None, alone.assign_attrs(design=design)).profiles
    assert profile.same is None and facts.collect(payload.Payload((profile,)))["profiles"][0]["others"] == []


def test_what_was_not_counted_is_said():
    """Node counts without a payload are missing, a campaign without any has no profile."""
    study = payload.analyse(None, one_block(without=(4,)))
    (profile,) = study.profiles
    assert profile.missing == (4,) and profile.summary.nodes.values.tolist() == [2, 8]
    assert "Without a count: 4 nodes." in text(study)
    assert payload.analyse(None, one_block(without=(2, 4, 8))) is None
    assert payload.analyse(None, None) is None


def test_several_blocks_are_refused():
    """A profile is of one run a point: which of several would it be?"""
    with pytest.raises(FalloffError, match="single level of block"):
        payload.analyse(None, counted(campaign(blocks=2)))


def test_the_emulated_payload_is_set_against_the_interfaces():
    """What the interfaces sent over what HPL handed to MPI; and over the least that its broadcasts take."""
    dataset = one_block()
    point = facts.collect(payload.analyse(None, dataset))["profiles"][0]["points"][-1]
    chosen = (dataset.nodes == 8) & (dataset.interconnect == "gige") & (dataset.role == "point")
    run = dataset.isel(trial=np.flatnonzero(chosen)[0])
    assert point["interfaces"] == pytest.approx(run.bytes_sent.sum().item() / run.payload_bytes.sum().item())
    assert point["over_broadcast"] == pytest.approx(run.payload_bytes.sum().item() / (4 * 7 * run.N.item() ** 2))


def text(study):
    """The report's section on a study."""
    known = {"paper": {"source": {"short": "the paper"}}}
    return templates().get_template("payload.md.j2").render(payload=facts.collect(study), published=known)


def test_the_section_quotes_the_facts():
    """The latest medians and halves, the networks, and a table for each kind of evidence."""
    said = text(of_both_kinds())
    for table in ("tbl:payload-simulated", "tbl:payload-emulated"):
        assert said.count(f"{{#{table}}}") == 1 and f"[](#{table})" in said
    assert "On 10GE and control HPL sent exactly the same messages" in said.replace("\u00a0", " ")
    assert said.count("form a single row of the process grid") == 2
    assert "nan" not in said and "None" not in said


def test_two_sizes_are_claimed_only_where_they_are_apart():
    """Short messages by number and long ones by bytes are; short ones that hold half of the bytes, too, are not."""
    far_apart = text(payload.analyse(None, one_block(few=10)))
    assert "There is no one moderate size" in far_apart and "a factor of 256 or more apart" in far_apart
    assert "There is no one moderate size" not in text(of_both_kinds())


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (1, "1 B"), (1023, "1020 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (2**31, "2 GiB"), (None, "—")],
)
def test_sizes_in_words(size, words):
    """Binary units, three digits, no closing zeros."""
    assert byte_size(size).replace("\u00a0", " ") == words
    assert byte_range((1024, 2048)).replace("\u00a0", " ") == "1 KiB to 2 KiB"
