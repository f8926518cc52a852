"""`falloff import`: results that somebody has become measured evidence, and nothing is made up about them."""

import json
import sys

import foreign_hpl
import numpy as np
import pytest
import recorded

import experiment
import falloff as cli
import importing
from analysis import given_settings, imported_hpl, imported_text, paths, schema, store
from runners import runner_named
from runners.journal import Folder
from runners.manifest import pack
from runners.record import FalloffError, Result, Unreadable

RPEAK = 44.8e9
SHARES = {"gige": {1: 0.81, 2: 0.72, 4: 0.66}, "10gige": {1: 0.80, 2: 0.79, 4: 0.78}}
KNOWN = {"rpeak": RPEAK, "ranks_per_node": 4}
BY_FOLDER = [("gige/*", {"interconnect": "gige"}), ("10gige/*", {"interconnect": "10gige"})]


@pytest.fixture
def outputs(tmp_path):
    """A folder with three runs of each point on two networks."""
    foreign_hpl.folder_of_runs(tmp_path / "outputs", SHARES, RPEAK)
    return tmp_path / "outputs"


@pytest.fixture
def falloff(tmp_path, monkeypatch, capsys):
    """The command line, with everything that it makes below tmp_path: exit code, standard output and error."""
    of_plan = experiment.folder_of
    monkeypatch.setattr(experiment, "folder_of", lambda plan, out: of_plan(plan, tmp_path / "raw"))
    monkeypatch.setattr(paths, "DATASETS", tmp_path / "datasets")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["falloff", *map(str, words)])
        code = cli.main()
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def dataset_of(tmp_path, tool, files, common, table=()):
    """The dataset of an import that is kept below tmp_path."""
    return store.assemble(importing.keep(importing.read(tool, files, common, table), tmp_path / "raw"))


def test_a_folder_of_outputs_becomes_an_efficiency_figure(outputs, tmp_path, falloff):
    """One command: measured evidence, marked as imported, each point's efficiency, and the figure."""
    table = tmp_path / "map.csv"
    table.write_text("file,interconnect\ngige/*,gige\n10gige/*,10gige\n")
    words = ["--set", "ranks_per_node=4", "--set", f"rpeak={RPEAK}", "--map", table]
    code, out, err = falloff("import", "hpl", outputs, *words)
    assert (code, err) == (0, "") and "GigE, 4 nodes: 66.0 %" in out
    (file,) = (tmp_path / "datasets").glob("*.nc")
    dataset = store.load(file)
    assert set(dataset.evidence.values) == {"measured"} and set(dataset.testbed.values) == {"imported"}
    assert json.loads(dataset.attrs["testbed_settings"])["kind"] == "imported"
    best = imported_hpl.analyse(dataset).best.set_index(["interconnect", "x"])
    for network, by_nodes in SHARES.items():
        for nodes, share in by_nodes.items():
            point = best.loc[network, nodes]
            assert point["mean"] == pytest.approx(share, rel=1e-3)
            assert point.runs == 3 and point.low < point["mean"] < point.high
    (figure,) = (tmp_path / "datasets").glob("*/*.svg")
    assert figure.name == "efficiency.svg" and b"<svg" in figure.read_bytes() and str(figure) in out


def test_without_rpeak_there_are_rates_only(outputs, falloff, tmp_path):
    """What an efficiency needs is not made up: rates, the remedy, and a figure that says rate."""
    code, out, _ = falloff("import", "hpl", outputs, "--set", "ranks_per_node=4")
    assert code == 0 and "%" not in out.replace("95 %", "")
    assert "Rpeak is not known" in out and "--set rpeak=" in out and "Without an interconnect there is no interval" in out
    assert [figure.name for figure in (tmp_path / "datasets").glob("*/*.svg")] == ["rate.svg"]


def test_without_a_number_of_nodes_rates_are_over_processes(outputs, tmp_path):
    """P x Q is in the output, the nodes are not; an Rpeak of nodes is then of no use."""
    study = imported_hpl.analyse(dataset_of(tmp_path, "hpl", [outputs], {"rpeak": RPEAK}, BY_FOLDER))
    assert (study.abscissa, study.ordinate) == ("processes", "rate")
    assert sorted(set(study.best.x)) == [4, 8, 16] and "number of nodes is not known" in " ".join(study.notes)
    assert "GigE, 16 ranks: " in imported_text.hpl(study)


def test_runs_on_unknown_networks_have_no_interval(outputs, tmp_path):
    """Where the interconnect is not known, runs may be of several and are no repeats of each other."""
    study = imported_hpl.analyse(dataset_of(tmp_path, "hpl", [outputs], KNOWN))
    assert study.best.runs.tolist() == [6, 6, 6] and study.best.low.isna().all() and study.best.high.isna().all()
    assert "6 runs: no interval" in imported_text.hpl(study)


def test_a_testbed_gives_its_rpeak(outputs, tmp_path):
    """The peak of a described cluster's node serves, unless another is given."""
    read = [importing.read("hpl", [outputs], common, (), "smith") for common in ({}, {"rpeak": 2 * RPEAK})]
    peaks = [{transcript.trial.point["rpeak"] for transcript in found.transcripts} for found in read]
    assert peaks == [{44.8e9}, {2 * RPEAK}]


def test_a_single_run_is_one_point_with_a_note(tmp_path):
    """No interval is drawn from one run, and the note says so."""
    foreign_hpl.folder_of_runs(tmp_path / "one", {"gige": {2: 0.7}}, RPEAK, repeats=1)
    study = imported_hpl.analyse(dataset_of(tmp_path, "hpl", [tmp_path / "one"], KNOWN))
    (point,) = study.best.itertuples()
    assert point.runs == 1 and np.isnan(point.low) and np.isnan(point.high)
    assert "Points that are a single run, without an interval: 1 of 1." in study.notes
    assert "no verdict" in study.notes[-1]


def test_other_settings_are_no_repeats(tmp_path):
    """Runs with another NB are another point; the best settings stand for their number of nodes."""
    for NB, rates in ((96, (50.0, 51.0)), (128, (60.0, 61.0, 62.0))):
        for run, rate in enumerate(rates):
            (tmp_path / f"{NB}-{run}.out").write_text(foreign_hpl.output(rate, NB=NB))
    study = imported_hpl.analyse(dataset_of(tmp_path, "hpl", [tmp_path], {"nodes": 2}))
    (point,) = study.best.itertuples()
    assert (point.NB, point.runs) == (128, 3) and point.mean == pytest.approx(61, rel=1e-3)
    assert len(study.runs) == 5 and any("best of up to 2 settings" in note for note in study.notes)


def test_what_cannot_be_used_stays_with_its_reason(tmp_path):
    """A failed check and a run that was stopped are rows of the dataset, not gaps in it."""
    cases = ("2.0-failed", "2.0-no-memory", "2.0-one-row")
    files = [recorded.FOLDER / "hpl" / f"{case}.txt" for case in cases]
    dataset = dataset_of(tmp_path, "hpl", files, {"nodes": 2})
    assert schema.faults(dataset) == [] and dataset.status.values.tolist() == ["unreadable", "unreadable", "ok"]
    assert "FAILED" in dataset.reason.values[0] and "Memory allocation failed" in dataset.reason.values[1]
    assert np.isfinite(dataset.hpl_rate.values).tolist() == [False, False, True]
    assert "Results that cannot be used, as the list says: 2 of 3." in imported_hpl.analyse(dataset).notes


def test_nothing_usable_ends_in_a_line(falloff):
    """Where every result was refused, the first reasons are the answer."""
    code, _, err = falloff("import", "hpl", recorded.FOLDER / "hpl" / "2.0-failed.txt")
    assert code == 1 and "no result of HPL can be used: the residual check FAILED" in err


def test_a_run_that_two_files_hold_counts_once(tmp_path):
    """HPL.out beside the job's own output is one run; equal rows within one file are two."""
    run = foreign_hpl.output(60.0)
    (tmp_path / "HPL.out").write_text(run)
    (tmp_path / "slurm-17.out").write_text(f"Loading openmpi/4.1.6\n{run}")
    (tmp_path / "twice.out").write_text(foreign_hpl.output(61.0) + foreign_hpl.output(61.0))
    study = imported_hpl.analyse(dataset_of(tmp_path, "hpl", [tmp_path], {"nodes": 2}))
    assert sorted(study.runs.file) == ["HPL.out", "twice.out", "twice.out"] and study.best.runs.tolist() == [3]
    assert "Results that another file has to every digit, counted once: 1." in study.notes


def test_mixed_precision_is_no_share_of_rpeak(tmp_path):
    """HPL-AI prints a row like HPL's; its rate is left out of the efficiencies."""
    files = [recorded.FOLDER / "hpl" / f"{case}.txt" for case in ("nvidia-hpl-ai", "nvidia-per-gpu")]
    study = imported_hpl.analyse(dataset_of(tmp_path, "hpl", files, {"nodes": 1}))
    assert set(study.runs.file) == {"nvidia-per-gpu.txt"} and "mixed precision" in study.notes[1]


def test_what_a_file_says_must_not_be_contradicted(outputs, tmp_path):
    """A given N that is not the file's makes its result invalid."""
    dataset = dataset_of(tmp_path, "hpl", [outputs], {"N": 12345})
    assert set(dataset.status.values) == {"invalid"} and dataset.hpl_rate.isnull().all()
    assert dataset.reason.values[0] == "N is 40000, 12345 was asked for"


def test_other_files_and_copies_are_left_out_and_named(outputs, tmp_path, falloff):
    """A deck, a text and a copy of a run beside the outputs: a line each, and no second run of one."""
    (outputs / "README").write_text("Dear all,\n")
    (outputs / ".git").mkdir()
    (outputs / ".git" / "old.out").write_text((outputs / "gige" / "1-0.out").read_text())
    (outputs / "HPL.dat").write_text((recorded.FOLDER.parent / "decks" / "appendix.dat").read_text())
    (outputs / "gige" / "copy.out").write_text((outputs / "gige" / "1-0.out").read_text())
    code, out, err = falloff("import", "hpl", outputs)
    assert code == 0 and len(err.splitlines()) == 3 and out.startswith("18 results in 18 files")
    assert "HPL.dat: it is an HPL.dat input deck" in err and "README: not an output of HPL" in err
    assert "copy.out: it is a copy of gige/1-0.out" in err


def test_the_same_run_may_stand_for_two_networks(outputs, tmp_path):
    """A run on one node that lies in both networks' folders is meant: with other settings it is no copy."""
    run = outputs / "10gige" / "1-0.out"
    run.write_text((outputs / "gige" / "1-0.out").read_text())
    assert len(importing.read("hpl", [outputs], KNOWN, BY_FOLDER).transcripts) == 18
    assert len(importing.read("hpl", [outputs], KNOWN, ()).transcripts) == 17


def test_importing_again_changes_nothing(outputs, tmp_path):
    """The same files with the same settings are the same campaign; other settings are another one."""
    folder = importing.keep(importing.read("hpl", [outputs], KNOWN, BY_FOLDER), tmp_path / "raw")
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert importing.keep(importing.read("hpl", [outputs], KNOWN, BY_FOLDER), tmp_path / "raw") == folder
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    assert importing.keep(importing.read("hpl", [outputs], KNOWN, ()), tmp_path / "raw") != folder
    assert Folder(folder).stopped_by() == "import" and Folder(folder).extensions() == 0


def test_an_interrupted_import_is_completed(outputs, tmp_path):
    """What a kill left behind half-way is whole after the same command."""
    found = importing.read("hpl", [outputs], KNOWN, BY_FOLDER)
    folder = importing.keep(found, tmp_path / "raw")
    (folder / "transcripts" / f"{found.plan.trials()[3].id}.json").unlink()
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines()[0] + "\n")
    assert importing.keep(found, tmp_path / "raw") == folder
    assert store.assemble(folder).sizes["trial"] == 18 and Folder(folder).stopped_by() == "import"


def test_a_packed_import_is_the_same(outputs, tmp_path):
    """An import can be kept as the references are."""
    folder = importing.keep(importing.read("hpl", [outputs], KNOWN, BY_FOLDER), tmp_path / "raw")
    pack(folder, tmp_path / "packed")
    assert store.assemble(tmp_path / "packed").identical(store.assemble(folder))


@pytest.mark.parametrize("tool", ["hpl", "hpcc", "iperf3", "netperf", "ping", "osu", "imb"])
def test_every_result_of_a_real_output_is_kept(tool, tmp_path):
    """Each recorded output of a tool, whole or not: all its readings, in their units, or the reason against it."""
    files = [recorded.FOLDER / f"{case}.txt" for case in recorded.cases(tool)]
    found = importing.read(tool, files, {"interconnect": "gige"}, ())
    dataset = store.assemble(importing.keep(found, tmp_path / "raw"))
    results = [result for source in found.sources for result in listed(tool, source.text)]
    assert dataset.sizes["trial"] == len(results) and set(dataset.interconnect.values) == {"gige"}
    assert len(imported_text.summary(dataset).splitlines()) == 1 + len(results)
    for number, result in enumerate(results):
        assert (dataset.status.values[number] == "ok") == bool(result.readings)
        for reading in result.readings:
            kept, said = dataset[reading.name].values[number], np.ravel(reading.value)
            assert dataset[reading.name].attrs.get("units", "") == reading.unit
            if isinstance(reading.value, str):
                assert kept == reading.value
            else:
                assert np.ravel(kept)[: len(said)] == pytest.approx(said.astype(float), nan_ok=True)


def listed(tool, text):
    """The results of a text; one without a reading when there is none."""
    try:
        return runner_named(tool).results(text)
    except Unreadable as reason:
        return [Result((), refused=str(reason))]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nods=4"], "'nods' is unknown; there are interconnect, nodes,"),
        (["nodes=4", "nodes=8"], "nodes is set twice"),
        (["nodes=four"], "nodes = 'four' is no number"),
        (["nodes=2.5"], "is no whole number from 1"),
        (["nodes=0"], "is no whole number from 1"),
        (["rpeak=3072"], "one node's, in flop/s"),
        (["rpeak=inf"], "is no number"),
        (["interconnect="], "is no plain name"),
        (["interconnect"], "is no plain name"),
        (["interconnect=$x$"], "is no plain name"),
        (["evidence=emulated"], "'evidence' is unknown"),
    ],
)
def test_a_wrong_setting_is_named(words, said, outputs, falloff):
    """Nothing is guessed from a typing error: one line, exit code 1."""
    pairs = [part for word in words for part in ("--set", word)]
    code, out, err = falloff("import", "hpl", outputs, *pairs)
    assert (code, out, len(err.splitlines())) == (1, "", 1) and said in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a first line"),
        ("name,nodes\na,4\n", "one of them 'file'"),
        ("file,nodes\n1-0.out\n", "line 2: it has not one cell"),
        ("file,nodes\n*.out,4,5\n", "line 2: it has not one cell"),
        ("file,nods\n*.out,4\n", "line 2: 'nods' is unknown"),
        ("file,nodes\n*.log,4\n", "*.log names none of the imported files"),
    ],
)
def test_a_wrong_map_is_named(text, said, outputs, tmp_path, falloff):
    """A table that does not fit the files is refused with the line."""
    table = tmp_path / "map.csv"
    table.write_text(text)
    code, out, err = falloff("import", "hpl", outputs, "--map", table)
    assert (code, out, len(err.splitlines())) == (1, "", 1) and said in err


def test_rows_of_a_map_apply_in_order(tmp_path):
    """A name or a pattern, from the right of the path; a later row wins, an empty cell leaves it unknown."""
    table = tmp_path / "map.csv"
    table.write_text("file, nodes, interconnect\n*.out, 2,\ngige/*.out,, gige\ngige/big.out, 8, 10gige\n")
    rows = given_settings.from_table(table)
    assert given_settings.of_file("a/gige/big.out", {}, rows) == {"nodes": 8, "interconnect": "10gige"}
    assert given_settings.of_file("gige/small.out", {"nodes": 1}, rows) == {"nodes": 2, "interconnect": "gige"}
    assert given_settings.of_file("small.out", {"NB": 64}, rows) == {"nodes": 2, "NB": 64}


def test_a_network_of_ones_own_needs_no_description(outputs, tmp_path):
    """An interconnect that no file describes has its name, and nothing else is claimed of it."""
    dataset = dataset_of(tmp_path, "hpl", [outputs], {**KNOWN, "interconnect": "our fabric"})
    assert json.loads(dataset.attrs["interconnects"]) == {"our fabric": {"name": "our fabric", "short": "our fabric"}}
    assert imported_hpl.interconnects(imported_hpl.analyse(dataset)) == {"our fabric": "our fabric"}


def test_what_is_not_there_ends_in_a_line(tmp_path):
    """A missing file, and a folder without any output, are named."""
    for given, said in ((tmp_path / "none", "there is no file or folder"), (tmp_path, "no output of hpl")):
        with pytest.raises(FalloffError, match=said):
            importing.read("hpl", [given], {}, ())
