"""The explorer without a browser: what it lists, shows, judges, puts into an address, exports and refuses."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import synthetic
import xarray as xr
from command_line import ROOT, run
from hypothesis import given
from hypothesis import strategies as st

import experiment
from analysis.contrasts import contrasts
from analysis.derive import points
from analysis.explorer import data, pieces, plot
from analysis.explorer.page import Page
from analysis.explorer.view import (
    Shown,
    View,
    address,
    again,
    at_address,
    first_of,
    opening,
    settled,
)
from analysis.fitting.block_fit import fit_blocks
from analysis.models import find
from analysis.statistics.judgement import REFUSED
from runners.record import Execution, FalloffError, Transcript, Trial


@cache
def stored(name):
    """The first view of an experiment of the reference."""
    return first_of(data.experiments()[name][0])


def of(trials, **changes):
    """The first view of trials, with changes."""
    return Shown(settled(replace(opening("x", trials), **changes), trials), trials)


def test_every_reference_campaign_is_listed_and_can_be_drawn():
    """No campaign is missing; each begins with points, a sentence that names its evidence, and labels that are no code."""
    listed = data.experiments()
    folders = {source.path.name for sources in listed.values() for source in sources}
    assert folders >= {folder.parent.name for folder in ROOT.glob("data/reference/*/trials.json")}
    assert next(iter(listed)) == data.FIRST
    for name in listed:
        shown = stored(name)
        drawn, sentence = plot.draw(shown), shown.judgement.sentence
        layers = {renderer.data_source.name for renderer in drawn.renderers}
        assert np.isfinite(shown.summary["median"]).any() and "points" in layers, name
        assert f"{shown.trials.evidence} evidence" in sentence or "nothing to compare" in sentence
        series = [item.label.value for item in drawn.legend[0].items]
        labels = [
            *series,
            *drawn.xaxis[0].major_label_overrides.values(),
            drawn.xaxis[0].axis_label,
            drawn.yaxis[0].axis_label,
        ]
        assert not [label for label in labels if "_" in label or "=" in label], name


@pytest.mark.parametrize(
    ("name", "y", "x"),
    [
        ("hpl_payload", "messages that all ranks sent, by size", "message size [B]"),
        ("tcp_cost", "CPU time of all nodes [s]", "MTU [B]"),
        ("token_exchange", "tokens written by all pairs", "pairs of nodes"),
        ("topology", "time until all flows had arrived", "which nodes send to which"),
        ("hpl_sensitivity", "efficiency, Rmax / Rpeak [%]", "change to the model"),
    ],
)
def test_an_opening_view_answers_its_title(name, y, x):
    """The axes are what the title speaks of."""
    drawn = plot.draw(stored(name))
    assert drawn.yaxis[0].axis_label.startswith(y) and drawn.xaxis[0].axis_label.startswith(x)


def test_the_verdict_is_the_studys_own():
    """The page says what `contrasts` judges, blocks, interval and all; with every block judged anew it is the same."""
    verdict = contrasts(points(experiment.stored("hpl_scaling")))[0].verdict
    shown = stored("hpl_scaling")
    assert shown.judgement.word == verdict.answer
    low, high = (f"{100 * end:.1f}" for end in verdict.interval)
    assert f"{100 * verdict.fall:.1f}" in shown.judgement.sentence
    assert f"{low}\u00a0to\u00a0{high}" in shown.judgement.sentence
    anew = of(shown.trials, without_blocks=(99,)).judgement
    assert (anew.sentence, anew.word) == (shown.judgement.sentence, shown.judgement.word)


def test_the_curve_is_the_experiments_own_model_in_its_own_unit():
    """TCP's window model, fitted to bit/s and shown in Gbit/s; another quantity or axis has no curve at all."""
    shown = stored("long_path")
    series, fit = next((series, fit) for series, (fit, _) in shown.fits.items() if fit)
    values = 1e9 * shown.values.sel(series=series)
    fitted = fit_blocks(find("bandwidth_delay"), values.x.values.astype(float), values)
    assert fit.estimates == pytest.approx(fitted.estimates)
    x = np.array([65536.0, 1048576.0])
    np.testing.assert_allclose(shown.band(fit, x)[0], fitted.band(x, "cost")[0] / 1e9)
    others = [of(shown.trials, y="retransmits"), of(shown.trials, x="direction"), stored("fan_out")]
    assert not any(other.fits for other in others)


@pytest.mark.parametrize(
    ("name", "fixed", "levels", "value"),
    [
        ("tcp_mtu", {"direction": "forward"}, {"path": "crossover", "mtu": 1500}, 114905.40 * 8192 / 1e9),
        ("hpl_paper", {}, {"interconnect": "10gige", "nodes": 36}, 80),
        ("frame_limits", {}, {"path": "switch_8996", "load": 0}, 8996),
    ],
)  # fmt: skip
def test_printed_numbers_stand_beside_the_trials(name, fixed, levels, value):
    """At their level and in the axis's unit, with the place where they are printed; no trial of the table is one."""
    shown = of(stored(name).trials, fixed=tuple(fixed.items()))
    printed = shown.published
    ((_, row),) = printed.loc[
        (printed[list(levels)] == list(levels.values())).all(axis=1)
    ].iterrows()
    assert row["value"] == pytest.approx(value) and row["text"]
    assert set(shown.points.trial_id) <= set(shown.trials.frame.trial_id)


def test_leaving_out_changes_the_judgement_and_says_so():
    """Without a block n is one less; without an end of the fall there is a ratio, and no verdict."""
    trials, whole = stored("hpl_scaling").trials, stored("hpl_scaling").judgement
    less = of(trials, without_blocks=(2,)).judgement
    assert "4\u00a0blocks" in whole.sentence and "3\u00a0blocks" in less.sentence and less.word
    assert "Left out by hand: 1" in less.notes[-1] and not whole.notes
    for nodes in (8, 2):
        other = of(trials, without_levels=(nodes,)).judgement
        assert other.word == "" and f"{nodes}\u00a0nodes, left out" in other.notes[0]
    assert of(trials, without_levels=(4,)).judgement.sentence == whole.sentence
    none = of(trials, without_blocks=tuple(range(1, 23))).judgement
    assert none.word == "" and "no trial is left" in none.sentence


def test_a_refused_verdict_stays_refused():
    """Where the negative control failed, no choice of blocks makes a verdict."""
    trials = data.trials(synthetic.sequential_campaign(alone=0.3))
    assert of(trials).judgement.word == of(trials, without_blocks=(1,)).judgement.word == REFUSED


def test_kinds_of_evidence_are_never_pooled():
    """A campaign's emulated and simulated datasets are two; one that mixes them is refused."""
    kinds = [data.opened(source).evidence for source in data.experiments()["hpl_size"]]
    assert kinds == ["emulated", "simulated"]
    mixed = synthetic.campaign(blocks=2)
    mixed["evidence"] = (
        "trial",
        np.where(np.arange(mixed.sizes["trial"]) % 2, "emulated", "measured"),
    )
    with pytest.raises(FalloffError, match="never pooled"):
        data.trials(mixed)


def test_only_the_campaigns_own_comparison_is_judged_as_a_fall():
    """What compares numbers of the model gets a ratio and no verdict."""
    changes = {"x": "nodes", "series": "vary", "network": "latency=low", "reference": "none"}
    shown = of(stored("hpl_sensitivity").trials, **changes, shown=("none", "latency=low"))
    assert shown.judgement.word == "" and "judges no fall" in shown.judgement.notes[0]
    assert "latency low against nothing changed" in shown.judgement.sentence


@given(st.data())
def test_a_view_is_its_address(drawn):
    """Every view comes back from its address, as JSON in a query; what is no view is the first one."""
    trials, start = stored("fan_out").trials, stored("fan_out").view
    x, series = drawn.draw(st.permutations(list(trials.factors)))[:2]
    some = lambda levels: st.lists(st.sampled_from(levels), unique=True).map(tuple)  # noqa: E731
    choose = {
        "y": st.sampled_from(list(trials.quantities)),
        "shown": some(trials.factors[series]),
        "without_levels": some(trials.factors[x]),
        "without_blocks": some([1, 2, 3]),
        "log": st.booleans(),
        "fixed": st.just((("direction", "reverse"),)),
    }
    changes = {name: drawn.draw(values) for name, values in choose.items()}
    view = settled(replace(start, x=x, series=series, **changes), trials)
    assert at_address(address(view, start), start, trials) == view
    name = drawn.draw(st.sampled_from([*View.__dataclass_fields__, "page"]))
    texts = ["", "null", "{}", "[[]]", '[{"a": 1}]', "7", '"x"', "[null]", "tru"]
    nonsense = at_address([(name, drawn.draw(st.sampled_from(texts)))], start, trials)
    assert nonsense.y in trials.quantities


def test_the_exported_code_shows_the_same_again(tmp_path):
    """Run by itself, it prints the page's sentence and writes the same data and a figure; a dataset that is gone is named."""
    first = stored("hpl_scaling")
    shown = Shown(replace(first.view, without_blocks=(2, 5)), first.trials)
    (tmp_path / "view.py").write_text(shown.code('A "title" \\ of mine'))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    looks = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "view.py"], **looks)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(shown.judgement.sentence)
    table = pd.read_csv(tmp_path / "view-trials.csv")
    assert table.counts.tolist() == shown.points.counts.tolist()
    assert "b001" in (tmp_path / "view.html").read_text()
    with pytest.raises(FalloffError, match="gone"):
        again(replace(shown.view, source="data/reference/gone"))


def test_transcripts_are_shown_as_text():
    """A trial's own output is there, and nothing in it is markup."""
    source = data.experiments()["hpl_scaling"][0]
    assert "HPLinpack" in pieces.transcript(data.transcript(source, "b001-010-hpl"))
    nasty = Execution("sh", ("sh", "<b>"), "<script>alert(1)</script>", "", 0, 0.0, 1.0)
    trial = Trial("t", "point", "sh", 1, 1, {"a": "<i>" * 40})
    page = pieces.transcript(Transcript(trial, "here", "measured", (nasty,), {}, {"x": "<u>"}))
    assert not [tag for tag in ("<script>", "<i>", "<b>", "<u>") if tag in page]
    assert "&lt;script&gt;" in page and page.count("&lt;i&gt;") == 40
    with pytest.raises(FalloffError, match="no transcript of trial"):
        data.transcript(source, "nonsense")


@pytest.mark.parametrize("what", ["empty", "broken", "foreign"])
def test_a_folder_without_data_gives_a_friendly_page(what, tmp_path):
    """An empty folder, a file that is no netCDF and one that is not ours: a reason and a remedy, no traceback."""
    if what == "broken":
        (tmp_path / "mine.nc").write_bytes(b"not netCDF at all")
    elif what == "foreign":
        xr.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "mine.nc", engine="netcdf4")
    page = Page(tmp_path)
    assert page.shown is None and page.plot.object is None
    assert "falloff" in page.verdict.text and "Traceback" not in page.verdict.text


def test_imported_runs_have_no_verdict():
    """Order and blocks of imported runs are not known: they are shown, and neither judged nor fitted."""
    runs = synthetic.campaign(blocks=3)
    runs["testbed"] = "trial", np.full(runs.sizes["trial"], "imported")
    runs.attrs["design"] = json.dumps({"factors": {}})
    shown = of(data.trials(runs))
    assert shown.judgement.word == "" and "no verdict" in shown.judgement.sentence
    assert set(shown.summary.n) == {3} and not shown.fits


def test_trials_without_a_reading_are_kept_with_their_reason():
    """A failed trial is in the table, does not count, and is no 0."""
    shown = of(data.trials(synthetic.campaign(blocks=3, failed=[(2, "gige", 8)])))
    (failed,) = shown.points[~shown.points.valid].itertuples()
    assert np.isnan(failed.share) and failed.reason and not failed.counts
    assert shown.summary[shown.summary.series == "gige"].n.tolist() == [3, 3, 3, 2]


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=12, unique=True))
def test_every_level_has_its_own_place_on_the_axis(levels):
    """Numbers stand in order, and no two at one place."""
    shown = stored("hpl_scaling")
    trials = replace(shown.trials, factors={**shown.trials.factors, "nodes": sorted(levels)})
    axis = plot.Axis(replace(shown, trials=trials))
    places = [axis.places[level] for level in sorted(levels)]
    assert places == sorted(places) and len(set(places)) == len(levels)


@pytest.mark.parametrize("name", ["token_exchange", "hpl_noise", "hpl_sensitivity"])
def test_each_series_has_its_own_colour(name):
    """Interconnects look as in the report's figures; levels without a look of their own differ from all others."""
    colors = [look.color for look in plot.looks(stored(name))]
    assert len(set(colors)) == len(colors) > 4
    assert plot.looks(stored("hpl_scaling"))[0].color == "#D55E00"


def test_command_ends_quietly_when_interrupted(tmp_path):
    """It prints an address, and Ctrl+C ends it with nothing more said."""
    command = [sys.executable, str(ROOT / "falloff.py"), "explore", str(tmp_path), "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    looks = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command, **looks) as running:
        assert "http://127.0.0.1:" in running.stdout.readline()
        assert "Ctrl+C" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == 0 and running.stderr.read() == ""


@pytest.mark.parametrize("arguments", [["none", "--no-browser"], [".", "--static", "x.html"]])
def test_command_refuses_in_a_line(arguments, tmp_path):
    """A folder that is not there, and a static page of nothing: one line, exit code 1."""
    folder, option, *file = arguments
    done = run("explore", str(tmp_path / folder), option, *(str(tmp_path / name) for name in file))
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("falloff: ") and not list(tmp_path.iterdir())
