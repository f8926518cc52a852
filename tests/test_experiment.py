"""From names to a dataset: what a notebook or the command line asks for, and what is refused."""

import shutil
from types import SimpleNamespace

import pytest

from analysis import experiment, paths, planning, running
from analysis.descriptions import testbeds
from runners.records import provenance
from runners.records.journal import Folder
from runners.records.record import FalloffError

GOOD = {"preset": "stored", "testbed": "emulated", "blocks": 0, "out": "build"}


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"block": 3}, "'block' is unknown"),
        ({"blocks": "3"}, "blocks = '3' is not int"),
        ({"blocks": True}, "blocks = True is not int"),
        ({"blocks": -1, "preset": "quick"}, "never negative"),
        ({"preset": "qick"}, "preset = qick is unknown; did you mean quick?"),
        ({"blocks": 4}, "must be 0 for the stored preset"),
        ({"out": 7, "prices": "x"}, "'prices' is unknown; out = 7 is not str"),
    ],
)
def test_wrong_parameters_are_refused_before_anything_runs(change, answer):
    """papermill takes any name and type; the first call of a notebook does not, and lists what
    there is. Modules, functions, private names and the notebook's own do not matter."""
    around = {"In": ["x"], "_": 3, "experiment": experiment, "print": print, "lists": 1}
    good = experiment.Parameters(**GOOD)
    assert experiment.Parameters.check({**GOOD, **around}, besides=["lists"]) == good
    with pytest.raises(FalloffError) as refusal:
        experiment.Parameters.check({**GOOD, **change})
    assert answer in str(refusal.value) and "There are: preset" in str(refusal.value)


@pytest.mark.parametrize(
    ("extends", "answer"),
    [
        ('"a"', "a extends a"),
        ('"b"', "a extends b extends a"),
        ("3", "must be the name of a testbed"),
    ],
)
def test_a_testbed_that_extends_itself_is_refused(tmp_path, monkeypatch, extends, answer):
    """Directly, in a circle, or by what is no name."""
    monkeypatch.setattr(paths, "TESTBEDS", tmp_path)
    (tmp_path / "a.toml").write_text(f'name = "a"\nextends = {extends}\n')
    (tmp_path / "b.toml").write_text('name = "b"\nextends = "a"\n')
    with pytest.raises(FalloffError, match=answer):
        testbeds.read("a").plain()


@pytest.fixture
def read(tmp_path, monkeypatch):
    """`read(**changes)` as a notebook on hpl_paper_simulated reads, which runs nothing: its `runs`,
    the run of `today`, what stands `beside` them, which campaigns `ran` and what was `saved`."""
    ran = []

    def run_campaign(plan, **_):
        ran.append((plan.name, plan.testbed["name"], len(plan.blocks)))
        return paths.REFERENCE / "hpl_messages-scale_model"

    monkeypatch.setattr(running, "run_campaign", run_campaign)

    def of(**changes):
        given = {
            **GOOD,
            "testbed": "",
            "out": str(tmp_path),
            "campaign": "hpl_paper_simulated",
            **changes,
        }
        parameters = experiment.Parameters(**given)
        found = SimpleNamespace(
            runs=experiment.runs(parameters),
            today=experiment.run_today(parameters),
            beside=experiment.beside(parameters, "hpl_noise"),
            ran=ran,
        )
        found.saved = {file.name for file in tmp_path.glob("*.nc")}
        return found

    return of


def of_testbed(dataset):
    return dataset and dataset.testbed.values[0]


def test_what_is_read_and_run(read):
    """Stored runs nothing; quick runs what is compared with the reference, for so many blocks; full
    runs all in its place.
    """
    found = read()
    assert of_testbed(found.runs) == "smith" and found.today is None
    assert of_testbed(found.beside) == "scale_model"
    assert (
        not found.ran
        and {"hpl_paper_simulated-smith.nc", "hpl_noise-scale_model.nc"} <= found.saved
    )
    found = read(preset="quick", blocks=3)
    assert found.ran == [("hpl_paper_simulated", "smith", 3)]
    assert of_testbed(found.runs) == "smith" and found.today
    assert {
        "hpl_paper_simulated-smith.nc",
        "hpl_paper_simulated-scale_model-today.nc",
    } <= found.saved
    found.ran.clear()
    found = read(preset="full")
    assert [name for name, *_ in found.ran] == ["hpl_paper_simulated", "hpl_noise"]
    assert of_testbed(found.runs) == "scale_model" and found.today is None


def test_on_another_testbed_the_notebooks_own_campaign_is_run(read):
    """Of which there is no reference; the others are stored."""
    found = read(preset="quick", testbed="scale_model")
    assert [run[:2] for run in found.ran] == [("hpl_paper_simulated", "scale_model")]
    assert of_testbed(found.runs) == "scale_model" and found.today is None
    with pytest.raises(
        FalloffError, match="no reference campaign 'hpl_paper_simulated-scale_model'"
    ):
        read(testbed="scale_model")


def test_ones_own_data_are_read_and_nothing_else(read, tmp_path):
    """What the folder has not is missing: a notebook does without it, and of two runs the later
    counts.
    """
    own = tmp_path / "own"
    with pytest.raises(FalloffError, match="no campaign's folder"):
        read(data=str(own))
    shutil.copytree(paths.REFERENCE / "hpl_paper_simulated-smith", own / "mine")
    found = read(preset="quick", data=str(own))
    assert of_testbed(found.runs) == "smith"
    assert (found.beside, found.today, found.ran) == (None, None, [])
    later = own / "before mine by name"
    shutil.copytree(own / "mine", later)
    with (later / "journal.jsonl").open("a") as journal:
        journal.write('{"event": "paused", "at": 9e9, "by": "deadline"}\n')
    text = (later / "trials.json").read_text()
    (later / "trials.json").write_text(
        text.replace('"title":"', '"title":"Later: ').replace('"title": "', '"title": "Later: ')
    )
    assert read(data=str(own)).runs.attrs["title"].startswith("Later: ")
    with pytest.raises(FalloffError, match="holds no campaign hpl_noise"):
        experiment.in_folder(own, "hpl_noise")


def test_a_damaged_campaign_hides_no_other(read, tmp_path):
    """It is refused where it is asked for, and the others are read."""
    shutil.copytree(paths.REFERENCE / "hpl_paper_simulated-smith", tmp_path / "mine")
    damaged = tmp_path / "hpl_noise-scale_model"
    damaged.mkdir()
    (damaged / "trials.json").write_text("{")
    assert of_testbed(read(data=str(tmp_path)).runs) == "smith"
    assert read(data=str(tmp_path)).beside is None
    with pytest.raises(FalloffError, match="trials.json is damaged"):
        experiment.in_folder(tmp_path, "hpl_noise")


def test_without_the_tools_the_remedy_is_named(tmp_path, monkeypatch):
    """Where nothing can be run: what is missing, and what would bring it."""
    monkeypatch.setattr(running, "folder_of", lambda plan, out=None: Folder(tmp_path / "campaign"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FalloffError, match="apt-get|root"):
        experiment.run_today(experiment.Parameters("quick", "", 0, str(tmp_path)), "hpl_scaling")


def test_broken_toml_is_named(tmp_path, monkeypatch):
    """A campaign file with a slip of the pen is refused with its name and place."""
    (tmp_path / "mine.toml").write_text("name = \n")
    monkeypatch.setattr(paths, "CAMPAIGNS", tmp_path)
    with pytest.raises(FalloffError, match=r"mine\.toml is not valid TOML.*line 1"):
        planning.plan_campaign("mine")


def test_fresh_moves_the_old_trials_aside(tmp_path, monkeypatch):
    """`--fresh` loses nothing: the earlier folder is still there under another name."""
    plan = planning.plan_campaign("hpl_scaling")
    folder = running.folder_of(plan, tmp_path)
    folder.create_or_check(plan)
    (folder.path / "transcripts" / "precious.json").write_text("{}")
    monkeypatch.setattr(running, "obstacles", lambda plan: ["not today"])
    with pytest.raises(FalloffError, match="not today"):
        running.run_campaign(plan, tmp_path, fresh=True)
    (kept,) = tmp_path.rglob("precious.json")
    assert kept.parent.parent != folder.path


def test_a_matrix_beyond_this_machines_memory_is_refused(monkeypatch):
    """Emulated nodes share one memory: the paper's matrices are refused there, and simulated
    anywhere.
    """
    monkeypatch.setattr(provenance, "memory_bytes", lambda: 24 * 10**9)

    def refusals(*names):
        lines = running.obstacles(planning.plan_campaign(*names))
        return [line for line in lines if "115 GB" in line and "--testbed smith" in line]

    assert refusals("hpl_paper_simulated", "emulated") and not refusals(
        "hpl_paper_simulated", "smith"
    )
    assert not refusals("hpl_scaling")


def test_the_reference_is_complete():
    """Every trial of its blocks is there, to the end that it plans; test_references holds its plan
    against today's.
    """
    folder = Folder(paths.REFERENCE / "hpl_scaling-fortinet_model")
    assert folder.stopped_by() in ("blocks", "decided")
    dataset = experiment.stored("hpl_scaling")
    planned = {trial.id for trial in folder.plan().trials() if trial.block <= dataset.block.max()}
    assert set(dataset.trial_id.values) == planned
