"""A figure's chain ends at the bytes of its transcripts; the archive verifies itself and describes
itself truly.
"""

import hashlib
import json
import re
import shlex
import zipfile
from pathlib import Path
from types import SimpleNamespace

import archives
import pytest
import rocrate
import yaml
from archives import falloff
from command_line import ROOT, run
from rdflib.plugins.shared.jsonld.context import Context
from rocrate_validator import services
from rocrate_validator.models import ValidationSettings
from rocrate_validator.utils import http

from analysis import paths
from analysis.evidence import artifact, chain, crate
from analysis.quoting import as_written
from runners.records import archive, manifest
from runners.records.record import FalloffError

# What the notebooks make of each: the first needs the campaigns that it is compared with.
SHOWN = (("none", "no notebook"), ("`payload`", "`48_hpl_messages`"))
FOLDERS = ("hpl_agreement-fortinet_model_simulated", "hpl_messages-scale_model")


def test_a_chain_ends_at_the_raw_transcripts():
    """Every dataset of the figure, and every transcript of it with its own SHA-256 and command
    lines.
    """
    done = run("evidence", "trace", "table1")
    text = done.stdout
    assert done.returncode == 0 and "drawn by   notebooks/44_hpl_paper.ipynb" in text
    digest = hashlib.sha256((paths.PUBLISHED / "fortinet.toml").read_bytes()).hexdigest()
    assert f"File data/published/fortinet.toml\n  sha256     {digest}" in text
    for name, testbed in (
        ("hpl_paper_emulated", "fortinet_model"),
        ("hpl_paper_simulated", "smith"),
    ):
        folder = f"data/reference/{name}-{testbed}"
        raw = dict(archive.read(ROOT / folder / archive.NAME))
        dataset = chain.of(ROOT / folder).dataset
        assert manifest.together(raw) in text
        status = dict(zip(dataset.trial_id.values.tolist(), dataset.status.values.tolist()))
        assert f"falloff run {name} --testbed {testbed}" in text
        for trial, transcript in raw.items():
            place = (
                rf"{trial}: {status[trial]}.*\n    file       {folder}/{archive.NAME}\n    "
                r"sha256     "
            )
            assert re.search(place + hashlib.sha256(transcript).hexdigest(), text)
            for one in json.loads(transcript)["executions"]:
                assert shlex.join(one["argv"]) in text


def test_a_transcript_is_printed_as_it_was():
    """What the tool printed, under its command line."""
    raw = dict(archive.read(paths.REFERENCE / FOLDERS[1] / archive.NAME))["b001-002-hpl"]
    (executed,) = json.loads(raw)["executions"]
    # A bare name may be that of a campaign of today, too.
    whole, bare = (
        run("evidence", "trace", "payload", "--transcript", name).stdout
        for name in (f"{FOLDERS[1]}/b001-002-hpl", "b001-002-hpl")
    )
    assert whole.startswith("$ nsenter") and "exit code 0]" in whole
    assert executed["stdout"].strip() in whole and executed["stdout"].strip() in bare
    both = run("evidence", "trace", "agreement", "--transcript", "b001-001-hpl").stdout
    assert f"{FOLDERS[0]}/b001-001-hpl\n$ " in both and "hpl_scaling-fortinet_model/b001" in both


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A place with this code, two references, a report, a user's own dataset, and no git."""
    place = tmp_path_factory.mktemp("place")
    archives.furnish(place, FOLDERS)
    return place


@pytest.fixture(scope="module")
def archived(place, tmp_path_factory):
    """Its archive, unpacked, and the file."""
    file = tmp_path_factory.mktemp("archive") / "falloff.zip"
    falloff(place, "evidence", "archive", str(file))
    with zipfile.ZipFile(file) as packed:
        packed.extractall(file.parent / "unpacked")
    return file.parent / "unpacked", file


def test_what_is_unpacked_verifies_itself(archived):
    """With its own code, from its own folder; what belongs to the machine stays out."""
    folder, _ = archived
    lines = [line.split(":")[0] for line in falloff(folder, "evidence", "verify").splitlines()]
    assert lines == [f"ok       data/reference/{name}" for name in FOLDERS]
    assert (folder / "build/report/falloff.html").exists() and (
        folder / "data/datasets/own.nc"
    ).exists()
    assert not (folder / ".venv").exists() and not (folder / "build/tools").exists()


@pytest.mark.more
def test_nothing_is_packed_that_was_not_kept_here(place, tmp_path):
    """A file of somebody's below data/, and links to files and folders elsewhere; what is packed is
    printed.
    """
    secret = tmp_path / "secret"
    (secret / "transcripts").mkdir(parents=True)
    (secret / "trials.json").write_text("a secret")
    strangers = {
        "data/notes.txt": None,
        "data/raw/own/password.txt": None,
        "data/raw/link": secret,
        "data/testbeds/link.toml": secret / "trials.json",
    }
    for name, target in strangers.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).symlink_to(target) if target else (place / name).write_text("a secret")
    try:
        printed = falloff(place, "evidence", "archive", str(tmp_path / "a.zip"))
        with zipfile.ZipFile(tmp_path / "a.zip") as packed:
            texts = {name: packed.read(name) for name in packed.namelist()}
    finally:
        for name in strangers:
            (place / name).unlink()
    assert not any(
        b"a secret" in text for name, text in texts.items() if not name.startswith("tests/")
    )
    assert "packed: data/reference/" in printed and "packed: analysis/, " in printed


def test_an_archive_has_what_its_crate_names(archived):
    """Its files are there, and a run has its plan and its transcripts; all descriptions have the
    project's version.
    """
    folder, _ = archived
    entities = {one["@id"]: one for one in json.loads((folder / crate.CRATE).read_text())["@graph"]}
    assert crate.WORKFLOW in entities
    assert all((folder / part["@id"]).is_file() for part in entities["./"]["hasPart"])
    runs = [entities[one["@id"]] for one in entities["./"]["mentions"]]
    assert len(runs) == len(FOLDERS) and all(run["object"] and run["result"] for run in runs)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for name in (crate.CODEMETA, crate.ZENODO):
        assert json.loads((folder / name).read_text())["version"] == str(cited["version"])


@pytest.mark.long
def test_an_archive_is_a_workflow_run_crate(archived, monkeypatch):
    """As the formats' own validator says, which refuses one without its workflow. The contexts are
    the library's, so that nothing is fetched."""
    context = json.loads((Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_text())
    context["@context"]["ComputationalWorkflow"] = (
        "https://bioschemas.org/ComputationalWorkflow"  # as in 1.1
    )
    headers = {"Content-Type": "application/ld+json"}
    answer = SimpleNamespace(status_code=200, ok=True, headers=headers, json=lambda: context)
    monkeypatch.setattr(http.HttpRequester, "get", lambda *_, **__: answer, raising=False)
    monkeypatch.setattr(Context, "_fetch_context", lambda *_: context["@context"])
    folder, _ = archived
    about = json.loads((folder / crate.CRATE).read_text())
    how = ValidationSettings(
        rocrate_uri=".", profile_identifier="workflow-run-crate", metadata_only=True, offline=True
    )
    assert [
        one.message for one in services.validate_metadata_as_dict(about, how).get_issues()
    ] == []
    rest = [one for one in about["@graph"] if one["@id"] != crate.WORKFLOW]
    broken = services.validate_metadata_as_dict(about | {"@graph": rest}, how)
    assert any("instrument" in one.message for one in broken.get_issues())


def test_only_a_report_of_what_is_packed_is_packed(tmp_path, monkeypatch):
    """A report that rests on runs that are not there is refused, with its campaign; nothing is
    written.
    """
    plan, stated = tmp_path / "trials.json", tmp_path / "summary.json"
    plan.write_text('{"digest": "of the packed runs"}')
    one = {"campaign": "hpl_scaling", "digest": "of other runs"}
    stated.write_text(json.dumps({"statements": [one]}))
    files = {"data/raw/own/trials.json": plan, artifact.STATEMENTS: stated}
    monkeypatch.setattr(artifact, "_files", lambda: files)
    with pytest.raises(FalloffError, match="other runs of hpl_scaling.*make report"):
        artifact.write(tmp_path / "a.zip", {})
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.more
def test_the_same_content_gives_the_same_bytes(place, archived, tmp_path):
    """Whatever the moment; what can be executed stays so."""
    again = tmp_path / "again.zip"
    falloff(place, "evidence", "archive", str(again))
    assert again.read_bytes() == archived[1].read_bytes()
    with zipfile.ZipFile(again) as packed:
        modes = {entry.filename: entry.external_attr >> 16 for entry in packed.infolist()}
    assert modes["packaging/install-packages"] == 0o755 and modes["falloff.py"] == 0o644


def test_the_description_follows_the_campaigns(archived):
    """Artifacts, figures, hosts, minutes: all from the chains."""
    text = (archived[0] / artifact.DESCRIPTION).read_text().replace("\\", "")
    assert "commit 0123456789abcdef with changes" in text and not re.search(r"\b(nan|None)\b", text)
    chains = [chain.of(paths.REFERENCE / name) for name in FOLDERS]
    for number, (one, (figure, notebook)) in enumerate(zip(chains, SHOWN), 1):
        section = text[text.index(f"### A{number}:") :].partition("\n### ")[0]
        for part in (one.about, one.dataset.attrs["transcripts_sha256"], figure):
            assert part in section
        assert f"**Substantiates**: the statements of {notebook}" in section
        (minutes,) = re.findall(r"took ([\d.]+)\s+minutes", section)
        assert float(minutes) == pytest.approx(float(one.dataset.wall_time.sum()) / 60, rel=0.01)
    assert (
        as_written(chains[1].dataset.falloff.hosts[0]["cpu_model"]) in text
        and "mpirun (Open MPI)" in text
    )
