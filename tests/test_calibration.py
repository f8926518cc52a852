"""The calibration judges as the whole path does, keeps its goals, and its stored data are the code's."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from synthetic import campaign

from analysis.calibration import error_rates
from analysis.calibration.goals import AT_MOST, COVERAGE, at_the_goal, missed, worst
from analysis.calibration.simulate import Design, Truth, differences, log_rates, run_sds
from analysis.calibration.stopping import FIRST_LOOK, RULES, Running, blocks_judged, half_width_of_fall
from analysis.contrasts import contrasts
from analysis.derive import points
from analysis.facts.calibration import collect
from analysis.figures import calibration as figures
from analysis.inference import planning
from analysis.inference.multiplicity import holm, holm_p
from analysis.inference.verdict import decide, judge_fall
from analysis.wording import templates
from runners.record import FalloffError

STORED = error_rates.load()
RESULTS = error_rates.results()
BLOCKS = 5


def smaller(**changes):
    """The stored calibration with other settings."""
    return replace(STORED, settings={**STORED.settings, **changes})


def draw(noise="normal", sigma=0.02, fall=0.13, shape=(4, BLOCKS), seed=1):
    """Log rates of a few campaigns of the stored design."""
    truth, random = Truth(noise, sigma, fall), np.random.default_rng(seed)
    pattern = STORED.run_sds / STORED.reference_sigma
    return log_rates(random, truth, STORED.design, shape, STORED.settings, pattern)


def as_dataset(rates):
    """One campaign's log rates, (blocks, networks, nodes), as a dataset in which all else is synthetic."""
    found = campaign(blocks=len(rates))
    design = STORED.design
    hpl = np.flatnonzero((found.runner == "hpl") & (found.role == "point"))
    for trial in hpl:
        row = found.isel(trial=trial)
        place = design.networks.index(row.interconnect.item()), design.nodes.index(int(row.nodes))
        found.hpl_rate[trial] = np.exp(rates[int(row.block) - 1, *place])
    return found


@pytest.mark.parametrize("noise", STORED.settings["noises"])
def test_a_campaign_is_judged_as_by_the_whole_path(noise):
    """Dataset, points, contrasts and Holm give the verdicts and p that the arrays give."""
    rates = draw(noise, sigma=0.03)
    drawn = differences(rates, STORED.design)
    mean, sd = Running.of(drawn).after(np.full(len(rates), BLOCKS))
    decision = decide(mean, sd, BLOCKS, STORED.design.limit)
    for index, one in enumerate(rates):
        judged = contrasts(points(as_dataset(one)))
        assert [(c.network, c.reference) for c in judged] == list(STORED.design.pairs)
        verdicts = [contrast.verdict for contrast in judged]
        assert [v.kind for v in verdicts] == decision.kind[index].tolist()
        np.testing.assert_allclose([v.p for v in verdicts], decision.p[index], rtol=1e-6)
        np.testing.assert_allclose([v.fall for v in verdicts], -np.expm1(mean[index]), atol=1e-12)
        np.testing.assert_allclose([v.sd for v in verdicts], sd[index], rtol=1e-8)
        np.testing.assert_allclose([v.p_holm for v in holm(verdicts)], holm_p(decision.p)[index], rtol=1e-6)


def test_the_design_is_that_of_a_campaign():
    """A synthetic dataset's own description gives the design that the calibration uses."""
    described = json.loads(campaign(blocks=1).attrs["design"])
    assert Design.of({"design": described, "factors": described["factors"]}) == STORED.design


def test_planted_falls_are_in_the_contrasts():
    """Without scatter every block's D is the planted fall, whatever the block effect."""
    drawn = differences(draw(sigma=0.0), STORED.design)
    assert STORED.design.falls(0.13) == (0.13, 0.13, 0.0)
    np.testing.assert_allclose(-np.expm1(drawn), np.broadcast_to([0.13, 0.13, 0.0], drawn.shape), atol=1e-12)


@pytest.mark.parametrize(("noise", "expected"), [("normal", 0.02), ("heavy-tailed", 0.02), ("uneven", None)])
def test_noise_has_the_scatter_that_it_is_said_to_have(noise, expected):
    """A run's standard deviation is sigma; uneven noise has the reference's pattern over the nodes."""
    rates = draw(noise, fall=0.0, shape=(2000, 20))
    within = (rates[:, :, 0] - rates[:, :, 1]).std(axis=(0, 1)) / np.sqrt(2)
    pattern = STORED.run_sds / STORED.reference_sigma
    np.testing.assert_allclose(within, expected or 0.02 * pattern, rtol=0.1)


def test_outliers_only_slow_runs_down():
    """The share of runs that the settings name is slower, by no more than they say, and none is faster."""
    rates = draw("outliers", sigma=0.0, fall=0.0, shape=(2000, 10))
    rates = rates - rates.max(axis=(2, 3), keepdims=True)
    settings = STORED.settings
    assert np.mean(rates < -1e-9) == pytest.approx(settings["outlier_share"], rel=0.05)
    assert rates.min() >= np.log(1 - settings["outlier_loss"]) - 1e-9


def test_an_unknown_noise_is_refused():
    """With the names of those that there are."""
    with pytest.raises(FalloffError, match="pink.*heavy-tailed"):
        draw("pink")


def test_a_runs_scatter_is_measured_within_blocks():
    """Block effects, however large, leave it as it is."""
    measured = run_sds(points(campaign(blocks=200, noise=0.02, block_effect=0.3, falls={})))
    np.testing.assert_allclose(measured, 0.02, rtol=0.15)


def judged(rule, drawn, planned, precision=0.025):
    """With how many blocks each campaign is judged; every second block is valid."""
    valid = np.arange(drawn.shape[1]) % 2 * np.ones((len(drawn), 1), int) == 0
    return blocks_judged(rule, planned, Running.of(drawn), valid, precision, STORED.design.limit)


def test_stopping_rules_do_what_they_say():
    """Precision is judge_fall's interval after each block from the first look on; two stages go on where judge_fall is undecided."""
    drawn = differences(draw(sigma=0.015, fall=0.05, shape=(40, 16)), STORED.design)
    margin, looks = STORED.design.margin, np.arange(FIRST_LOOK, 17)
    for one, width, at, stages in zip(
        drawn[..., 0],
        half_width_of_fall(Running.of(drawn), looks),
        judged("precision", drawn, 16),
        judged("two stages", drawn, 8),
    ):
        intervals = [judge_fall(one[:n], margin, "synthetic").interval_95 for n in looks]
        widths = np.array([(high - low) / 2 for low, high in intervals])
        np.testing.assert_allclose(width, widths, rtol=1e-8)
        narrow = np.flatnonzero(widths <= 0.025)
        assert at == (looks[narrow[0]] if narrow.size else 16)
        assert stages == (16 if judge_fall(one[:8], margin, "synthetic").kind == "undecided" else 8)
    assert judged("fixed", drawn, 8).tolist() == [8] * 40
    assert judged("invalid blocks", drawn, 8).tolist() == [4] * 40


def test_campaigns_without_an_interval_are_no_claim():
    """A single valid block counts as undecided and not in the coverage."""
    drawn = differences(draw(sigma=1e-6, fall=0.0, shape=(10, 4)), STORED.design)
    blocks = np.array([1] * 5 + [4] * 5)
    rates = error_rates.error_rates(Running.of(drawn), blocks, STORED.design, STORED.design.falls(0.0))
    assert (rates["campaigns"], rates["with_interval"], rates["flat"]) == (10, 5, 0.5)


def test_the_goals_hold_on_a_small_run():
    """With blocks fixed beforehand, no goal is missed by more than Monte Carlo error, nor Holm's."""
    small = smaller(campaigns=2000, blocks=[4, 12])
    noises = ("normal", "heavy-tailed", "uneven")
    truths = [truth for truth in small.truths() if truth.sigma == 0.02 and truth.noise in noises]
    rows = pd.concat(error_rates.simulate(small, truth) for truth in truths)
    rows = rows[rows.rule == "fixed"]
    for measure in ("coverage_95", "flat", "falls_off", "wrong_flat_holm", "wrong_falls_off_holm"):
        rows[f"{measure}_se"] = np.sqrt(rows[measure] * (1 - rows[measure]) / 2000)
        cells = at_the_goal(rows, measure.removesuffix("_holm"))
        assert len(cells) >= 6 and missed(cells, measure).empty, measure


def test_the_stored_results_are_of_the_present_code():
    """Cells simulated again with the stored seed are those of error_rates.csv."""
    truths = STORED.truths()
    for truth in (truths[1], truths[-1]):
        again = error_rates.simulate(STORED, truth).set_index(["rule", "blocks"])
        same = np.isclose(RESULTS.sigma, truth.sigma, atol=1e-4) & (RESULTS.fall == truth.fall)
        kept = RESULTS[same & (RESULTS.noise == truth.noise)].set_index(["rule", "blocks"])
        assert len(kept) == len(RULES) * len(STORED.settings["blocks"])
        for column in ("mean_blocks", "sd", *error_rates.COVERAGES, *error_rates.CLAIMS):
            np.testing.assert_allclose(kept[column], again.loc[kept.index, column], rtol=1e-3, atol=3e-4)


def test_planning_and_calibration_speak_of_the_same_fall():
    """The large fall of the power figure and of `falloff plan` is the one that was planted."""
    assert STORED.settings["large_fall"] == planning.LARGE_FALL


def test_the_stored_results_cover_the_whole_plan():
    """Every noise, sigma, fall, rule and number of blocks, with as many campaigns as asked for."""
    assert len(RESULTS) == len(STORED.truths()) * len(RULES) * len(STORED.settings["blocks"])
    assert (RESULTS.campaigns == STORED.settings["campaigns"]).all() and RESULTS.campaigns.min() >= 4000


@pytest.mark.parametrize("rule", ["fixed", "invalid blocks"])
def test_the_stored_goals_hold_without_looking(rule):
    """Error rates hold in every cell, also with Holm; coverage misses only by too wide intervals."""
    rows = RESULTS[RESULTS.rule == rule]
    for measure in ("flat", "falls_off"):
        assert missed(at_the_goal(rows, measure), measure).empty
    for measure in ("wrong_flat", "wrong_falls_off"):
        assert missed(at_the_goal(rows, measure), f"{measure}_holm").empty
    misses = missed(rows, "coverage_95")
    assert set(misses.noise) <= {"outliers"} and (misses.coverage_95 > COVERAGE[1]).all()


@pytest.mark.parametrize("rule", ["two stages", "precision"])
def test_looking_at_the_data_costs_what_is_said(rule):
    """Rules that look call a fall of the margin flat more often than a fixed number of blocks does."""
    chances = at_the_goal(RESULTS, "flat").query("noise == 'normal'").groupby("rule").flat.max()
    assert chances[rule] > chances["fixed"] > AT_MOST / 2


def test_results_do_not_depend_on_the_workers(tmp_path, monkeypatch, capsys):
    """The file of several processes is, byte for byte, that of one after the other."""
    settings = (error_rates.FOLDER / "calibration.toml").read_text(encoding="utf-8")
    few = {"campaigns": "50", "noises": '["normal"]', "run_sigmas": "[0.02]", "blocks": "[3]"}
    for name, value in few.items():
        settings = re.sub(rf"(?m)^{name} = [^#\n]*", f"{name} = {value} ", settings)
    (tmp_path / "calibration.toml").write_text(settings, encoding="utf-8")
    monkeypatch.setattr(error_rates, "FOLDER", tmp_path)
    error_rates.main()
    small = error_rates.load()
    one_by_one = pd.concat([error_rates.simulate(small, truth) for truth in reversed(small.truths())][::-1])
    assert (tmp_path / "error_rates.csv").read_text(encoding="utf-8") == error_rates.as_csv(one_by_one)
    assert "24 cells of 50 campaigns" in capsys.readouterr().out


def test_figures_show_the_worst_cells():
    """Each panel holds every noise's worst rates; axes say what they show, noises differ without colour."""
    figure = figures.error_rates(RESULTS)
    panels = np.reshape(figure.axes, (len(figures.MEASURES), len(figures.RULES)))
    cells = at_the_goal(RESULTS[RESULTS.rule == "two stages"], "flat")
    shown = np.concatenate([line.get_ydata() for line in panels[1, 1].lines])
    for _, rows in cells.groupby(["noise", "blocks"]):
        assert np.isclose(shown, 100 * worst(rows, "flat").flat).any()
    assert all("[%]" in row[0].get_ylabel() for row in panels)
    looks = figures.NOISES.values()
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(looks)


def test_the_power_figure_marks_the_campaign():
    """A ring at its own number of blocks, and none where its scatter is not known."""

    def rings(figure):
        return [line for axes in figure.axes for line in axes.lines if to_hex(line.get_mfc()) == "#ffffff"]

    (left, right) = rings(figures.power_over_blocks(0.1, 12, 0.05, 0.13))
    assert left.get_xdata() == right.get_xdata() == 12 and left.get_ydata() < right.get_ydata()
    assert not rings(figures.power_over_blocks(None, 1, 0.05, 0.13))


def test_the_section_names_the_goals_that_are_missed():
    """The template quotes each rule's numbers, the misses, and the campaign's power where it is known."""
    verdict = judge_fall([-0.2, 0.0, -0.05, -0.1], 0.05, "emulated")
    known = collect(STORED, RESULTS, verdict)
    said = templates().get_template("calibration.md.j2").render(calibration=known)
    for rule in RULES:
        assert f"| {rule} |" in said
        for measure in ("coverage_95", "flat", "falls_off"):
            count = known["rules"][rule][measure]["missed"]
            assert (f"missed in {count} of" in said) or not count
    assert "*two stages*, flat at the margin: missed" in said and "*fixed*, flat" not in said
    assert "{#fig:calibration" in said and "{#fig:power" in said and "In the scaling campaign" in said
    single = collect(STORED, RESULTS, judge_fall([-0.2], 0.05, "emulated"))
    assert "In the scaling campaign" not in templates().get_template("calibration.md.j2").render(calibration=single)
