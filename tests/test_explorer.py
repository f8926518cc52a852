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
from analysis.explorer.shown import again, first_of, selected, show
from analysis.explorer.view import View, address, at_address, opening, settled
from analysis.fitting.block_fit import fit_blocks
from analysis.models import find
from analysis.statistics.judgement import REFUSED
from runners.record import Execution, FalloffError, Transcript, Trial


@cache
def stored(name: str):
    """The first view of an experiment of the reference."""
    return first_of(data.experiments()[name][0])


@cache
def one_block():
    """The trials of a synthetic campaign of one block."""
    return data.trials(synthetic.campaign(blocks=1))


def of(trials: data.Trials, **changes):
    """The first view of trials, with changes."""
    view = settled(replace(opening("x", trials), **changes), trials)
    return show(view, {"x": trials})


def judged(shown):
    """The judgement on the only dataset."""
    (only,) = shown.judgements.values()
    return only


def test_every_reference_campaign_is_listed_and_can_be_drawn():
    """No campaign is missing, and each begins with points and a sentence that names its evidence, or why there is none."""
    listed = data.experiments()
    folders = {source.path.name for sources in listed.values() for source in sources}
    assert folders >= {
        folder.name for folder in (ROOT / "data" / "reference").iterdir() if folder.is_dir()
    }
    assert next(iter(listed)) == data.FIRST
    for name in listed:
        shown = stored(name)
        assert any(np.isfinite(curve.summary["median"]).any() for curve in shown.curves), name
        assert "evidence" in shown.text or "nothing to compare" in shown.text
        assert plot.draw(shown).select_one({"name": "points"}) is not None
        labels = plot.Axis(shown).labels.values()
        assert not [label for label in labels if "_" in label or "=" in label], name


def test_the_verdict_is_the_studys_own():
    """The page judges what `contrasts` judges, number for number."""
    found, expected = (
        judged(stored("hpl_scaling")).fall,
        contrasts(points(experiment.stored("hpl_scaling")))[0].verdict,
    )
    assert (found.answer, found.blocks) == (expected.answer, expected.blocks)
    assert found.fall == pytest.approx(expected.fall)
    assert found.interval == pytest.approx(expected.interval)


def test_the_curve_is_the_experiments_own_model_in_its_own_unit():
    """TCP's window model, fitted to bit/s and shown in Gbit/s; another quantity or axis has no curve at all."""
    shown = stored("long_path")
    curve = next(curve for curve in shown.curves if curve.is_drawn)
    fitted = fit_blocks(
        find("bandwidth_delay"), curve.table.columns.to_numpy(float), 1e9 * curve.table
    )
    assert curve.fitted.fit.estimates == pytest.approx(fitted.estimates)
    x = np.array([65536.0, 1048576.0])
    np.testing.assert_allclose(curve.fitted.band(x)[0], fitted.band(x, "cost")[0] / 1e9)
    for changes in ({"y": "retransmits"}, {"x": "direction"}):
        assert all(curve.fitted is None for curve in of(shown.first, **changes).curves)
    assert all(curve.fitted is None for curve in stored("fan_out").curves)


@pytest.mark.parametrize(
    ("name", "fixed", "levels", "value"),
    [
        (
            "tcp_mtu",
            {"direction": "forward"},
            {"path": "crossover", "mtu": 1500},
            114905.40 * 8192 / 1e9,
        ),
        ("hpl_paper", {}, {"interconnect": "10gige", "nodes": 36}, 80),
        ("token_exchange", {"token_bytes": 8192}, {"path": "local_wire_10m", "pairs": 7}, 6.3),
        ("frame_limits", {}, {"path": "switch_8996", "load": 0}, 8996),
        (
            "fan_out",
            {"direction": "forward", "streams": 2},
            {"path": "fanout_3g", "receivers": 3},
            3,
        ),
    ],
)
def test_printed_numbers_stand_beside_the_trials(name, fixed, levels, value):
    """At their level, in the axis's unit, as published evidence; nothing that is computed changes with them."""
    trials = stored(name).first
    shown = of(trials, fixed=tuple(fixed.items()))
    without = show(replace(shown.view, printed=False), shown.opened)
    beside = shown.printed()
    ((_, row),) = beside.loc[(beside[list(levels)] == list(levels.values())).all(axis=1)].iterrows()
    assert row["value"] == pytest.approx(value) and row["text"]
    assert without.printed().empty and shown.text == without.text
    pd.testing.assert_frame_equal(shown.summary(), without.summary())
    told, runs = shown.points(), without.points()
    told = told[told.evidence == "published"]
    assert len(shown.points()) == len(runs) + len(told) and not told.counts.any()
    assert (told.trial_id == "").all() and "published" not in set(runs.evidence)


def test_leaving_out_changes_the_judgement_and_says_so():
    """Without a block n is one less; without an end of the fall there is an estimate, and no verdict."""
    shown = stored("hpl_scaling")
    whole, less = judged(shown), judged(of(shown.first, without_blocks=(2,)))
    assert whole.word and less.word and less.fall.blocks == whole.fall.blocks - 1
    assert less.fall.fall != whole.fall.fall and "Left out by hand: 1" in less.note
    for nodes, span in ((8, "from 2 to 6 nodes"), (2, "from 1 to 8 nodes")):
        other = judged(of(shown.first, without_levels=(nodes,)))
        assert other.word == "" and span in other.sentence and "No verdict" in other.note
    still = judged(of(shown.first, without_levels=(4,)))
    assert still.word == whole.word and still.fall == whole.fall
    none = judged(of(shown.first, without_blocks=tuple(range(1, 23))))
    assert none.word == "" and "no trial is left" in none.sentence


def test_a_refused_verdict_stays_refused():
    """Where the negative control failed, no choice of blocks makes a verdict."""
    trials = data.trials(synthetic.sequential_campaign(alone=0.3))
    assert judged(of(trials)).word == judged(of(trials, without_blocks=(1,))).word == REFUSED


def test_kinds_of_evidence_are_shown_beside_each_other_and_never_pooled():
    """Both datasets of a campaign keep their own curves and n; a dataset that mixes kinds is refused."""
    sources = data.experiments()["hpl_size"]
    opened = {source.name: data.opened(source) for source in sources}
    start = opening(sources[0].name, opened[sources[0].name])
    both, alone = (
        show(replace(start, sources=names), opened) for names in (tuple(opened), start.sources)
    )
    assert [judged.evidence for judged in both.judgements.values()] == ["emulated", "simulated"]
    for mine, together in zip(alone.curves, both.curves):
        pd.testing.assert_frame_equal(mine.summary, together.summary)
    mixed = synthetic.campaign(blocks=2)
    mixed["evidence"] = (
        "trial",
        np.where(np.arange(mixed.sizes["trial"]) % 2, "emulated", "measured"),
    )
    with pytest.raises(FalloffError, match="never pooled"):
        data.trials(mixed)


def test_only_the_campaigns_own_comparison_is_judged_as_a_fall():
    """What compares numbers of the model gets a ratio and no verdict."""
    shown = stored("hpl_sensitivity")
    other = of(
        shown.first,
        x="nodes",
        series="vary",
        network="latency=low",
        reference="none",
        shown=("none", "latency=low"),
    )
    assert (
        judged(other).word == ""
        and judged(other).ratio > 0
        and "judges no fall" in judged(other).note
    )
    assert "latency low against nothing changed" in judged(other).sentence


@given(st.data())
def test_a_view_is_its_address(drawn):
    """Every view comes back from its address, as JSON in a query; what is no view is the first one."""
    shown = stored("fan_out")
    trials, start = shown.first, shown.view
    factors = list(trials.factors)
    x, series = drawn.draw(st.permutations(factors))[:2]
    choose = {
        "y": st.sampled_from(list(trials.quantities)),
        "shown": st.lists(st.sampled_from(trials.factors[series]), unique=True).map(tuple),
        "without_levels": st.lists(st.sampled_from(trials.factors[x]), unique=True).map(tuple),
        "without_blocks": st.lists(st.integers(1, 3), unique=True).map(tuple),
        "printed": st.booleans(),
        "layers": st.sampled_from([(), ("points", "log"), ("blocks", "model")]),
        "fixed": st.just((("direction", "reverse"),)),
    }
    changes = {name: drawn.draw(values) for name, values in choose.items()}
    view = settled(replace(start, x=x, series=series, **changes), trials)
    assert at_address(address(view, start), start, trials) == view
    name = drawn.draw(st.sampled_from([*View.__dataclass_fields__, "page"]))
    nonsense = drawn.draw(
        st.sampled_from(["", "null", "{}", "[[]]", '[{"a": 1}]', "7", '"x"', "[null]", "tru"])
    )
    assert at_address([(name, nonsense)], start, trials).y in trials.quantities


def test_the_exported_code_shows_the_same_again(tmp_path):
    """Run by itself, it prints the page's sentence and writes the same data and a figure."""
    shown = of(stored("hpl_scaling").first, without_blocks=(2, 5))
    view = replace(shown.view, sources=stored("hpl_scaling").view.sources)
    shown = show(view, {view.sources[0]: shown.first})
    (tmp_path / "view.py").write_text(shown.code('A "title" \\ of mine'))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    looks = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "view.py"], **looks)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == shown.text
    table = pd.read_csv(tmp_path / "view-trials.csv")
    assert len(table) == len(shown.points()) and table.counts.sum() == shown.points().counts.sum()
    assert "b001" in (tmp_path / "view.html").read_text()


def test_transcripts_are_shown_as_text():
    """A trial's own output is there, and nothing in it is markup."""
    source = data.experiments()["hpl_scaling"][0]
    assert "HPLinpack" in pieces.transcript(data.transcript(source, "b001-010-hpl"))
    nasty = Execution("sh", ("sh", "<b>"), "<script>alert(1)</script>", "", 0, 0.0, 1.0)
    page = pieces.transcript(
        Transcript(
            Trial("t", "point", "sh", 1, 1, {"a": "<i>" * 40}),
            "here",
            "measured",
            (nasty,),
            {},
            {"x": "<u>"},
        )
    )
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
    assert page.view is None and page.plot.object is None
    assert "falloff" in page.verdict.text and "Traceback" not in page.verdict.text


def test_imported_runs_have_no_verdict():
    """Order and blocks of imported runs are not known: they are shown, and neither judged nor fitted."""
    runs = synthetic.campaign(blocks=3)
    runs["testbed"] = ("trial", np.full(runs.sizes["trial"], "imported"))
    runs.attrs["design"] = json.dumps({"factors": {}})
    shown = of(data.trials(runs))
    assert "no verdict" in shown.text and not any(curve.is_drawn for curve in shown.curves)


def test_trials_without_a_reading_are_kept_with_their_reason():
    """A failed trial is in the table, does not count, and is no 0."""
    trials = data.trials(synthetic.campaign(blocks=3, failed=[(2, "gige", 8)]))
    shown = of(trials)
    rows = selected(shown.view, trials)
    (failed,) = rows[~rows.valid].itertuples()
    assert np.isnan(failed.hpl_rate) and failed.reason and not failed.counts
    (curve,) = (curve for curve in shown.curves if curve.level == "gige")
    assert curve.summary.n.tolist() == [3, 3, 3, 2]


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=12, unique=True))
def test_every_level_has_its_own_place_on_the_axis(levels):
    """Numbers stand in order, doublings as equal steps, and all are inside the axis's range."""
    trials = replace(one_block(), factors={**one_block().factors, "nodes": sorted(levels)})
    axis = plot.Axis(replace(of(one_block()), opened={"x": trials}))
    places = [axis.places[level] for level in sorted(levels)]
    assert places == sorted(places) and len(set(places)) == len(levels)
    assert axis.ends[0] < places[0] and places[-1] < axis.ends[1]


def test_each_series_has_its_own_look():
    """Interconnects look as in the report's figures; up to nine levels without a look of their own differ."""
    looks = list(plot.looks(stored("token_exchange")).values())
    assert len({(look.color, look.marker) for look in looks}) == len(looks) == 9
    own = {level: look for (_, level), look in plot.looks(stored("hpl_scaling")).items()}
    assert own["gige"].color == "#D55E00" and own["gige"].dash == "solid"


def test_again_refuses_what_is_gone():
    """A view of a dataset that was moved says so."""
    with pytest.raises(FalloffError, match="there is no dataset"):
        again(replace(stored("hpl_scaling").view, sources=("data/reference/gone",)))


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


def test_command_refuses_in_a_line(tmp_path):
    """A folder that is not there, and a static page of nothing: one line, exit code 1."""
    for arguments in (
        ["explore", str(tmp_path / "none"), "--no-browser"],
        ["explore", str(tmp_path), "--static", str(tmp_path / "x.html")],
    ):
        done = run(*arguments)
        assert (
            done.returncode == 1
            and done.stderr.count("\n") == 1
            and done.stderr.startswith("falloff: ")
        )
    assert not (tmp_path / "x.html").exists()
