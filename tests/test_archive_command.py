"""The archive: what is unpacked verifies itself, describes itself truly, and is the same for the same content."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256

import pytest
import yaml
from command_line import ROOT, run
from rocrate.rocrate import ROCrate

import archiving
from analysis import paths
from analysis.evidence import artifact, chain, citation, crate
from runners.record import FalloffError

FOLDERS = ("hpl_agreement-scale_model_simulated", "hpl_payload-scale_model")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A place with this code, two references, a report, a user's own dataset, and no git."""
    place = tmp_path_factory.mktemp("place")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        reference = name.startswith("data/reference/") and name.split("/")[2] not in (*FOLDERS, "trust.csv")
        if (ROOT / name).exists() and not reference and not name.startswith("tests/"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    for name in ("build/report/falloff.html", "data/datasets/own.nc", "build/tools/bin/xhpl", ".venv/bin/python"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("of this place")
    (place / "commit.json").write_text('{"git_commit": "0123456789abcdef", "git_dirty": true}')
    return place


@pytest.fixture(scope="module")
def archived(place, tmp_path_factory):
    """Its archive, unpacked, and the file."""
    file = tmp_path_factory.mktemp("archive") / "falloff.zip"
    falloff(place, "archive", str(file))
    folder = file.parent / "unpacked"
    with zipfile.ZipFile(file) as packed:
        packed.extractall(folder)
    return folder, file


def falloff(place, *arguments):
    """Run the command line of a place that is not installed."""
    command = [sys.executable, "falloff.py", *arguments]
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(place.parent)}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_unpacked_verifies_itself(archived):
    """With its own code, from its own folder."""
    said = falloff(archived[0], "verify")
    assert [line.split(":")[0] for line in said.splitlines()] == [
        f"ok       data/reference/{name}" for name in FOLDERS
    ]


def test_the_crate_is_read_by_rocrate(archived):
    """Every file with its true size and digest; each campaign an action with instrument, object and result."""
    folder, file = archived
    read = ROCrate(folder)
    files = {it.id for it in read.get_by_type("File")}
    with zipfile.ZipFile(file) as packed:
        assert files == set(packed.namelist()) - {crate.NAME}
    for name in files:
        said, content = read.dereference(name), (folder / name).read_bytes()
        assert (said["sha256"], said["contentSize"]) == (sha256(content).hexdigest(), str(len(content))), name
    cited = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert [author["name"] for author in read.root_dataset["author"]] == [
        author["name"] for author in cited["authors"]
    ]
    assert read.root_dataset["license"].id.endswith(cited["license"])
    actions = {action.id: action for action in read.get_by_type("CreateAction")}
    assert set(actions) == {f"#data/reference/{name}" for name in FOLDERS}
    assert set(read.root_dataset["mentions"]) == set(actions.values())
    for identifier, action in actions.items():
        inside = {name for name in files if f"#{name}".startswith(f"{identifier}/")}
        told = {it.id for it in (*action["object"], *action["result"])}
        assert inside <= told and f"{identifier[1:]}/trials.json" in {it.id for it in action["object"]}
        software = action["instrument"]
        assert all(it.type == "SoftwareApplication" for it in software) and len(software) > 1
        assert "commit 0123456789abcdef with changes" in software[0]["softwareVersion"]
        assert action["startTime"] < action["endTime"]


def test_what_belongs_to_the_machine_stays_out(archived):
    """The report and the user's dataset are in it, built tools and the environment are not."""
    folder, _ = archived
    assert (folder / "build/report/falloff.html").exists() and (folder / "data/datasets/own.nc").exists()
    assert not (folder / ".venv").exists() and not (folder / "build/tools").exists()
    assert (folder / "install-packages").exists() and json.loads((folder / "commit.json").read_text())["git_dirty"]


def test_the_same_content_gives_the_same_bytes(place, archived, tmp_path):
    """Whatever the moment."""
    again = tmp_path / "again.zip"
    falloff(place, "archive", str(again))
    assert again.read_bytes() == archived[1].read_bytes()
    with zipfile.ZipFile(again) as packed:
        modes = {entry.filename: entry.external_attr >> 16 for entry in packed.infolist()}
        assert {entry.date_time for entry in packed.infolist()} == {archiving.UNDATED}
        assert modes["install-packages"] == 0o755 and modes["falloff.py"] == 0o644


def test_nothing_is_written_over(tmp_path):
    """A file that is there is kept, and the answer is a line."""
    mine = tmp_path / "mine.zip"
    mine.write_text("precious")
    done = run("archive", str(mine))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (
        1,
        "",
        1,
    ) and "is there already" in done.stderr
    assert mine.read_text() == "precious"


def test_the_description_follows_the_campaigns(archived):
    """Contributions, artifacts, figures, hosts, minutes: all from the chains."""
    chains = [chain.of(paths.REFERENCE / name) for name in FOLDERS]
    said = (archived[0] / artifact.NAME).read_text()
    assert "commit `0123456789abcdef` with changes" in said and not re.search(r"\b(nan|None)\b", said)
    said = said.replace("\\", "")
    assert re.findall(r"^- \*\*C\d\*\* .* \((A\d)\)$", said, re.M) == ["A1", "A2"]
    figures = dict(re.findall(r"^\| A\d \| `(\w+)` on .* \| `([\w`, ]+)` \|$", said, re.M))
    assert figures == {"hpl_agreement": "agreement", "hpl_payload": "payload"}
    for number, it in enumerate(chains, 1):
        assert it.dataset_sha256 in said and it.transcripts_sha256 in said and it.command in said
        (row,) = re.findall(rf"^\| A{number} \| ([\d.]+) \| (\d+) \|", said, re.M)
        assert float(row[0]) == pytest.approx(it.busy_s / 60, rel=0.01) and int(row[1]) == len(it.links)
    assert chains[1].sessions[0].cpu_model in said and "mpirun (Open MPI)" in said


def test_a_citation_that_lacks_something_is_refused(tmp_path):
    """Persons and groups are told apart; what is missing is named."""
    file = tmp_path / "CITATION.cff"
    file.write_text(
        "title: T\nversion: 1\nlicense: MIT\nauthors:\n- family-names: Doe\n  given-names: Jo\n- name: Us\n"
    )
    found = citation.read(file)
    assert (found.persons, found.groups, found.version) == (("Jo Doe",), ("Us",), "1")
    for text in ("title: T\n", "- : [", "title: T\nversion: 1\nlicense: MIT\nauthors: 3\n"):
        file.write_text(text)
        with pytest.raises(FalloffError, match="CITATION.cff is no citation file"):
            citation.read(file)
    with pytest.raises(FalloffError, match="there is no"):
        citation.read(tmp_path / "none.cff")
