"""HPL over nodes: planted falls come back, bad news stands beside the verdicts, and today's run is judged fairly."""

import json
import re
from functools import cache

import numpy as np
from synthetic import campaign, sequential_campaign

from analysis.experiments import hpl_scaling
from analysis.exhibit import without_result
from analysis.fitting.compare import laws


@cache
def planted():
    """Nine blocks of the planned campaign: GigE falls by 13 %, 10GE does not; and a short run of the same truth."""
    quick = sequential_campaign(blocks=3, noise=0.003, seed=5, looks=(3,), one_sided=0.04)
    return hpl_scaling.analyse(sequential_campaign(noise=0.003), quick)


@cache
def with_a_failure():
    """Four blocks, of which the second lacks GigE's run on 8 nodes."""
    return hpl_scaling.analyse(campaign(blocks=4, noise=0.01, failed=[(2, "gige", 8)]))


def words(study):
    return hpl_scaling.finding(study).replace("\u00a0", " ")


def shown(figure, axis="y"):
    """All values of a figure's marks and lines on one axis."""
    lines = figure.axes[0].lines
    return np.concatenate([np.asarray(getattr(line, f"get_{axis}data")(), float) for line in lines])


def holds_all(found, wanted):
    return all(np.isclose(found, value, rtol=1e-9).any() for value in wanted)


def test_planted_falls_are_told_with_their_numbers():
    """The answer, the size and the interval of each planned statement, in its order."""
    said = words(planted())
    falls_off = r"\*\*GigE falls off\*\*: against 10GE, HPL loses 1[23]\.\d % of its rate from 2 to 8 nodes \(96 % interval"
    assert re.search(falls_off, said) and "9 blocks, margin 5 %, emulated evidence" in said
    assert re.search(
        r"\*\*10GE stays flat\*\* against control from 2 to 8 nodes: HPL (loses|gains)", said
    )
    assert (
        said.index("GigE falls off")
        < said.index("10GE stays flat")
        < said.index("from 8 to 16 nodes")
    )
    assert "the networks are equally fast within" in said


def test_a_gain_is_told_with_the_interval_of_the_gain():
    """A fall of -1 % from -2 to -0.5 % is a gain of 1 % from 0.5 to 2 %."""
    study = hpl_scaling.analyse(sequential_campaign(noise=0.001, falls=(0.13, 0.0, -0.02)))
    gain = re.search(r"HPL gains (\S+) % \(96 % interval (\S+) to (\S+) %\)", words(study))
    low, high = float(gain[2]), float(gain[3])
    assert 0 < low < float(gain[1]) < high


def test_a_failed_negative_control_gives_no_verdict():
    """Networks that differ where none is used: the finding begins with that, and no fall is told."""
    study = hpl_scaling.analyse(sequential_campaign(noise=0.003, alone=0.08))
    assert {contrast.verdict.answer for contrast in study.contrasts} == {"refused"}
    said = words(study)
    assert said.startswith("**No verdict is given, because the negative control failed.**")
    assert "falls off" not in said and re.search(
        r"GigE has 0\.9[12]\d times the rate of 10GE", said
    )


def test_open_statements_are_told_without_numbers():
    """Runs that scatter by 20 % leave the fall open; its estimate is in the table only."""
    study = hpl_scaling.analyse(sequential_campaign(noise=0.2))
    assert "Whether GigE falls against 10GE from 2 to 8 nodes is open." in words(study)
    assert " loses " not in words(study) and " gains " not in words(study)


def test_left_out_runs_stand_beside_the_verdict():
    """How many runs are invalid, how many blocks that leaves, and what every valid run would say."""
    study = with_a_failure()
    said = words(study)
    assert "1 of 48 runs is invalid." in said and "of the 4 blocks" in said
    every = dict(zip((it.what for it in study.contrasts), study.with_every_run))
    assert [every[it.what].blocks for it in study.contrasts] == [3, 3, 4]
    assert [row[-1] for row in hpl_scaling.falls_table(study).rows][2].endswith("(4)")
    assert "planted fault" in without_result(study.dataset).body
    whole = hpl_scaling.analyse(campaign(blocks=2))
    assert "invalid" not in words(whole) and without_result(whole.dataset) is None


def test_a_link_that_the_machine_limits_is_told():
    """10GE is planted at 9.2 Gbit/s, 98 % of its wire; at 8 Gbit/s the machine limits it."""
    dataset = campaign(blocks=2)
    assert "The machine limits" not in words(hpl_scaling.analyse(dataset))
    slow = dataset.goodput.where(dataset.interconnect != "10gige", 8e9)
    said = words(hpl_scaling.analyse(dataset.assign(goodput=slow)))
    assert (
        "The machine limits 10GE: one link carries 85 % of what its wire allows (8.00 Gbit/s)."
        in said
    )
    assert "GigE: one link" not in said


def test_today_agrees_only_where_it_could_have_disagreed():
    """The same truth agrees; one that does not fall disagrees; one that scatters is too short to say."""
    assert "**Today's run agrees** on GigE / 10GE from 2 to 8 nodes" in words(planted())
    level = sequential_campaign(
        blocks=3, noise=0.003, falls=(0.0, 0.0, 0.0), looks=(3,), one_sided=0.04
    )
    other = hpl_scaling.analyse(planted().dataset, level)
    assert "**Today's run disagrees** on GigE / 10GE from 2 to 8 nodes (3 blocks)." in words(other)
    scattered = sequential_campaign(blocks=3, noise=0.1, looks=(3,), one_sided=0.04)
    short = words(hpl_scaling.analyse(planted().dataset, scattered))
    assert (
        "Today's run is too short to judge GigE / 10GE from 2 to 8 nodes" in short
        and "agrees" not in short
    )


def test_today_says_what_it_did_not_run():
    """A run on 2 and 8 nodes has no statement on 16."""
    design = json.loads(planted().dataset.attrs["design"])
    quick = sequential_campaign(blocks=3, noise=0.003, seed=5, looks=(3,), one_sided=0.04)
    few = {**json.loads(quick.attrs["design"]), "primary": design["primary"][:2]}
    few["factors"] = {**few["factors"], "nodes": [2, 8]}
    quick = quick.isel(trial=np.isin(quick.nodes, (2, 8)) | (quick.role == "survey").values)
    study = hpl_scaling.analyse(planted().dataset, quick.assign_attrs(design=json.dumps(few)))
    assert "It has no runs for GigE / 10GE from 8 to 16 nodes." in words(study)
    rows = {row[0]: row[1] for row in hpl_scaling.today_table(study).rows}
    assert rows["GigE / 10GE from 8 to 16 nodes"] == "not run"
    assert rows["GigE / 10GE from 2 to 8 nodes"] == "reproduced"
    assert hpl_scaling.today_table(with_a_failure()) is None


def test_findings_are_the_judgements():
    """Every statement with its own numbers, the planned ones with today's answer, then their controls."""
    found = list(hpl_scaling.findings(planted()))
    for finding, contrast in zip(found, planted().contrasts):
        assert (
            finding.estimate == contrast.verdict.fall
            and finding.interval == contrast.verdict.interval
        )
    assert [it.answer for it in found if it.primary] == ["falls off", "flat", "flat"]
    assert found[0].today["answer"] == "reproduced" and found[0].today["n"] == 3
    controls = [it for it in found if it.quantity == "ratio"]
    assert [it.answer for it in controls] == ["the same"] * 2


def test_one_block_decides_nothing():
    """A single block has points, no interval and no verdict."""
    study = hpl_scaling.analyse(campaign(blocks=1))
    assert {contrast.verdict.answer for contrast in study.contrasts} == {"undecided"}
    assert "interval 9" not in words(study)


def test_the_method_is_that_of_the_data():
    """What is not emulated is not told as emulated."""
    assert "emulated nodes on one machine" in hpl_scaling.method(planted())
    dataset = campaign(blocks=2)
    real = dataset.assign_coords(
        evidence=dataset.evidence.copy(data=np.full(dataset.sizes["trial"], "measured"))
    )
    said = hpl_scaling.method(hpl_scaling.analyse(real))
    assert said.startswith("HPL runs on the nodes of the cluster") and "emulated nodes" not in said


def test_the_share_figure_shows_every_run_and_mean():
    """Each share is a mark, in percent, in its network's colour; no curve joins them."""
    study = with_a_failure()
    figure = hpl_scaling.figures(study)["share"].figure
    values = 100 * study.points.share.values.ravel()
    assert holds_all(shown(figure), values[np.isfinite(values)])
    assert holds_all(shown(figure), 100 * study.shares.ratio.values.ravel())
    assert all(
        len(line.get_xdata()) == 0 or line.get_linestyle() == "None"
        for line in figure.axes[0].lines
    )


def test_the_falls_figure_shows_blocks_answers_and_today():
    """Each block's fall is a mark, each answer a word, and today's mean a mark of its own where there is one."""
    study = planted()
    axes = hpl_scaling.figures(study)["falls"].figure.axes[0]
    for contrast in study.contrasts:
        falls = -100 * np.expm1(contrast.differences.dropna("block").values)
        assert holds_all(shown(axes.figure, "x"), falls)
    assert [text.get_text() for text in axes.texts] == [it.verdict.answer for it in study.contrasts]
    assert [line.get_label() for line in axes.lines].count("today") == len(study.today)
    other = hpl_scaling.figures(with_a_failure())["falls"].figure.axes[0]
    assert "today" not in [line.get_label() for line in other.lines]


def test_a_law_that_made_the_data_follows_them():
    """A power law of the share follows; the straight line of a constant share does not."""
    study = with_a_failure()
    exact = study.points.share.copy()
    exact[:] = study.points.nodes**-0.2
    found = {
        it.comparison.model.name: it
        for it in laws(study.points.assign(share=exact))
        if it.interconnect == "gige"
    }
    assert found["power_law"].follows and found["power_law"].miss < 1e-6
    assert not found["constant"].follows and found["constant"].miss > 0.1


def test_a_figure_without_curves_says_why():
    """Where no law follows a network, the caption names it."""
    study = planted()
    without = {it.interconnect for it in study.laws} - {
        it.interconnect for it in study.laws if it.follows
    }
    caption = hpl_scaling.figures(study)["share"].caption
    assert ("No curve is drawn" in caption) == bool(without)
