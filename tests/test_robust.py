"""What damage, a mistake or two runs at once must not do: end all with a traceback, hide others, or
leave something behind.
"""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pypandoc
import pytest
import xarray as xr
from command_line import run
from marks import the_rest_is_long

from analysis import paths, planning, running
from analysis.dataset import store
from analysis.descriptions.report_facts import ReportFacts
from analysis.evidence import artifact, verify
from analysis.explorer import server
from analysis.imports import dataset_sections
from analysis.report import execution, machines, publish, report
from analysis.statements import notebooks
from analysis.subjects import program
from runners import executables, payload
from runners.engine import slurm, status
from runners.recording import recorder
from runners.records import lock
from runners.records.journal import Folder, read_transcript, write_whole
from runners.records.record import FalloffError, judge
from runners.tools import tool_named

CAMPAIGNS = sorted(file.parent.name for file in paths.REFERENCE.glob("*/trials.json"))
# One with a further factor, one that needs other campaigns, what no section reads, and what a twin
# simulated.
QUICK = (
    "hpl_size-scale_model",
    "scale_model_dilation-fortinet_model",
    "twin_load-scale_model",
    "twin_held_out-scale_model_twin",
)


class InProcess:
    """A stand-in for the kernel, which runs notebooks in this process."""

    def __enter__(self):
        return self

    def __exit__(self, *_raised):
        pass

    def execute(self, file, made, **parameters):
        try:
            notebooks.run(file, out=str(made.parent), **parameters)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""


def reported(data: Path, monkeypatch, tmp_path):
    """The parts of a report of a folder, and the lines about what it leaves out."""
    built = []

    def build(parts, facts, out):
        built.extend(parts)
        return out, []

    monkeypatch.setattr(execution, "Kernel", InProcess)
    monkeypatch.setattr(report, "build", build)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    *_, lines = execution.make_own(data, tmp_path / "out")
    return built, lines


@pytest.mark.parametrize("name", the_rest_is_long(CAMPAIGNS, QUICK))
def test_every_shipped_campaign_alone_has_a_report(name, monkeypatch, tmp_path):
    """Its own section, or one of its readings with the reason; no further section raises. Without
    either it is one line.
    """
    dataset = store.read(paths.REFERENCE / name)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).symlink_to(paths.REFERENCE / name)
    try:
        parts, lines = reported(tmp_path / "mine", monkeypatch, tmp_path)
    except FalloffError as reason:
        assert "no section shows its readings" in str(reason)
        assert not dataset_sections.of(dataset)
        return
    assert {one.attrs["campaign"] for part in parts for one in part.datasets} == {
        dataset.attrs["campaign"]
    }
    assert all(
        ": " in line and "\n" not in line and "Error:" not in line.partition("FalloffError:")[0]
        for line in lines
    )
    machines.section([dataset], ReportFacts())
    assert "# Limits" in report.methods_and_limits({part.book.stem for part in parts}, [dataset])


def test_a_section_that_cannot_be_made_says_why():
    """Whatever raises: the other sections are shown."""

    def damaged():
        raise IndexError("too many <indices>")

    assert "too many" in report._optional("Beside", damaged)
    assert report._optional("Beside", lambda: "# Beside") == "# Beside"


def test_of_several_runs_of_a_campaign_the_latest_is_reported(monkeypatch, tmp_path):
    """As another preset, number of blocks or testbed leaves them; the others are named."""
    source = paths.REFERENCE / "hpl_size-scale_model"
    for name in ("later", "earlier"):
        shutil.copytree(source, tmp_path / "mine" / name)
    with (tmp_path / "mine" / "later" / "journal.jsonl").open("a") as journal:
        journal.write('{"event": "paused", "at": 9e9, "by": "deadline"}\n')
    parts, lines = reported(tmp_path / "mine", monkeypatch, tmp_path)
    assert len(parts) == 1
    assert [line for line in lines if line.startswith("earlier: later is a later run of hpl_size")]


def test_fresh_leaves_nothing_in_the_way(monkeypatch, tmp_path):
    """What was moved aside is there, and no campaign of the folder any more."""
    monkeypatch.setattr(slurm, "require_idle", lambda folder: None)
    plan = Folder(paths.REFERENCE / "ping_pong-paths").plan()
    folder = running.folder_of(plan, tmp_path)
    for _ in range(2):
        shutil.copytree(paths.REFERENCE / "ping_pong-paths", folder.path)
        running._folder(plan, tmp_path, True)
        assert not folder.path.exists()
        time.sleep(1.1)  # names have seconds
    assert len(list(tmp_path.rglob("trials.json"))) == 2
    with pytest.raises(FalloffError, match="no campaign's folder"):
        verify.folders([tmp_path])


def one_of_each_runner():
    """A transcript of each tool in the references, with its name and its campaign's folder."""
    seen = {}
    for name in (
        "incast-congestion_model",
        "fan_out-paths",
        "hpl_scaling-fortinet_model",
        "mtu-paths",
        "twin_tokens-scale_model",
        "suspects-suspect_model",
        "congestion-flood_model",
        "program_others_hpcc-program_model",
        "frame_size_limit-paths",
        "replay_examples-smith",
        "oversubscription-nemo",
        "frame_size_rate-paths",
        "program-program_model",
    ):
        for trial, text in Folder(paths.REFERENCE / name).texts():
            transcript = read_transcript(text, trial)
            seen.setdefault(transcript.trial.runner, (transcript, paths.REFERENCE / name))
    return seen


@pytest.fixture(scope="module")
def transcripts():
    return one_of_each_runner()


def test_a_setting_that_is_missing_or_of_another_type_is_the_trials_own_fault(transcripts):
    """Of each tool's settings each: a parser never ends with more than a reason."""
    assert len(transcripts) >= 12
    for runner, (transcript, _) in transcripts.items():
        point = transcript.trial.point
        for key in point:
            changed = [{name: value for name, value in point.items() if name != key}]
            changed += [{**point, key: value} for value in ("x", -1, [], None, [[1]], 1e300)]
            for other in changed:
                damaged = replace(transcript, trial=replace(transcript.trial, point=other))
                outcome = judge(damaged, tool_named(runner).parse)
                assert outcome.status == "ok" or outcome.reason, (runner, key)
        for damaged in (
            replace(transcript, executions=transcript.executions[1:]),
            replace(
                transcript,
                executions=tuple(replace(one, stdout="") for one in transcript.executions),
            ),
        ):
            assert judge(damaged, tool_named(runner).parse).reason or runner, runner


@pytest.fixture
def loose(transcripts, tmp_path):
    """`loose(change)`: the folder of a campaign of one incast trial, whose transcript's table was
    changed.
    """

    def of(change):
        transcript, source = transcripts["incast"]
        folder = tmp_path / "damaged"
        (folder / "transcripts").mkdir(parents=True)
        for name in ("trials.json", "journal.jsonl", "provenance.json"):
            shutil.copy(source / name, folder)
        (text,) = (text for trial, text in Folder(source).texts() if trial == transcript.trial.id)
        table = json.loads(text)
        change(table)
        (folder / "transcripts" / f"{transcript.trial.id}.json").write_text(json.dumps(table))
        return folder

    return of


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table["trial"]["point"].pop("blocks_fetched"),
        lambda table: table["trial"]["point"].update(dilation=[]),
        lambda table: table["counters"].update(bytes_sent=[[], 1]),
        lambda table: table["executions"][0].update(start=1e18),
        lambda table: table["executions"][0].update(wall_s=1e15),
    ],
)
def test_a_damaged_campaign_is_told_of_and_the_others_are_checked(loose, change):
    """Fields that are missing, of another type, or beyond any date."""
    assert verify.check(loose(change)).differences


def test_status_names_a_damaged_transcript_with_its_path(loose):
    """The campaign is counted anyway."""
    folder = loose(lambda table: table["executions"][0].update(start=1e18))
    text = status.text(Folder(folder))
    assert "trials kept" in text and f"{folder}/transcripts/" in text and "damaged" in text


def test_two_writers_of_one_file_both_end_well(tmp_path):
    """Each leaves a whole file, whoever comes last; what a killed one left is gone."""
    file, data = tmp_path / "mine.nc", tmp_path / "mine.json"
    for left in (file, data):
        left.with_name(left.name + ".part").write_text("left by a killed run")
    dataset, failed = store.read(paths.REFERENCE / "ping_pong-paths"), []

    def write(number):
        try:
            for _ in range(5):
                store.save(dataset, file)
                write_whole(data, f"{number}" * 10**6)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=[number]) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed and len(set(data.read_text())) == 1
    xr.testing.assert_identical(store.load(file), dataset)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.json", "mine.nc"]


@pytest.mark.parametrize("name", ["*", "/x", "mine*", "mine-x", "mine-x-2", "../mine", "[m]ine"])
def test_a_replay_takes_the_recordings_of_one_program(name, monkeypatch, tmp_path):
    """A pattern or a path is no name, and a file that only looks alike is no recording of it."""
    for file in ("mine-x.txt.xz", "mine-2.txt.xz", "other-4.txt.xz", "mine-2-3.bak.txt.xz"):
        shutil.copy(min(recorder.STORE.glob("*-2.txt.xz")), tmp_path / file)
    monkeypatch.setattr(recorder, "STORE", tmp_path)
    assert list(recorder.by_ranks("mine")) == [2]
    assert recorder.programs() == ["mine", "other"]
    with pytest.raises(FalloffError, match="there is no recorded program"):
        recorder.by_ranks(name)
    with pytest.raises(FalloffError, match="there is no recorded program"):
        recorder.digest(name)


def test_a_name_is_checked_before_the_program_runs(tmp_path):
    """The run may take hours, and its recording would be lost."""
    done = run("profile", "--keep", "npb-is", "--", "touch", str(tmp_path / "ran"))
    assert done.returncode == 1 and "cannot name a program" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_word_that_is_no_text_is_one_line():
    """As a file's name of another encoding."""
    done = run("run", "program", "--keep", "u", "--", "mpirun", "-np", "2", "./p\udcff")
    assert done.returncode == 1 and "UTF-8" in done.stderr and "Traceback" not in done.stderr


def test_another_program_of_the_same_name_makes_other_runs(monkeypatch, tmp_path):
    """Also another input file; the same content is the same run."""
    monkeypatch.setattr(
        paths, "CAMPAIGNS", shutil.copytree(paths.CAMPAIGNS, tmp_path / "campaigns")
    )
    monkeypatch.setattr(executables, "users_folder", lambda folder: folder)
    for file in ("program", "input"):
        (tmp_path / file).write_text("1")
    words = ["mpirun", "-np", "2", "./program", "input", "3"]
    digests = []
    for content in ("1", "2", "1"):
        name = program.described(words, "mine", tmp_path)
        digests.append(planning.plan_campaign(name).digest)
        (tmp_path / "program").write_text("1" if content == "2" else "2")
    (tmp_path / "input").write_text("2")
    digests.append(planning.plan_campaign(name).digest)
    first, recompiled, again, with_input = digests
    assert first == again and len({first, recompiled, with_input}) == 3


def test_a_killed_profile_leaves_nothing(tmp_path):
    """kill -9 of the process that holds the folder."""
    holder = (
        "import sys, time\nfrom runners import payload\nwith payload._scratch() as "
        "folder:\n print(folder, flush=True)\n time.sleep(600)"
    )
    environment = {"PYTHONPATH": str(paths.ROOT), "PATH": "/usr/bin:/bin"}
    owner = subprocess.Popen(
        [sys.executable, "-c", holder],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    folder = Path(owner.stdout.readline().strip())
    assert folder.parent == tmp_path and folder.is_dir()
    owner.kill()
    owner.communicate()
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not list(tmp_path.iterdir())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with payload._scratch() as folder:
            assert folder.is_dir()
    assert not list(tmp_path.iterdir())


def test_the_explorers_page_replaces_what_a_killed_one_left(monkeypatch, tmp_path):
    """Only its user can read it, and it goes with the explorer."""
    monkeypatch.setattr(server, "_private_folder", lambda: tmp_path)
    left = tmp_path / "falloff-explorer-8850.html"
    left.write_text("x" * 1000)
    left.chmod(0o600)
    with server.redirecting("http://127.0.0.1:8850/key/") as page:
        assert (
            page == left.as_uri()
            and "/key/" in left.read_text()
            and "x" not in left.read_text()[-1:]
        )
    assert not list(tmp_path.iterdir())
    key = server.stable_key()
    assert (
        server.stable_key() == key
        and (tmp_path / "falloff-explorer.key").stat().st_mode & 0o77 == 0
    )


@pytest.mark.parametrize(
    ("text", "is_left_out"),
    [
        ('kind = "cluster"\nhosts = ["login1"]\n', True),
        ('extends = "example_slurm"\n[slurm]\naccount = "ab123"\n', True),
        ('extends = "example_ssh"\n[ssh]\nuser = "ada"\n', True),
        ("not TOML", True),
        ('kind = "simulated"\nnodes = 4\n', False),
    ],
)
def test_an_archive_names_nobodys_hosts(text, is_left_out, tmp_path):
    """Descriptions of own clusters stay here, the shipped examples and twins are packed."""
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert artifact._names_a_cluster("data/testbeds/mine.toml", file) is is_left_out
    assert not artifact._names_a_cluster("data/campaigns/mine.toml", file)
    example = paths.TESTBEDS / "example_slurm.toml"
    assert not artifact._names_a_cluster(f"data/testbeds/{example.name}", example)


def test_an_introduction_is_text_in_every_form_of_the_report():
    """HTML and raw blocks in it are no commands, whoever reads the Markdown; emphasis stays."""
    facts = ReportFacts(
        introduction="*Mine*: <script>alert(1)</script> `<b>`{=html} \\input{/etc/passwd}"
    )
    text = report.introduction(facts)
    html, latex = (pypandoc.convert_text(text, form, "markdown") for form in ("html", "latex"))
    assert "<em>Mine</em>" in html and "alert(1)" in html
    assert (
        "<script" not in html
        and "<b>" not in html
        and not re.search(r"(?<!textbackslash )\\input", latex)
    )
    assert (
        "<script"
        not in publish.to_html(text, {"title": "t"}, paths.ROOT)
        .split("<h1")[-1]
        .partition("Mine")[2]
        .partition("</p>")[0]
    )


def test_simulations_wait_for_nobody_but_their_own_campaign(monkeypatch, tmp_path):
    """A measurement neither waits for one nor disturbs it; two of one folder take turns."""
    monkeypatch.setenv("FALLOFF_LOCKS", str(tmp_path))
    simulated, machine = {"kind": "simulated", "name": "twin"}, {"kind": "emulated", "name": "mine"}
    with (
        lock.measuring(machine, "measures", pytest.fail),
        lock.measuring(simulated, "a", pytest.fail, "/a"),
    ):
        with lock.measuring(simulated, "b", pytest.fail, "/b") as waited:
            assert waited is False

        class Waits(Exception):
            pass

        def wait(message):
            raise Waits

        with pytest.raises(Waits), lock.measuring(simulated, "a", wait, "/a"):
            pass
