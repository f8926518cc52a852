"""The explorer without a browser: what it lists, shows, judges, puts into an address, exports,
predicts and refuses.
"""

import os
import runpy
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import foreign_hpl
import numpy as np
import own_results
import pandas as pd
import pytest
import synthetic
import xarray as xr
from command_line import ROOT, run
from marks import the_rest_is_long
from shown import failed
from undisturbed import within

from analysis import experiment, paths
from analysis.dataset import store
from analysis.dataset.contrasts import contrasts
from analysis.dataset.derive import points
from analysis.explorer import data, pieces, plot, server, static
from analysis.explorer.page import Page
from analysis.explorer.view import (
    PageContent,
    address,
    again,
    at_address,
    first_of,
    opening,
    settled,
)
from analysis.imports import importing
from analysis.statistics.judgement import REFUSED
from runners.records.record import Execution, FalloffError, Transcript, Trial

# What an opening view's title speaks of, where it is not what HPL's own campaigns show: vertical
# and horizontal axis.
TITLES = {
    "hpl_messages": (
        "messages that all ranks sent, by size",
        "least size of a class of messages [B]",
    ),
    "mtu_cpu": (
        "CPU time of all nodes [s]",
        "MTU of the hosts' interfaces [B]",
    ),
    "token_exchange": ("tokens written by all pairs", "pairs of nodes"),
    "oversubscription": ("time until all flows had arrived", "which nodes send to which"),
    "hpl_paper_sensitivity": ("efficiency, Rmax / Rpeak [%]", "change to the model"),
    "frame_size_limit": ("largest frame that was carried", ""),
    "frame_size_rate": ("datagrams received", ""),
}


@cache
def stored(name):
    """The first view of an experiment of the reference."""
    return first_of(data.experiments(ROOT / "data" / "reference")[name])


def of(trials, **changes):
    """The first view of trials, with changes."""
    return PageContent(settled(replace(opening("x", trials), **changes), trials), trials)


@pytest.mark.parametrize("step", the_rest_is_long([6, 1], [6]))
def test_every_reference_campaign_is_listed_and_can_be_drawn(step):
    """None is missing; each begins with points, axes that answer its title, a sentence that names
    its evidence, series that look different, and labels that are no code."""
    listed = data.experiments(ROOT / "data" / "reference")
    folders = {folder.parent.name for folder in ROOT.glob("data/reference/*/trials.json")}
    assert {source.path.name for source in listed.values()} == folders
    assert next(iter(listed)) == data.FIRST
    for name, source in [*listed.items()][::step]:
        shown = first_of(source)
        drawn, sentence = plot.draw(shown), shown.judgement.sentence
        layers = {renderer.data_source.name for renderer in drawn.renderers}
        assert np.isfinite(shown.summary["mean"]).any() and "points" in layers, name
        assert f"{shown.trials.evidence} evidence" in sentence or "nothing to compare" in sentence
        axes = drawn.yaxis[0].axis_label, drawn.xaxis[0].axis_label
        assert all(map(str.startswith, axes, TITLES.get(name, ("", "")))), name
        series = [item.label.value for item in drawn.legend[0].items]
        ticks = [label.text for label in drawn.xaxis[0].major_label_overrides.values()]
        labels = [*series, *ticks, *axes]
        assert not [label for label in labels if "_" in label or "=" in label], name
        looks = plot.looks(shown)
        assert len({looks[level] for level in shown.view.shown}) == len(shown.view.shown), name
    assert (
        plot.looks(stored("hpl_scaling"))["gige"].color == "#D55E00"
    )  # as in the report's figures


def test_the_verdict_is_the_studys_own():
    """The page says what `contrasts` judges, blocks, interval and all; with every block judged anew
    it is the same.
    """
    verdict = contrasts(points(experiment.stored("hpl_scaling")))[0].verdict
    shown = stored("hpl_scaling")
    low, high = (f"{100 * end:.1f}" for end in verdict.interval)
    assert shown.judgement.word == verdict.answer
    assert f"{100 * verdict.fall:.1f}" in shown.judgement.sentence
    assert f"{low}\u00a0to\u00a0{high}" in shown.judgement.sentence
    anew = of(shown.trials, without_blocks=(99,)).judgement
    assert (anew.sentence, anew.word) == (shown.judgement.sentence, shown.judgement.word)
    others = of(shown.trials, shown=("10gige", "unshaped")).judgement
    assert others.sentence.startswith("10GE stays flat against unlimited links")


def test_leaving_out_changes_the_judgement_and_says_so():
    """Without a block n is one less; without an end of the fall there is a ratio, and no
    verdict.
    """
    trials, whole = stored("hpl_scaling").trials, stored("hpl_scaling").judgement
    less = of(trials, without_blocks=(2,)).judgement
    assert "4\u00a0blocks" in whole.sentence and "3\u00a0blocks" in less.sentence and less.word
    assert "Left out by hand: 1" in less.notes[-1] and not whole.notes
    for nodes in (36, 2):
        other = of(trials, without_levels=(nodes,)).judgement
        assert other.word == "" and f"{nodes}\u00a0nodes, left out" in other.notes[0]
    assert of(trials, without_levels=(4,)).judgement.sentence == whole.sentence
    none = of(trials, without_blocks=tuple(range(1, 23))).judgement
    assert none.word == "" and "no trial is left" in none.sentence


def test_only_the_campaigns_own_statements_are_judged():
    """What compares numbers of the model gets a ratio and no verdict; what a failed negative
    control refuses stays refused.
    """
    trials = stored("hpl_paper_sensitivity").trials
    shown = of(trials, x="nodes", series="vary", shown=("none", "latency=low"))
    assert shown.judgement.word == "" and "judges no fall" in shown.judgement.notes[0]
    assert "nothing changed against latency low" in shown.judgement.sentence
    refused = data.trials(synthetic.sequential_campaign(alone=0.3))
    assert of(refused).judgement.word == of(refused, without_blocks=(1,)).judgement.word == REFUSED


def test_kinds_of_evidence_are_never_pooled():
    """A campaign's emulated and simulated datasets are two; one that mixes them is refused."""
    listed = data.experiments(ROOT / "data" / "reference")
    kinds = [data.opened(one).evidence for one in listed.values() if one.campaign == "hpl_size"]
    assert kinds == ["emulated", "simulated"]
    mixed = synthetic.campaign(blocks=2)
    is_odd = np.arange(mixed.sizes["trial"]) % 2
    mixed["evidence"] = "trial", np.where(is_odd, "emulated", "measured")
    with pytest.raises(FalloffError, match="never pooled"):
        data.trials(mixed)


@pytest.mark.parametrize(
    "changes",
    [
        {"y": "retransmits", "log": True, "fixed": (("direction", "reverse"),)},
        {"x": "path", "series": "receivers", "shown": (3, 7), "without_levels": ("fanout_3g",)},
        {"without_blocks": (1, 3), "without_levels": (1, 2)},
    ],
)
def test_a_view_is_its_address(changes):
    """Every view comes back from its address, as JSON in a query."""
    trials, start = stored("fan_out").trials, stored("fan_out").view
    view = settled(replace(start, **changes), trials)
    assert view != start and at_address(address(view, start), start, trials) == view


@pytest.mark.parametrize(
    "text", ["", "null", "{}", "[[]]", '[{"a": 1}]', "7", '"x"', "[null]", "tru"]
)
def test_what_is_no_view_is_the_first_one(text):
    """Whatever part of the address it stands for."""
    trials, start = stored("fan_out").trials, stored("fan_out").view
    for name in (*vars(start), "page"):
        assert at_address([(name, text)], start, trials).y in trials.quantities


def test_the_exported_code_shows_the_same_again(tmp_path, monkeypatch, capsys):
    """Run by itself, it prints the page's sentence and writes the same data and a figure; a dataset
    that is gone is named.
    """
    first = stored("hpl_scaling")
    shown = PageContent(replace(first.view, without_blocks=(2, 5)), first.trials)
    (tmp_path / "view.py").write_text(shown.code)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("view.py")
    assert capsys.readouterr().out.startswith(shown.judgement.sentence)
    table = pd.read_csv("view-trials.csv")
    assert table.counts.tolist() == shown.points.counts.tolist()
    assert "b001" in (tmp_path / "view.html").read_text()
    with pytest.raises(FalloffError, match="gone"):
        again(replace(shown.view, source="data/reference/gone"))


def test_transcripts_are_shown_as_text():
    """A trial's own output is there, and nothing in it is markup."""
    source = data.experiments(ROOT / "data" / "reference")["hpl_scaling"]
    assert "HPLinpack" in pieces.transcript(data.transcript(source, "b001-010-hpl"))
    nasty = Execution("sh", ("sh", "<b>"), "<script>alert(1)</script>", "", 0, 0.0, 1.0)
    trial = Trial("t", "point", "sh", 1, 1, {"a": "<i>" * 40})
    page = pieces.transcript(Transcript(trial, "here", "measured", (nasty,), {}, {"x": "<u>"}))
    assert not [tag for tag in ("<script>", "<i>", "<b>", "<u>") if tag in page]
    assert "&lt;script&gt;" in page and page.count("&lt;i&gt;") == 40
    with pytest.raises(FalloffError, match="no transcript of trial"):
        data.transcript(source, "nonsense")
    long = Execution(
        "hpl",
        (),
        "x\n" * 90_000 + "WR11C2R4 1 1 1 1 0.1 1.0e+00\n" + "y\n" * 90_000,
        "",
        0,
        0.0,
        1.0,
    )
    trial = Trial("t", "point", "hpl", 1, 1, {})
    page = pieces.transcript(Transcript(trial, "here", "measured", (long,), {}, {}))
    assert "<mark>WR11C2R4" in page and page.count("more characters") == 2 and len(page) < 70_000


@pytest.mark.parametrize("what", ["empty", "broken", "foreign"])
def test_a_folder_without_data_gives_a_friendly_page(what, tmp_path):
    """An empty folder, a file that is no netCDF and one that is not ours: a reason and a remedy, no
    traceback.
    """
    if what == "broken":
        (tmp_path / "mine.nc").write_bytes(b"not netCDF at all")
    elif what == "foreign":
        xr.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "mine.nc", engine="netcdf4")
    page = Page(tmp_path)
    assert page.shown is None and page.plot.object is None
    assert "falloff" in page.verdict.text and "Traceback" not in page.verdict.text


def test_imported_runs_are_judged_as_repeats_without_order(tmp_path):
    """Nodes along the axis, efficiency up, and the verdicts that were planted; runs left out by
    hand are told.
    """
    own_results.write_hpl(tmp_path / "results")
    found = importing.read("hpl", [tmp_path / "results"], {})
    trials = data.trials(store.read(importing.keep(found, tmp_path / "mine")))
    shown = of(trials)
    assert (shown.view.x, shown.view.y, shown.view.series) == (
        "nodes",
        "efficiency",
        "interconnect",
    )
    assert shown.view.shown == ("gige", "10gige", "100gige") and set(shown.summary.n) == {3}
    said = shown.judgement.sentence
    assert "GigE falls off" in said and "10GE stays flat" in said and "100GE stays flat" in said
    assert "order of the runs is not known" in shown.judgement.notes[0]
    assert shown.laws["gige"].model.name == "amdahl"
    fewer = of(trials, without_levels=(16,))
    assert "from 1 to 8" in fewer.judgement.sentence and "Left out" in fewer.judgement.notes[-1]


def test_runs_of_several_settings_are_not_judged_as_repeats(tmp_path):
    """One more file on two nodes, with another NB."""
    own_results.write_hpl(tmp_path / "results")
    more = tmp_path / "results" / "1gbe" / "n02" / "run4" / "HPL.out"
    more.parent.mkdir()
    more.write_text(foreign_hpl.output(50.0, NB=64))
    found = importing.read("hpl", [tmp_path / "results"], {})
    trials = data.trials(store.read(importing.keep(found, tmp_path / "mine")))
    finding = of(trials, series="interconnect", shown=("gige",)).judgement
    assert "NB" in finding.sentence and not finding.word
    without = of(trials, series="interconnect", shown=("gige",), without_levels=(2,)).judgement
    assert "falls off from 1 to 16" in without.sentence.replace("\u00a0", " ")


def test_trials_without_a_reading_are_kept_with_their_reason():
    """A failed trial is in the table, does not count, and is no 0."""
    shown = of(data.trials(synthetic.campaign(blocks=3, failed=[(2, "gige", 8)])))
    (failed,) = shown.points[~shown.points.valid].itertuples()
    assert np.isnan(failed.share) and failed.reason and not failed.counts
    assert shown.summary[shown.summary.series == "gige"].n.tolist() == [3, 3, 3, 2]


@pytest.mark.parametrize("levels", [[3], [1, 2, 3], [1, 2, 4, 8, 10**7], [999, 1000, 1001]])
def test_every_level_has_its_own_place_on_the_axis(levels):
    """Numbers stand in order, and no two at one place."""
    shown = stored("hpl_scaling")
    trials = replace(shown.trials, factors={**shown.trials.factors, "nodes": levels})
    places = [*plot.Axis(replace(shown, trials=trials)).places.values()]
    assert places == sorted(set(places)) and len(places) == len(levels)


@pytest.mark.parametrize(
    "changes",
    [{"without_blocks": (2,)}, {"y": "hpl_rate"}, {"shown": ("gige", "unshaped")}, {"log": True}],
)
def test_a_figure_filled_anew_is_as_one_drawn_anew(changes):
    """Data, axis and cards; only another kind of axis or other series make another figure."""
    shown = stored("hpl_scaling")
    changed, before = replace(shown, view=replace(shown.view, **changes)), plot.draw(shown)
    after, anew = plot.draw(changed, before), plot.draw(changed)
    assert (after is before) == (not {"log", "shown"} & {*changes})
    assert ("10GE" in {one.name for one in after.renderers}) == ("shown" not in changes)
    for one, other in zip(after.renderers, anew.renderers, strict=True):
        assert one.name == other.name
        assert pd.DataFrame(one.data_source.data).equals(pd.DataFrame(other.data_source.data))
    for one, other in zip(after.tools, anew.tools, strict=True):
        assert getattr(one, "tooltips", "") == getattr(other, "tooltips", "")
    assert (after.y_range.start, after.y_range.end) == (anew.y_range.start, anew.y_range.end)
    assert after.yaxis[0].axis_label == anew.yaxis[0].axis_label


def test_the_key_is_kept_in_a_file_that_nobody_else_can_read(tmp_path, monkeypatch):
    """So that a bookmark survives a restart; what others could have read is replaced."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    key = server.stable_key()
    (file,) = (tmp_path / "runtime").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and server.stable_key() == key
    file.chmod(0o644)
    other = server.stable_key()
    assert other != key and file.stat().st_mode & 0o777 == 0o600
    file.write_text("../ a")
    assert server.stable_key() not in (other, "../ a")


@pytest.mark.more
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


def test_no_key_is_on_a_command_line(tmp_path):
    """The browser is handed a file that only its user may read, which leads to the page and goes
    with it.
    """
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.part; mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    own = {"BROWSER": f"{browser} %s", "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")}
    command = [sys.executable, str(ROOT / "falloff.py"), "explore", str(tmp_path)]
    looks = {"stdout": subprocess.PIPE, "env": {**os.environ, "PYTHONPATH": str(ROOT), **own}}
    with subprocess.Popen(command, text=True, **looks) as running:
        address = running.stdout.readline().split()[-1]
        assert within(30, seen.exists)
        handed = seen.read_text().strip()
        page = Path(handed.removeprefix("file://"))
        assert handed.startswith("file://") and address.split("/")[3] not in handed
        assert address in page.read_text() and page.stat().st_mode & 0o777 == 0o600
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == 0 and not page.exists()


@pytest.mark.parametrize("arguments", [["none", "--no-browser"], [".", "--static", "x.html"]])
def test_command_refuses_in_a_line(arguments, tmp_path):
    """A folder that is not there, and a static page of nothing: one line, exit code 1."""
    folder, option, *file = arguments
    done = run("explore", str(tmp_path / folder), option, *(str(tmp_path / name) for name in file))
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("falloff: ") and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("campaign", "quantity"),
    [("program", "program_time"), ("replay_examples", "replay_time"), ("congestion", "p99_loaded")],
)
def test_a_page_opens_with_what_its_tool_measures(campaign, quantity):
    """Not with the time that a trial took on this machine; nodes in slow motion are paced."""
    shown = first_of(data.experiments(paths.REFERENCE)[campaign])
    assert shown.view.y == quantity and "not paced" not in shown.trials.dataset.attrs["caveat"]


def test_a_static_page_holds_runs_without_any_reading(tmp_path):
    """Such as those that a busy machine refused, one and all: the page says so, and shows the
    others.
    """
    runs = experiment.stored("ping_pong")
    refused = failed(runs, "machine-busy: the trials waited").assign(wall_time=runs.wall_time)
    store.save(refused, tmp_path / "busy.nc")
    store.save(runs, tmp_path / "good.nc")
    static.write(tmp_path, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1e5
