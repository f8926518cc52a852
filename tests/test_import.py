"""`falloff import`: results that somebody has become measured evidence, and nothing is made up
about them.
"""

import json
import os
import re
import tempfile
from pathlib import Path

import foreign_hpl
import numpy as np
import own_results
import pandas as pd
import pytest
import recorded
from command_line import run
from test_hpl import DECK

from analysis import paths
from analysis.commands import files
from analysis.dataset import derive, schema, store
from analysis.imports import importing
from analysis.report import import_report
from analysis.subjects import hpl_points
from runners import hpl_dat, payload
from runners.records.journal import Folder
from runners.records.manifest import pack
from runners.records.record import FalloffError
from runners.tools import names, node_rates, tool_named

RPEAK = 44.8e9
SHARES = {"gige": {1: 0.81, 2: 0.72, 4: 0.66}, "10gige": {1: 0.80, 2: 0.79, 4: 0.78}}
KNOWN = {"rpeak": RPEAK, "ranks_per_node": 4}
TITLE = "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018\n"
CANCELLED = (
    "slurmstepd: error: *** JOB 4242 ON n01 CANCELLED AT 2024-03-21T10:02:20 DUE TO "
    "TIME LIMIT ***\n"
)
BY_FOLDER = [("gige/*", {"interconnect": "gige"}), ("10gige/*", {"interconnect": "10gige"})]


@pytest.fixture
def outputs(tmp_path):
    """A folder with three runs of each point on two networks."""
    foreign_hpl.folder_of_runs(tmp_path / "outputs", SHARES, RPEAK)
    return tmp_path / "outputs"


@pytest.fixture
def falloff(tmp_path, monkeypatch):
    """The command, with everything that it makes below tmp_path: exit code, standard output and
    error.
    """
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    monkeypatch.setattr(paths, "DATASETS", tmp_path / "datasets")

    def import_(*words):
        done = run("import", *map(str, words))
        return done.returncode, done.stdout, done.stderr

    return import_


def dataset_of(tmp_path, tool, files, common, table=()):
    """The dataset of an import that is kept below tmp_path."""
    found = importing.read(tool, files, common, table)
    return store.assemble(importing.keep(found, tmp_path / "raw"))


def hpl_of(tmp_path, files, common, table=()):
    """Imported HPL results, and all notes as one text."""
    results = hpl_points.results(dataset_of(tmp_path, "hpl", files, common, table))
    return results, " ".join(results.points.notes)


def test_a_folder_of_outputs_becomes_an_efficiency_figure(outputs, tmp_path, falloff):
    """One command: measured evidence, marked as imported, each point's efficiency, and the
    figure.
    """
    table = tmp_path / "map.csv"
    table.write_text("file,interconnect\ngige/*,gige\n10gige/*,10gige\n")
    words = ["--set", "ranks_per_node=4", "--set", f"rpeak={RPEAK}", "--map", table]
    code, out, err = falloff("hpl", outputs, *words)
    assert (code, err) == (0, "")
    assert "GigE falls off from 1 to 4 nodes" in out and "10GE stays flat from 1 to 4" in out
    (file,) = (tmp_path / "datasets").glob("*.nc")
    dataset = store.load(file)
    assert set(dataset.evidence.values) == {"measured"}
    assert set(dataset.testbed.values) == {"imported"}
    means = derive.means(hpl_points.points(dataset).share)
    for network, by_nodes in SHARES.items():
        for nodes, share in by_nodes.items():
            point = means.sel(interconnect=network, nodes=nodes)
            assert point.ratio.item() == pytest.approx(share, rel=1e-3)
            assert point.blocks == 3 and point.low < point.ratio < point.high
    (figure,) = (tmp_path / "datasets").glob("*/*.svg")
    assert (
        figure.name.startswith("share_") and b"<svg" in figure.read_bytes() and str(figure) in out
    )


@pytest.mark.parametrize(
    ("common", "table", "of", "note"),
    [
        # Nodes are told by the processes, which grow with a number in the paths.
        ({}, BY_FOLDER, "n times the rate on one node", "Rpeak is not known"),
        ({"rpeak": RPEAK}, BY_FOLDER, "Rpeak", ""),
        # Runs may be of several networks and are no repeats of each other.
        (KNOWN, [("*", {"interconnect": ""})], "Rpeak", "no interval"),
    ],
)
def test_what_is_not_known_is_not_made_up(outputs, tmp_path, common, table, of, note):
    dataset = dataset_of(tmp_path, "hpl", [outputs], common, table)
    texts, figures = import_report.shown(dataset)
    (figure,) = figures.values()
    assert f"% of {of}]" in figure.axes[0].get_ylabel()
    points = hpl_points.points(dataset)
    assert (derive.counted_in(points), points.share.attrs["of"]) == ("nodes", of)
    assert note in " ".join(texts)
    has_network = table is BY_FOLDER
    assert derive.means(points.share).low.notnull().all() == has_network
    assert bool(hpl_points.falls(points)) == has_network


def test_outputs_without_names_are_over_ranks(outputs, tmp_path):
    """Neither path nor header tells nodes or network: rates per rank, and no verdict."""
    bare = tmp_path / "bare"
    bare.mkdir()
    for number, file in enumerate(sorted(outputs.rglob("*.out"))):
        (bare / f"{'abcdefghijklmnopqrstuvwxyz'[number]}.out").write_bytes(file.read_bytes())
    results, notes = hpl_of(tmp_path, [bare], {"rpeak": RPEAK})
    points = results.points
    assert (derive.counted_in(points), points.interconnect.values.tolist()) == ("ranks", [""])
    assert not hpl_points.falls(points)
    assert "number of nodes is not known" in notes and "no verdict" in notes
    assert points.share.sel(nodes=4).mean().item() == pytest.approx(1, rel=1e-3)
    texts, _ = import_report.shown(dataset_of(tmp_path, "hpl", [bare], {}))
    assert "network not known" in texts[0] and "Ranks" in texts[0]


def test_only_equal_settings_are_repeats(tmp_path):
    """Runs with another NB are another point, the best of which stands; one run has no interval,
    and the note says so.
    """
    for NB, rates in ((96, (50.0, 51.0)), (128, (60.0, 61.0, 62.0))):
        for number, rate in enumerate(rates):
            (tmp_path / f"{NB}-{number}.out").write_text(foreign_hpl.output(rate, NB=NB))
    results, notes = hpl_of(tmp_path, [tmp_path], {"nodes": 2})
    (rates,) = results.points.rate.sel(interconnect="").transpose("nodes", "block").values
    assert rates == pytest.approx([60, 61, 62], rel=1e-3) and results.best.NB.item() == 128
    assert len(results.runs) == 5 and "best of up to 2 settings" in notes
    dataset = dataset_of(tmp_path, "hpl", [tmp_path / "128-0.out"], {"nodes": 2})
    (text,), figures = import_report.shown(dataset)
    assert "HPL's rate on 2 nodes, network not known: 60.0 Gflop/s, 1 run" in text
    assert "a single run, without an interval: 1 of 1" in text and "no efficiency" in text
    assert [figure.axes[0].get_ylabel() for figure in figures.values()] == ["HPL rate [Gflop/s]"]


VARIANTS = [f"WR{depth}{bcast}R2C{nbmin}" for depth in "01" for bcast in "134" for nbmin in "48"]
FALL = 0.12  # of each variant's efficiency from 1 to 4 nodes


def tuned(folder, runs=2, falls=4 * (FALL,), blocks=(96, 96, 96)):
    """Files of 1, 2 and 4 nodes with variants each, `runs` times: each variant's efficiency loses
    one of the `falls`, with 0.2 % of scatter; `blocks` are NB."""
    noise = np.random.default_rng(1)
    for nodes, NB, part in zip((1, 2, 4), blocks, (0, 0.5, 1)):
        for run_ in range(1, 1 + runs):
            rates = {
                name: 14.0 * nodes * (1 - part * fall) * (1 + 0.01 * place) * noise.normal(1, 0.002)
                for place, (name, fall) in enumerate(zip(VARIANTS, falls))
            }
            file = folder / "1gbe" / f"n{nodes}" / f"run{run_}" / "HPL.out"
            file.parent.mkdir(parents=True)
            text = foreign_hpl.sweep(rates, N=int(20000 * nodes**0.5), NB=NB, Q=nodes)
            file.write_text(text)


def judged(folder, in_blocks=False):
    """The points of an import, and its one statement on a fall."""
    found = importing.read("hpl", [folder], {}, (), in_blocks)
    with tempfile.TemporaryDirectory() as kept:
        points = hpl_points.points(store.assemble(importing.keep(found, Path(kept))))
    (fall,) = hpl_points.falls(points)
    return points, fall


@pytest.mark.parametrize(
    ("runs", "in_blocks", "n", "of"),
    [
        (1, False, 4, "variant"),
        (2, False, 4, "variant"),
        (2, True, 2, "block"),
        (5, False, 5, "run"),
    ],
)
def test_a_tuned_sweep_is_judged_over_variants_or_repeats(tmp_path, runs, in_blocks, n, of):
    """Variants of a point are no repeats of it. The planted fall comes back over whichever are
    more, and over blocks where these are known."""
    tuned(tmp_path, runs)
    points, fall = judged(tmp_path, in_blocks)
    assert (fall.n, fall.n_of) == (n, of)
    assert points.rate.count("block").max() == runs
    assert fall.words == "falls off" and fall.interval[0] < FALL < fall.interval[1]
    found = hpl_points.medians(points)
    assert (found.variants == 4).all() and (found["rate"] < points.rate.mean("block")).all()
    # Alike in all but noise, each 1 % above the one before.
    alone = found.sel(interconnect="gige", nodes=1)
    assert alone["rate"].item() == pytest.approx(14.0 * 1.015, rel=5e-3)


def test_what_no_variants_share_is_open_and_says_why(tmp_path):
    """Another NB on the most nodes is another variant; and answers over variants do not stand where
    the best of each point lies elsewhere."""
    tuned(tmp_path / "NB", runs=1, blocks=(96, 96, 128))
    _, fall = judged(tmp_path / "NB")
    assert (fall.words, fall.n, fall.n_of) == ("undecided", 1, "run")
    assert "Fewer than two variants" in str(fall) and "NB (96 and 128)" in str(fall)
    tuned(tmp_path / "best", runs=1, falls=(*11 * (0.03,), -0.06))
    _, fall = judged(tmp_path / "best")
    assert fall.words == "undecided" and (fall.n, fall.n_of) == (12, "variant")
    assert fall.interval is None and "different sides of the margin" in str(fall)


def test_a_smaller_matrix_is_no_variant(tmp_path):
    """A test of a quarter of the memory is no run of a point's problem, however many there are."""
    tuned(tmp_path, runs=1)
    text = foreign_hpl.sweep(dict.fromkeys(VARIANTS[:4], 5.0), N=10000, NB=64)
    (tmp_path / "1gbe" / "n1" / "run1" / "small.out").write_text(text)
    points, fall = judged(tmp_path)
    assert hpl_points.medians(points).variants.sel(nodes=1).item() == 4 and fall.n == 4


def test_the_answer_names_the_best_and_the_median(tmp_path, falloff):
    """Of how many variants they are, and how often each ran; that none ran again."""
    tuned(tmp_path / "files", runs=1)
    code, out, err = falloff("hpl", tmp_path / "files")
    assert (code, err) == (0, "")
    best, median = (float(n) for n in re.findall(r"on 4 nodes.* (\S+) %, (?:1 run|4 var)", out))
    assert 0.86 < median / 100 < best / 100 < 0.89
    assert (
        "best of 4 variants" in out and "median: " in out and "4 settings, each with 1 run" in out
    )
    assert "blocks: none" not in out


def test_what_cannot_be_used_stays_with_its_reason(tmp_path, falloff):
    """A failed check, a run that was stopped and HPL-AI are rows of the dataset, not gaps in it."""
    cases = ("2.0-failed", "2.0-no-memory", "2.0-one-row", "nvidia-hpl-ai")
    files = [recorded.FOLDER / "hpl" / f"{case}.txt" for case in cases]
    dataset = dataset_of(tmp_path, "hpl", files, {"nodes": 2})
    assert schema.faults(dataset) == []
    assert dataset.status.values[:4].tolist() == ["unreadable", "unreadable", "ok", "ok"]
    assert "FAILED" in dataset.reason.values[0] and "memory" in dataset.reason.values[1].lower()
    assert np.isfinite(dataset.hpl_rate.values[:4]).tolist() == [False, False, True, True]
    notes = hpl_points.points(dataset).notes
    assert "cannot be used, as the list says: " in notes[0] and "mixed precision" in notes[1]
    for file, said in ((files[0], "the residual check FAILED"), (files[3], "mixed precision")):
        code, _, err = falloff("hpl", file)
        assert code == 1 and "no result of HPL can be used: " in err and said in err


def test_what_is_given_must_fit_what_the_file_says(outputs, tmp_path):
    """A given N that is not the file's makes its result invalid; a grid that does not fit
    ranks_per_node is named, and that is not asked for again."""
    dataset = dataset_of(tmp_path, "hpl", [outputs], {"N": 12345})
    assert set(dataset.status.values) == {"invalid"} and dataset.hpl_rate.isnull().all()
    assert dataset.reason.values[0] == "N is 40000, 12345 was asked for"
    (tmp_path / "HPL.out").write_bytes((outputs / "gige" / "1-0.out").read_bytes())
    _, notes = hpl_of(tmp_path, [tmp_path / "HPL.out"], {"ranks_per_node": 3})
    assert "4 processes with ranks_per_node = 3" in notes
    assert "--set ranks_per_node=R" not in notes


def test_a_run_that_two_files_hold_counts_once(tmp_path):
    """HPL.out beside the job's own output is one run; equal rows within one file are two, and so
    are equal runs with other settings."""
    run_ = foreign_hpl.output(60.0)
    (tmp_path / "HPL.out").write_text(run_)
    (tmp_path / "slurm-17.out").write_text(f"Loading openmpi/4.1.6\n{run_}")
    (tmp_path / "twice.out").write_text(foreign_hpl.output(61.0) * 2)
    results, notes = hpl_of(tmp_path, [tmp_path], {"nodes": 2})
    assert sorted(results.runs.file) == ["HPL.out", "twice.out", "twice.out"]
    assert "to every digit, counted once: 1 of 4" in notes
    networks = [("HPL.out", {"interconnect": "gige"}), ("slurm*", {"interconnect": "10gige"})]
    assert "counted once" not in hpl_of(tmp_path, [tmp_path], {"nodes": 2}, networks)[1]


def test_other_files_are_left_out_and_named(outputs, falloff):
    """A deck and a text beside the outputs: a line each; what is hidden is not seen."""
    (outputs / ".git").mkdir()
    (outputs / ".git" / "old.out").write_text("Dear all,\n")
    (outputs / "README").write_text("Dear all,\n")
    (outputs / "HPL.dat").write_text(hpl_dat.render(DECK))
    code, out, err = falloff("hpl", outputs)
    assert code == 0 and len(err.splitlines()) == 2 and out.startswith("18 results in 18 files")
    assert "HPL.dat: foreign: it is an HPL.dat input deck" in err and "README: foreign: not" in err


def test_importing_again_changes_nothing_and_completes_what_was_cut_off(outputs, tmp_path):
    """The same files with the same settings are the same campaign, packed too; other settings are
    another one.
    """
    found = importing.read("hpl", [outputs], KNOWN, BY_FOLDER)
    folder = importing.keep(found, tmp_path / "raw")
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert importing.keep(found, tmp_path / "raw") == folder
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    other = importing.read("hpl", [outputs], {"ranks_per_node": 4})
    assert importing.keep(other, tmp_path / "other").name != folder.name
    pack(folder, tmp_path / "packed")
    assert store.assemble(tmp_path / "packed").identical(store.assemble(folder))
    (folder / "transcripts" / f"{found.plan.trials()[3].id}.json").unlink()
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines()[0] + "\n")
    assert importing.keep(found, tmp_path / "raw") == folder
    assert store.assemble(folder).sizes["trial"] == 18 and Folder(folder).stopped_by() == "import"


@pytest.mark.parametrize("tool", ["hpl", "hpcc", "iperf3", "netperf", "ping", "osu"])
def test_every_result_of_a_real_output_is_kept(tool, tmp_path):
    """Each recorded output of a tool, whole or not: all its readings, in their units, or the reason
    against it.
    """
    files = [recorded.FOLDER / f"{case}.txt" for case in recorded.cases(tool)]
    found = importing.read(tool, files, {"interconnect": "gige"})
    dataset = store.assemble(importing.keep(found, tmp_path / "raw"))
    assert len(importing.summary(dataset).splitlines()) == 1 + dataset.sizes["trial"]
    usable = np.flatnonzero(dataset.status.values == "ok")
    results = [each for source in found.sources for each in recorded.usable(tool, source.text)]
    declared = tool_named(tool).readings
    assert ((dataset.status == "ok") == (dataset.reason == "")).all()
    for number, result in zip(usable, results, strict=True):
        for name, value in result.readings.items():
            kept = dataset[name].values[number]
            assert dataset[name].attrs.get("units", "") == declared[name].units
            if not isinstance(value, str):
                value = np.ravel(value).astype(float)
                kept, value = np.ravel(kept)[: len(value)], pytest.approx(value, nan_ok=True)
            assert kept == value


@pytest.mark.parametrize(
    ("words", "table", "answer"),
    [
        ("nods=4", None, "'nods' is unknown; there are interconnect, nodes,"),
        ("nodes=4 nodes=8", None, "nodes is set twice"),
        ("nodes=2.5", None, "is no whole number from 1"),
        ("rpeak=3072", None, "one node's, in flop/s"),
        ("interconnect=a\x1bb", None, "is no name"),
        ("evidence=emulated", None, "'evidence' is unknown"),
        ("", "", "needs a first line"),
        ("", "file,nodes\n1-0.out\n", "line 2: it has not one cell"),
        ("", "file,nods\n*.out,4\n", "line 2: 'nods' is unknown"),
        ("", "file,nodes\n*.log,4\n", "*.log names none of the imported files"),
    ],
)
def test_a_wrong_setting_or_map_is_named(words, table, answer, outputs, tmp_path, falloff):
    """Nothing is guessed from a typing error: one line, exit code 1."""
    given = [part for word in words.split() for part in ("--set", word)]
    if table is not None:
        (tmp_path / "map.csv").write_text(table)
        given += ["--map", tmp_path / "map.csv"]
    code, out, err = falloff("hpl", outputs, *given)
    assert (code, out, len(err.splitlines())) == (1, "", 1) and answer in err


def test_a_network_may_have_any_name(outputs, falloff):
    """It is told of as it is written, though it has what a figure or Markdown takes for their
    own.
    """
    name = '10G "fast" $x$ _y_ <lab> a|b'
    code, out, err = falloff("hpl", outputs, "--set", f"interconnect={name}", "--set", "nodes=4")
    assert (code, err) == (0, "") and name in out


def test_rows_of_a_map_apply_in_order(tmp_path):
    """A name or a pattern, from the right of the path; a later row wins, an empty cell leaves it
    unknown.
    """
    table = tmp_path / "map.csv"
    rows = "*.out, 2,\ngige/*.out,, gige\ngige/big.out, 8, 10gige\n"
    table.write_text(f"file, nodes, interconnect\n{rows}")
    rows = importing.settings_in_table(table)
    big = {"nodes": 8, "interconnect": "10gige"}
    assert importing.of_file("a/gige/big.out", {}, rows) == big
    small = {"nodes": 2, "interconnect": "gige"}
    assert importing.of_file("gige/small.out", {"nodes": 1}, rows) == small


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("1gbe/*", {"1gbe/n01/a.out", "x/1gbe/b.out"}),
        ("1gbe", {"1gbe/n01/a.out", "x/1gbe/b.out"}),
        ("1gbe/", {"1gbe/n01/a.out", "x/1gbe/b.out"}),
        ("*.out", {"1gbe/n01/a.out", "x/1gbe/b.out", "11gbe/c.out"}),
        ("b.out", {"x/1gbe/b.out"}),
        ("1gbe/n01/a.out", {"1gbe/n01/a.out"}),
        ("**/n01/*", {"1gbe/n01/a.out"}),
    ],
)
def test_a_pattern_matches_as_people_expect(pattern, names):
    files = ["1gbe/n01/a.out", "x/1gbe/b.out", "11gbe/c.out"]
    assert {name for name in files if importing.matches(name, pattern)} == names


def test_what_was_seen_is_written_corrected_and_read_back(tmp_path, falloff):
    """The map names every file; what the user corrects in it holds, and a block for each run pairs
    them.
    """
    truth = own_results.write_hpl(tmp_path / "results", runs=2, nodes=(1, 4))
    file = tmp_path / "map.csv"
    code, out, _ = falloff("hpl", tmp_path / "results", "--write-map", file)
    table = pd.read_csv(file)
    assert code == 0 and "GigE" in out and list(table.columns) == list(importing.COLUMNS)
    assert len(table) == 12 and set(table.network) == {"gige", "10gige", "100gige"}
    assert (
        set(table.nodes) == {1, 4}
        and table.block.isna().all()
        and set(truth) == set(own_results.LAWS)
    )
    table["network"] = table.network.replace("10gige", "25gige")
    table["block"] = [1 if "run1" in name else 2 for name in table.file]
    table.to_csv(file, index=False)
    found = importing.read("hpl", [tmp_path / "results"], {}, importing.settings_in_table(file))
    assert found.repeats == "blocks" and found.blocks_from == "map"
    assert set(found.plan.interconnects) == {"gige", "25gige", "100gige"}
    assert [len(block) for block in found.plan.blocks] == [6, 6]
    assert falloff("hpl", tmp_path / "results", "--write-map", file)[0] == 1  # it is there already
    table.loc[0, "block"] = None
    table.to_csv(file, index=False)
    code, _, err = falloff("hpl", tmp_path / "results", "--map", file)
    assert code == 1 and "1 files have no block" in err


def test_the_same_files_with_other_settings_replace_an_import(tmp_path, falloff):
    """Else a report would count them twice; the earlier one is moved aside."""
    own_results.write_hpl(tmp_path / "results", runs=2, nodes=(1, 4))
    for words in ((), ("--blocks",)):
        code, out, _ = falloff("hpl", tmp_path / "results", "--out", tmp_path / "mine", *words)
        assert code == 0 and "from 1 to 4 nodes" in out
    kept = sorted(path.name for path in (tmp_path / "mine").glob("hpl-*"))
    assert len(kept) == 2 and len(list((tmp_path / "mine" / ".replaced").iterdir())) == 1


ONE_ROW = recorded.text("hpl/2.0-one-row")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("cut", recorded.text("hpl/nvidia-cut-row")),
        ("contradictory", ONE_ROW.replace("3.719e+01", "4.719e+01")),
        ("foreign", recorded.text("ping/20221126-ok")),
        ("unsupported", recorded.text("hpl/1.0a-excerpt")),
        ("failed", recorded.text("hpl/2.0-no-memory")),
    ],
)
def test_a_refusal_says_its_kind(kind, text, tmp_path, falloff):
    """Printed, in the list of results, and of a file that is left out."""
    for name, content in (("refused.out", text), ("read.out", ONE_ROW)):
        (tmp_path / name).write_text(content)
    code, out, err = falloff("hpl", tmp_path / "refused.out", "--print")
    if code:
        assert f"no result of hpl: {kind}: " in err
    else:
        assert [each["kind"] for each in json.loads(out)["results"]] == [kind]
    code, out, err = falloff("hpl", tmp_path / "refused.out", tmp_path / "read.out")
    assert code == 0 and f"refused.out: {kind}: " in out + err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (" \n\n", "it is empty"),
        (b"\x7fELF\x02\x01\0\0", "it is binary data"),
        (bytes(range(128, 256)), "it is binary data"),
        (b"\x1f\x8b\x08\0\0", "it is compressed"),
        (hpl_dat.render(DECK), "it is an HPL.dat input deck"),
        ('{"a": 1}', "it is JSON of another program"),
        ('[{"a": 1}]', "it is JSON of another program"),
        ("<!DOCTYPE html><html>", "it is a web page"),
        ("#!/bin/bash\n#SBATCH -N 2\nsrun xhpl\n", "it is a batch script"),
        ("Intel(R) Optimized LINPACK Benchmark data\n", "Intel's LINPACK, not of HPL"),
        (f"{payload._TITLE}\n", "it is a table of messages by size"),
        (CANCELLED, "it is output of a Slurm job; it says: slurmstepd: error: *** JOB 4242"),
        (
            "There are not enough slots available in the system to satisfy the 8\n",
            "it says: There are not",
        ),
        (
            "./xhpl: error while loading shared libraries: libopenblas.so.0\n",
            "it says: ./xhpl: error while",
        ),
        (TITLE + CANCELLED, "DUE TO TIME LIMIT"),
        (TITLE + "Column=1\n" * 9, "an output of HPL 2.3 without a result: HPL did not reach 'End"),
        (TITLE * 3, "3 runs, of which the last is one of HPL 2.3"),
        ("Dear all,\nWR is short for row-major.\n", "not an output of HPL 2.x"),
        (None, "there is no file"),
        (b"." * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_a_file_without_results_is_named_for_what_it_is(
    content, said, tmp_path, monkeypatch, falloff
):
    """Printed or imported: exit code 1, nothing on stdout, one line on stderr."""
    monkeypatch.setattr("runners.outputs._LARGEST", 2**20)
    file = tmp_path / "given"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = falloff("hpl", file, "--print")
    assert (code, out, len(err.splitlines())) == (1, "", 1) and str(file) in err and said in err
    with pytest.raises(FalloffError, match="no file or folder|no output of hpl|no result"):
        hpl_points.points(dataset_of(tmp_path, "hpl", [file], {}))


@pytest.mark.parametrize("tool", names())
def test_readings_of_every_real_output_are_printed_with_their_units(tool, capsys):
    """Of every tool, also readings that are texts and those that no dataset has."""
    units = {name: row.get("units", "") for name, row in schema.schema()["variables"].items()}
    units |= {name: quantity.units for name, quantity in tool_named(tool).readings.items()}
    units |= node_rates.UNITS
    for case in recorded.cases(tool):
        results = recorded.usable(tool, recorded.text(case))
        if not results:
            continue
        files._print_readings(tool, [recorded.FOLDER / f"{case}.txt"])
        printed = [
            {reading.pop("name"): reading for reading in result["readings"]}
            for result in json.loads(capsys.readouterr().out)["results"]
        ]
        assert [list(readings) for readings in printed if readings] == [
            list(result.readings) for result in results
        ]
        for name, row in [pair for readings in printed for pair in readings.items()]:
            assert row["unit"] == units.get(name, ""), name


def test_encodings_of_other_systems_are_read(tmp_path, falloff):
    """PowerShell's redirection writes UTF-16, other editors a mark before UTF-8; what is not
    understood is noted.
    """
    latency = recorded.text("osu/5.4.3-latency").replace("2.80\n", "2,80\n", 1)
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        file = tmp_path / f"{encoding}.out"
        output = f"{encoding}\n{latency}".replace("\n", "\r\n")
        file.write_bytes(output.encode(encoding))
        code, out, _ = falloff("osu", file, "--print")
        assert code == 0 and json.loads(out)["results"][0]["settings"]["largest_bytes"] == 2**22
    code, _, err = falloff("osu", tmp_path)
    assert code == 0 and err.count("lines that are not understood: 1") == 3


FOREIGN = {
    "HPCG": "HPCG-Benchmark\nversion=3.1\nFinal Summary::HPCG result is VALID=45.2\n",
    "Windows's ping": "\r\nPinging host [10.0.1.4] with 32 bytes of data:\r\n",
    "empty": "",
    "binary data": "\0\1\2",
    "HPL.dat input deck": hpl_dat.render(DECK),
    "web page": "<!DOCTYPE html><html>",
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_foreign_file_is_named_also_without_the_tools_name(what, tmp_path, falloff):
    """Alone, and in a folder beside outputs of one tool and of two."""
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "foreign.dat").write_text(FOREIGN[what])
    for asked in (folder / "foreign.dat", folder):
        code, out, err = falloff(asked, "--print")
        assert (code, out, len(err.splitlines())) == (1, "", 1) and what in err
    for case in ("osu/5.4.3-latency", "ping/20221126-ok"):
        (folder / f"{case.split('/')[0]}.out").write_text(recorded.text(case))
        code, _, err = falloff(folder)
        assert code == 0 and any(
            "foreign.dat" in line and what in line for line in err.splitlines()
        )


def test_only_usable_results_are_counted(tmp_path, falloff):
    folder = tmp_path / "given"
    folder.mkdir()
    whole = recorded.text("hpl/2.0-one-row")
    (folder / "whole.out").write_text(whole)
    assert falloff("hpl", folder)[1].startswith("1 result in 1 file:")
    for number in (1, 2):
        (folder / f"cut{number}.out").write_text(whole[: len(whole) // 2] + "\n" * number)
    assert falloff("hpl", folder)[1].startswith("1 result in 1 of 3 files:")


def test_what_is_no_file_is_refused(tmp_path, falloff):
    """A pipe is not waited for, a misspelt file is no tool, an empty folder has none."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    wrong = {
        "no file, but": tmp_path / "pipe",
        "no file or folder": "mistyped.out",
        "no file in": tmp_path / "empty",
    }
    for said, given in {**wrong, "no file, but a": "/dev/zero"}.items():
        for words in ((given, "--print"), (given,)):
            code, out, err = falloff(*words)
            assert (
                (code, out, len(err.splitlines())) == (1, "", 1)
                and f"{given}" in err
                and said in err
            )
    code, out, err = falloff("hpl", tmp_path / "pipe", "--print")
    assert (code, out) == (1, "") and "pipe" in err
    assert "did you mean 'osu'" in falloff("osuu", tmp_path / "pipe")[2]


def test_a_hidden_file_that_is_given_is_read(tmp_path, falloff):
    (tmp_path / ".latency.out").write_text(recorded.text("osu/5.4.3-latency"))
    assert falloff(tmp_path / ".latency.out", "--print")[0] == 0


@pytest.mark.parametrize("end", ["", ",", ",,"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_map_is_read_as_other_programs_write_it(tmp_path, end, encoding, mark):
    lines = ["file,nodes,network", "a/*,2,gige", "# b is out of order", "b/*,4,10gige", ""]
    text = "\n".join((line + end * bool(line)).replace(",", mark) for line in lines)
    (tmp_path / "map.csv").write_text(text, encoding=encoding)
    assert importing.settings_in_table(tmp_path / "map.csv") == [
        ("a/*", {"nodes": 2, "interconnect": "gige"}),
        ("b/*", {"nodes": 4, "interconnect": "10gige"}),
    ]


def test_the_offset_of_a_date_decides_the_order_of_blocks(tmp_path):
    """By their clocks alone the first runs of both points would not come before the second ones."""
    dates = [
        "2026-10-25T02:50+02:00",
        "2026-10-25T02:10+01:00",
        "2026-10-25T02:30+01:00",
        "2026-10-25T04:00+02:00",
    ]
    lines = [f"{name}.out,{nodes},{date}" for name, nodes, date in zip("abcd", (1, 2, 1, 2), dates)]
    (tmp_path / "map.csv").write_text("\n".join(["file,nodes,date", *lines, ""]))
    for name in "abcd":
        (tmp_path / f"{name}.out").write_text(f"job {name}\n" + recorded.text("hpl/2.0-one-row"))
    table = importing.settings_in_table(tmp_path / "map.csv")
    found = importing.read("hpl", sorted(tmp_path.glob("*.out")), {}, table)
    assert [
        trial.block for trial in sorted(found.plan.trials(), key=lambda one: one.point["file"])
    ] == [1, 1, 2, 2]
    importing.write_map(found, tmp_path / "again.csv")
    again = importing.settings_in_table(tmp_path / "again.csv")
    assert [row["date"] for _, row in again] == [row["date"] for _, row in table]
