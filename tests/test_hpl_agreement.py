"""Emulated points beside simulated ones: planted differences come back, and gaps are said."""

import re
from functools import cache

import numpy as np
import pytest
from synthetic_scale_model import TIMERS, run, scaling_campaign, share_of, simulated_scaling

from analysis.experiments import hpl_agreement as experiment
from runners.record import FalloffError

PLANTED = {("gige", 8): 0.985, ("10gige", 12): 0.972, ("unshaped", 16): 0.95, ("gige", 6): 1.06}


@cache
def simulated():
    return simulated_scaling()


@cache
def whole():
    """Four blocks with little scatter; some points are off by what is planted."""
    return experiment.analyse(scaling_campaign(off=PLANTED, blocks=4, noise=0.001), simulated())


def words(study):
    return experiment.finding(study).replace("\u00a0", " ")


def tables(study):
    """The Markdown of all tables."""
    made = (
        experiment.points_table(study),
        experiment.timers_table(study),
        experiment.latency_table(study),
    )
    return " ".join(table.markdown for table in made if table).replace("\u00a0", " ")


def test_planted_ratios_and_answers_come_back():
    """Each point's ratio is the planted one, and it is judged at the goal of its network."""
    shares = whole().shares
    for name in shares.interconnect.values:
        for nodes in shares.nodes.values:
            at = shares.sel(interconnect=name, nodes=nodes)
            assert float(at.ratio) == pytest.approx(PLANTED.get((name, nodes), 1.0), abs=0.002)
            assert at.ratio_low < at.ratio < at.ratio_high and at.blocks == 4
    answers = {
        place: shares.answer.sel(interconnect=place[0], nodes=place[1]).item() for place in PLANTED
    }
    assert answers == {
        ("gige", 8): "within",
        ("10gige", 12): "within",
        ("unshaped", 16): "slower",
        ("gige", 6): "faster",
    }
    assert shares.goal.values.tolist() == [0.02, 0.03, 0.03]


def test_a_wide_interval_leaves_a_point_open():
    """Runs that scatter by 5 % say nothing of 2 %; a single block has no interval and says nothing either."""
    scattered = experiment.analyse(scaling_campaign(blocks=3, noise=0.05), simulated())
    assert (scattered.shares.answer == "open").mean() > 0.8
    alone = experiment.analyse(scaling_campaign(blocks=1), simulated())
    assert (alone.shares.answer == "open").all() and alone.shares.ratio_low.isnull().all()
    assert not re.search(r"\b(nan|None)\b", tables(alone) + words(alone))
    assert "partly open" in words(alone)


def test_the_worst_point_and_those_beyond_the_goal_are_named():
    """A reader learns where emulation and simulation differ most, and every point that misses its goal."""
    said = words(whole())
    assert "19 of 21 points agree" in said and "not everywhere as fast" in said
    assert (
        "Slower than the goal: control on 16 nodes." in said
        and "Faster than the goal: GigE on 6 nodes." in said
    )
    assert re.search(
        r"largest difference is [56]\.\d %: HPL on GigE with 6 nodes is faster than simulated", said
    )


def test_full_agreement_is_said():
    """Without a planted difference every point agrees."""
    study = experiment.analyse(scaling_campaign(blocks=4, noise=0.001), simulated())
    assert "**The emulated cluster is as fast as it is described**: 21 of 21 points agree" in words(
        study
    )
    assert {it.answer for it in experiment.findings(study)} == {"within"}


def test_timers_say_where_the_time_goes():
    """Row swaps that take twice their time in the emulation alone are seen in that timer and in no other."""
    slow = {**TIMERS, "hpl_laswp_time": 0.2}
    study = experiment.analyse(scaling_campaign(blocks=2, timers=slow), simulated())
    at = study.times.sel(interconnect="gige", nodes=16)
    np.testing.assert_allclose((at.emulated / at.simulated).values, [1, 1, 1, 1, 2])
    rows = [row for row in experiment.timers_table(study).rows if "row swaps" in row[1]]
    assert len(rows) == 3 and all(row[-1] == "10.0" for row in rows)


def test_only_points_of_both_campaigns_are_compared():
    """The quick campaign has two node counts; what did not run is unknown and shown as a dash."""
    study = experiment.analyse(
        scaling_campaign(preset="quick", failed={(n, "gige", 8) for n in (1, 2, 3)}), simulated()
    )
    assert study.shares.nodes.values.tolist() == [2, 8]
    assert np.isnan(study.shares.ratio.sel(interconnect="gige", nodes=8))
    assert "of 5 points" in words(study) and not re.search(
        r"\b(nan|None)\b", tables(study) + words(study)
    )


def test_other_rates_are_refused():
    """A simulation of nodes of another speed agrees with nothing."""
    other = simulated()
    faster = other.assign_attrs(
        testbed_settings=other.attrs["testbed_settings"].replace("85000000.0", "90000000.0")
    )
    with pytest.raises(FalloffError, match="0.085 Gflop/s.*0.09: give the simulated testbed"):
        experiment.analyse(scaling_campaign(blocks=1), faster)


def test_several_simulated_blocks_are_refused():
    """A simulation repeats itself; a dataset with two blocks is none."""
    with pytest.raises(FalloffError, match="single level of block"):
        experiment.analyse(scaling_campaign(blocks=1), scaling_campaign(blocks=2))


def test_latency_is_half_of_the_round_trip_of_the_smallest_token():
    """Of planted round trips that grow with the token; the section says it beside the simulation's."""
    tokens = run(
        "token_nodes",
        share_of,
        blocks=2,
        readings=lambda at: {
            "token_round_trip": np.full((1, 2, 9), 90e-6 * at["token_bytes"] / 4),
            "token_throughput": np.ones((1, 2)),
        },
    )
    latency = experiment.measured_latency(tokens)
    np.testing.assert_allclose(latency["mean"], 45e-6)
    study = experiment.analyse(scaling_campaign(blocks=2), simulated(), tokens)
    assert ("GigE", "35.0", "45.0", "2") in [
        (*row[:2], row[2].split(" ")[0], row[3]) for row in experiment.latency_table(study).rows
    ]


def test_the_figure_shows_every_ratio_and_the_goal():
    """Each network has its panel with its ratios, on a common ordinate."""
    panels = experiment.figures(whole())["agreement"].figure.axes
    assert len(panels) == 3
    for axes, name in zip(panels, whole().shares.interconnect.values):
        at = whole().shares.sel(interconnect=name)
        heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert np.isin(100 * at.ratio.values, heights).all()
        assert axes.get_ylim() == panels[0].get_ylim()
        assert (
            f"goal {100 * float(at.goal[0] if at.goal.ndim else at.goal):g} %" in axes.get_title()
        )
