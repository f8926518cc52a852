"""The explorer without a browser: what it lists, shows, judges, exports and refuses."""

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
from analysis import store
from analysis.contrasts import contrasts
from analysis.derive import points
from analysis.explorer import axes, estimates, export, marks, printed, sources, transcripts
from analysis.explorer.page import Page
from analysis.explorer.shown import again, show
from analysis.explorer.view import first
from analysis.fitting.block_fit import fit_blocks
from analysis.models import find
from runners.record import Execution, FalloffError, Transcript, Trial


@cache
def one_block():
    """The trials of a synthetic campaign of one block."""
    return sources.trials(synthetic.campaign(blocks=1))


@pytest.fixture(scope="module")
def reference():
    """The experiments of the reference, by name."""
    return {it.name: it for it in sources.experiments()}


def first_view(experiment_: sources.Experiment):
    """An experiment's first view and its trials."""
    opened = {it.name: sources.opened(it) for it in experiment_.sources[:1]}
    return first(tuple(opened), next(iter(opened.values()))), opened


def test_every_reference_campaign_is_listed_and_has_a_view(reference):
    """No campaign is missing, and each begins with points, a label with a unit where there is one, and a sentence."""
    assert {source.path.name for it in reference.values() for source in it.sources} >= {
        folder.name for folder in (ROOT / "data" / "reference").iterdir() if folder.is_dir()
    }
    assert next(iter(reference)) == sources.FIRST
    for name in ("hpl_scaling", "frame_limits", "long_repeats", "hpl_topology", "token_nodes"):
        view, opened = first_view(reference[name])
        shown = show(view, opened)
        assert any(np.isfinite(it.summary["median"]).any() for it in shown.curves), name
        assert shown.text and "evidence" in shown.text


def test_the_verdict_is_the_studys_own(reference):
    """The page judges what `contrasts` judges, number for number, and its bands are those of `fit_blocks`."""
    view, opened = first_view(reference["hpl_scaling"])
    shown = show(replace(view, model="universal_scalability"), opened)
    derived = points(experiment.stored("hpl_scaling"))
    (judged,) = shown.judgements.values()
    expected = contrasts(derived)[0].verdict
    assert judged.fall.answer == expected.answer and judged.blocks == expected.blocks
    assert judged.fall.fall == pytest.approx(expected.fall) and judged.fall.interval == pytest.approx(
        expected.interval
    )
    worth = (derived.nodes * derived.share).sel(interconnect="gige").transpose("block", "nodes")
    fitted = fit_blocks(find("universal_scalability"), derived.nodes.values.astype(float), 100 * worth.values)
    x = np.array([1.0, 3.0, 8.0])
    np.testing.assert_allclose(shown.fitted[0].band(x)[0], fitted.band(x, "ratio")[0] / x)


@pytest.mark.parametrize(
    ("name", "fixed", "levels", "value"),
    [
        ("tcp_mtu", {"direction": "forward"}, {"path": "crossover", "mtu": 1500}, 114905.40 * 8192 / 1e9),
        ("hpl_paper", {}, {"interconnect": "10gige", "nodes": 36}, 80),
        ("token_exchange", {"pairs": 7}, {"path": "local_wire_10m", "token_bytes": 8192}, 6.3),
        ("frame_limits", {}, {"path": "switch_8996", "load": 0}, 8996),
        ("fan_out", {"direction": "forward", "streams": 2}, {"path": "fanout_3g", "receivers": 3}, 3),
    ],
)
def test_printed_numbers_stand_beside_the_trials(reference, name, fixed, levels, value):
    """At their level, in the axis's unit, as published evidence; nothing that is computed changes with them."""
    view, opened = first_view(reference[name])
    view = replace(view, fixed=tuple((factor, fixed.get(factor, level)) for factor, level in view.fixed))
    shown, without = show(view, opened), show(replace(view, printed=False), opened)
    ((_, row),) = shown.printed().loc[(shown.printed()[list(levels)] == list(levels.values())).all(axis=1)].iterrows()
    assert row["value"] == pytest.approx(value) and row["text"]
    assert without.printed().empty and shown.text == without.text
    pd.testing.assert_frame_equal(shown.summary(), without.summary())
    told, runs = shown.points(), without.points()
    beside = told[told.evidence == "published"]
    assert len(told) == len(runs) + len(beside) and not beside.counts.any() and (beside.trial_id == "").all()
    assert "published" not in set(runs.evidence)


def test_printed_numbers_alone_leave_the_runs_where_they_are():
    """With every evidence switched off one after the other the runs stay, and the numbers go and come back."""
    page = Page(None)
    page.open("hpl_paper")
    runs, printed_ = page.evidence.value
    for chosen in ([printed_], [], [printed_], [runs, printed_]):
        page.evidence.value = chosen
        assert page.view.sources == (runs,) and page.view.printed == (printed_ in chosen)
        assert len(page.plot.data["published"].data["x"]) == 15 * page.view.printed


def test_numbers_are_printed_of_no_other_level(reference):
    """Of one pair of token exchangers nothing is printed, nor of HPL on few emulated nodes."""
    for name in ("token_exchange", "hpl_scaling"):
        view, opened = first_view(reference[name])
        assert show(view, opened).printed().empty, name
    assert not printed.offered(opened[view.sources[0]])


def test_leaving_out_changes_the_verdict_and_says_so(reference):
    """Without a block n is one less, without the statement's last nodes the span is another; the baseline is named."""
    view, opened = first_view(reference["hpl_scaling"])
    (whole,) = show(view, opened).judgements.values()
    (less,) = show(replace(view, without_blocks=(2,)), opened).judgements.values()
    assert (
        less.blocks == whole.blocks - 1 and less.fall.fall != whole.fall.fall and "Left out by hand: 1" in less.note
    )
    assert "from 2 to 8 nodes" in whole.sentence and "from 2 to 8 nodes" in less.sentence
    (other_span,) = show(replace(view, without_levels=(8,)), opened).judgements.values()
    assert "from 2 to 16 nodes" in other_span.sentence and other_span.fall.fall != whole.fall.fall
    (other,) = show(replace(view, without_levels=(2,)), opened).judgements.values()
    assert "own baseline" in other.note
    (none,) = show(replace(view, without_blocks=tuple(range(1, 23))), opened).judgements.values()
    assert none.word == "" and "no trial is left" in none.sentence


def test_kinds_of_evidence_are_shown_beside_each_other_and_never_pooled(reference):
    """Both datasets of a campaign keep their own curves and n; a dataset that mixes kinds is refused."""
    both = reference["hpl_size"]
    opened = {it.name: sources.opened(it) for it in both.sources}
    view = first(tuple(opened), opened[both.sources[0].name])
    shown = show(view, opened)
    assert [it.evidence for it in shown.judgements.values()] == ["emulated", "simulated"]
    alone = show(replace(view, sources=view.sources[:1]), opened)
    for mine, together in zip(alone.curves, shown.curves):
        pd.testing.assert_frame_equal(mine.summary, together.summary)
    mixed = synthetic.campaign(blocks=2)
    mixed["evidence"] = ("trial", np.where(np.arange(mixed.sizes["trial"]) % 2, "emulated", "measured"))
    with pytest.raises(FalloffError, match="never pooled"):
        sources.trials(mixed)


def test_only_the_campaigns_own_comparison_is_judged_as_a_fall(reference):
    """What compares numbers of the model, or another quantity, gets a ratio and no verdict."""
    view, opened = first_view(reference["hpl_sensitivity"])
    assert view.series == "interconnect"
    varied = replace(
        view,
        series="vary",
        shown=("none", "latency=low"),
        fixed=(("interconnect", "gige"),),
        network="latency=low",
        reference="none",
    )
    (judged,) = show(varied, opened).judgements.values()
    assert judged.word == "" and judged.ratio > 0 and "no verdict" in judged.note


def test_the_exported_code_shows_the_same_again(reference, tmp_path):
    """Run by itself, it prints the page's sentence and writes the same data and the figure."""
    view, opened = first_view(reference["hpl_scaling"])
    view = replace(view, without_blocks=(2, 5), model="power_law")
    shown = show(view, opened)
    (tmp_path / "view.py").write_text(export.code(view, 'A "title" \\ of mine'))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "view.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == shown.text
    table = pd.read_csv(tmp_path / "view-trials.csv")
    assert len(table) == len(shown.points()) and table.counts.sum() == shown.points().counts.sum()
    assert (tmp_path / "view.svg").read_text().count("<path") > 20


def test_transcripts_are_shown_as_text(reference):
    """A trial's own output is there, and nothing in it is markup."""
    source = reference["hpl_scaling"].sources[0]
    assert "HPLinpack" in transcripts.page(transcripts.transcript(source, "b001-010-hpl"))
    nasty = Execution("sh", ("sh", "<b>"), "<script>alert(1)</script>", "", 0, 0.0, 1.0)
    page = transcripts.page(
        Transcript(Trial("t", "point", "sh", 1, 1, {"a": "<i>"}), "here", "measured", (nasty,), {}, {})
    )
    assert "<script>" not in page and "&lt;script&gt;" in page and "<i>" not in page and "<b>" not in page
    with pytest.raises(FalloffError, match="no transcript of trial"):
        transcripts.transcript(source, "nonsense")


@pytest.mark.parametrize("what", ["empty", "broken", "foreign"])
def test_a_folder_without_data_gives_a_friendly_page(what, tmp_path):
    """An empty folder, a file that is no netCDF and one that is not ours: a reason and a remedy, no traceback."""
    if what == "broken":
        (tmp_path / "mine.nc").write_bytes(b"not netCDF at all")
    elif what == "foreign":
        xr.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "mine.nc", engine="netcdf4")
    page = Page(tmp_path)
    assert page.view is None and "falloff" in page.verdict.text and "Traceback" not in page.verdict.text
    assert not page.plot.figure.visible


def test_a_single_point_is_shown_without_an_interval(tmp_path):
    """One block of one network on one node: the point is there, and nothing is concluded."""
    one = synthetic.campaign(blocks=1)
    keep = ((one.interconnect == "gige") & (one.nodes == 1) & (one.role == "point")).values
    store.save(one.isel(trial=np.flatnonzero(keep)), tmp_path / "one.nc")
    page = Page(tmp_path)
    assert len(page.plot.data["points"].data["trial"]) == 1 and "nothing to compare" in page.verdict.text


def test_imported_runs_have_no_verdict(tmp_path):
    """Order and blocks of imported runs are not known: they are shown, and neither judged nor fitted."""
    runs = synthetic.campaign(blocks=3).sel()
    runs["testbed"] = ("trial", np.full(runs.sizes["trial"], "imported"))
    runs.attrs["design"] = json.dumps({"factors": {}})
    told = sources.trials(runs)
    view = first(("x",), told)
    shown = show(replace(view, model="power_law"), {"x": told})
    assert "no verdict" in shown.text and all(it.fit is None and "no blocks" in it.refused for it in shown.fitted)


def test_trials_without_a_reading_are_kept_with_their_reason(tmp_path):
    """A failed trial is in the table, does not count, and is no 0."""
    told = sources.trials(synthetic.campaign(blocks=3, failed=[(2, "gige", 8)]))
    view = first(("x",), told)
    rows = estimates.selected(view, told)
    assert (
        (~rows.valid).sum() == 1
        and rows[~rows.valid].hpl_rate.isna().all()
        and (rows[~rows.valid].reason != "").all()
    )
    (shown,) = (it for it in show(view, {"x": told}).curves if it.level == "gige")
    assert shown.summary.n.tolist() == [3, 3, 3, 2]


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=12, unique=True))
def test_every_level_has_its_own_place_on_the_axis(levels):
    """Numbers stand in order, doublings as equal steps, and all are inside the axis's range."""
    told = replace(one_block(), factors={"nodes": sorted(levels)})
    along = axes.axis([told], "nodes")
    places = [along.places[level] for level in sorted(levels)]
    assert places == sorted(places) and len(set(places)) == len(levels)
    assert along.ends[0] < places[0] and places[-1] < along.ends[1]


def test_each_series_has_its_own_look(reference):
    """Interconnects look as in the report's figures; up to nine levels without a look of their own differ."""
    told = sources.opened(reference["token_exchange"].sources[0])
    looks = list(marks.marks(told, "path").values())[:9]
    assert len({(it.color, it.marker) for it in looks}) == 9
    own = marks.marks(sources.opened(reference["hpl_scaling"].sources[0]), "interconnect")
    assert own["gige"].color == "#D55E00" and own["gige"].dash == "solid"


def test_again_refuses_what_is_gone(reference):
    """A view of a dataset that was moved says so."""
    view, _ = first_view(reference["hpl_scaling"])
    with pytest.raises(FalloffError, match="there is no dataset"):
        again(replace(view, sources=("data/reference/gone",)))


def test_command_ends_quietly_when_interrupted(tmp_path):
    """It prints an address with a token, and Ctrl+C ends it with nothing more said."""
    command = [sys.executable, str(ROOT / "falloff.py"), "explore", str(tmp_path), "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run_:
        assert "http://127.0.0.1:" in run_.stdout.readline() and "Ctrl+C" in run_.stdout.readline()
        run_.send_signal(signal.SIGINT)
        assert run_.wait(timeout=30) == 0 and run_.stderr.read() == ""


def test_command_refuses_in_a_line(tmp_path):
    """A folder that is not there, and a static page of nothing: one line, exit code 1."""
    for arguments in (
        ["explore", str(tmp_path / "none"), "--no-browser"],
        ["explore", str(tmp_path), "--static", str(tmp_path / "x.html")],
    ):
        done = run(*arguments)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("falloff: ")
    assert not (tmp_path / "x.html").exists()
