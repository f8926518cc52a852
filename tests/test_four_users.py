"""Four users, each from what they have to what they want: an engineer with files, an owner of a
cluster, a student, a reviewer.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import archives
import daemons
import measured
import nbformat
import nodes
import own_results
import pytest
import user
from command_line import ROOT, run
from nbformat.v4 import new_code_cell
from own_pages import of_emulation, words

from analysis import paths
from analysis.report import execution

MINUTE = 60  # seconds of a processor, which other work does not stretch


def stated(report: Path) -> list[dict]:
    """The statements of a report."""
    return json.loads((report / "summary.json").read_text())["statements"]


@pytest.mark.long  # tests/test_own_report.py runs the same commands in one process
def test_files_become_a_published_verdict(tmp_path):
    """Three commands and less than a minute from 45 outputs of HPL to a PDF that says of each
    network what was planted.
    """
    truth = own_results.write_hpl(tmp_path / "results")
    assert len(list((tmp_path / "results").rglob("HPL.out"))) == 45
    environment = {**os.environ, "FALLOFF_HOME": str(tmp_path / "home")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for line in (
        "import hpl results --write-map map.csv",
        "import hpl results --map map.csv --out mine",
        "report --data mine --out report",
    ):
        command = [sys.executable, str(ROOT / "falloff.py"), *line.split()]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < MINUTE
    assert (tmp_path / "report" / "report.pdf").read_bytes().startswith(b"%PDF")
    own_results.require_planted(stated(tmp_path / "report"), truth)
    page = words((tmp_path / "report" / "report.html").read_text())
    assert "GigE falls off" in page and not of_emulation(tmp_path / "report")


@pytest.mark.long
@pytest.mark.alone
def test_a_cluster_is_measured_over_ssh_and_reported_in_its_own_words(tmp_path, monkeypatch):
    """On four nodes with real sshd: the campaign runs, and no page of its report has a word of
    emulation or simulation.
    """
    if lacking := daemons.lacking(["/usr/sbin/sshd"]):
        pytest.skip("; ".join(lacking))
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    with nodes.up(4) as cluster:
        owner = user.clone(cluster, daemons.ENVIRONMENT)
        owner.describe("four", user.by_ssh("four", daemons.ssh(cluster)))
        asked = ("hpl_scaling", "--testbed", "four", "--preset", "full", "--repeats", "2")
        done = owner.falloff("run", *asked)
        assert done.returncode == 0, done.stdout + done.stderr
        raw = tmp_path / "raw"
        shutil.copytree(owner.clone / "data" / "raw", raw)
    done = run("report", "--data", str(raw), "--out", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    assert not of_emulation(tmp_path / "report")
    (fall,) = (
        one for one in stated(tmp_path / "report") if one["quantity"] == "fall" and one["primary"]
    )
    assert fall["evidence"] == "measured" and fall["n"] == 2
    assert "GigE" in fall["subject"] and "10GE" in fall["subject"]


SENTENCE = "A student wrote this sentence."


@pytest.mark.more
def test_a_student_changes_a_notebook_and_the_report_follows(tmp_path, monkeypatch):
    """CONTRIBUTING's example: the sentence and the statement are in the report, without anything
    else to touch.
    """
    own = tmp_path / "own"
    own.mkdir()
    measured.write(own)
    (tmp_path / "notebooks").mkdir()
    file = tmp_path / "notebooks" / "40_hpl_scaling.ipynb"
    shutil.copy(paths.NOTEBOOKS / file.name, file)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", contributing, re.M | re.S)
    notebook = nbformat.read(file, as_version=4)
    notebook.cells[0].source += f"\n\n{SENTENCE}"
    notebook.cells.append(new_code_cell(example.replace("unshaped", "10gige")))
    nbformat.write(notebook, file)
    page, *_ = execution.make_own(own, tmp_path / "out")
    assert SENTENCE in page.read_text()
    (one,) = [one for one in stated(page.parent) if one["subject"].endswith("from 4 to 16 nodes")]
    assert "GigE" in one["subject"] and one["words"] == "falls off" and one["n"] >= 4


@pytest.mark.more
def test_a_reviewer_verifies_an_archive_and_refuses_a_changed_one(tmp_path):
    """What is unpacked verifies itself with its own code. With one bit changed in any file of the
    evidence it is refused, and the file is named."""
    reference = "hpl_agreement-fortinet_model_simulated"
    archives.furnish(tmp_path / "author", [reference])
    archives.falloff(tmp_path / "author", "evidence", "archive", str(tmp_path / "falloff.zip"))
    with zipfile.ZipFile(tmp_path / "falloff.zip") as packed:
        packed.extractall(tmp_path / "reviewer")
    said = archives.falloff(tmp_path / "reviewer", "evidence", "verify")
    assert said.startswith(f"ok       data/reference/{reference}")
    folder = tmp_path / "reviewer" / "data" / "reference" / reference
    for file in sorted(folder.iterdir()):
        kept = file.read_bytes()
        if file.name == "SHA256SUMS":  # what the others are known by
            continue
        middle = len(kept) // 2
        file.write_bytes(kept[:middle] + bytes([kept[middle] ^ 1]) + kept[middle + 1 :])
        said = archives.falloff(tmp_path / "reviewer", "evidence", "verify", code=1)
        assert reference in said and "Traceback" not in said and file.name in said, file.name
        file.write_bytes(kept)
    archives.falloff(tmp_path / "reviewer", "evidence", "verify")
