"""What the scale model keeps of the paper's cases, from the descriptions that are run."""

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import paths
from analysis.experiments import scale_model as experiment
from analysis.experiments.scale_model import bandwidth_share, latency_share


@pytest.fixture(scope="module")
def study():
    """Of the files in data/."""
    return experiment.analyse()


@given(st.integers(2, 64), st.floats(1, 100))
def test_faster_nodes_on_equally_faster_links_keep_the_balance(n, factor):
    """Only the ratio of node to link speed counts, and of node speed to latency."""
    here = bandwidth_share(n, 4e9, 1e8, 8192, 1, n)
    assert bandwidth_share(n, factor * 4e9, factor * 1e8, 8192, 1, n) == pytest.approx(here)
    assert latency_share(n, factor * 4e9, 5e-5 / factor, 8192) == pytest.approx(
        latency_share(n, 4e9, 5e-5, 8192)
    )


def test_bytes_are_kept_within_three_percent_in_every_case(study):
    """The issue's bound, for all 15 cases on GigE; by hand for the smallest."""
    assert len(study.cases) == 15 and study.cases.bytes_ratio.between(0.97, 1.03).all()
    first = study.cases.iloc[0]
    assert first.paper_bytes == pytest.approx(2 * 39.67e9 / (110e6 * 60000) * 1.5)
    assert first.model_bytes == pytest.approx(2 * 85e6 / (11.77e6 * 1200) * 1.5)


def test_messages_are_printed_for_both_scales(study):
    """Their shares follow from the latencies of the descriptions."""
    last = study.cases.iloc[-1]
    assert last.paper_messages == pytest.approx(40e-6 * 36 * 39.67e9 / 260000**2)
    assert last.model_messages == pytest.approx(study.model.latency_s["gige"] * 36 * 85e6 / 5208**2)


def test_a_model_that_is_off_says_so(study):
    """The finding's bound is that of the worst case, whatever it is."""
    cases = study.cases.assign(
        bytes_ratio=study.cases.bytes_ratio.where(study.cases.nodes != 8, 1.25)
    )
    assert "within 25.0 % in all 15 cases" in experiment.finding(
        replace(study, cases=cases)
    ).replace("\u00a0", " ")


def test_the_descriptions_agree_with_each_other(study):
    """Emulated and simulated scale model have one F, and each link's payload is that of its rate in frames of 1538 bytes."""
    emulated = tomllib.loads((paths.TESTBEDS / "scale_model.toml").read_text())
    assert study.model.flop_s == emulated["node"]["flop_s"]
    for name in ("gige", "10gige"):
        payload = emulated["networks"][name]["rate_bit_s"] / 8 * 1448 / 1538
        assert study.model.byte_s[name] == pytest.approx(payload, rel=0.001)


def test_messages_cost_more_than_in_the_paper(study):
    """By hand for the smallest case on 10GE, where a message of the paper's takes 6 us; the finding says both factors."""
    first = study.cases.iloc[0]
    by_hand = (35e-6 * 85e6 / 1200**2) / (6e-6 * 39.67e9 / 60000**2)
    assert first.fast_messages_ratio == pytest.approx(by_hand)
    said = experiment.finding(study).replace("\u00a0", " ")
    assert (
        "4.7 times the paper's on GigE, 31 times on 10GE" in said and "networks cost more" in said
    )


def test_the_tables_have_every_case(study):
    """A row for each case, for each share, and for each link; five sentences explain the model."""
    assert len(experiment.cases_table(study).rows) == 15
    assert (
        len(experiment.shares_table(study).rows) == len(experiment.payload_table(study).rows) == 4
    )
    assert experiment.method(study).count(
        "\n"
    ) > 5 and "100 Mbit/s stand for GigE" in experiment.method(study)
