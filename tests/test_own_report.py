"""The report of a user's own campaigns: what they say, and nothing of data that are not there."""

import json
import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell

import reporting
from analysis import document, paths
from analysis.notebooks import SUMMARY
from analysis.paths import REFERENCE
from runners import archive

# One with its campaign, one without, and those that open and close the report.
FEW = ("40_hpl_scaling", "42_hpl_noise", SUMMARY, "95_methods")


SENTENCE = "A student wrote this sentence."


def edit(file):
    """Change a notebook as CONTRIBUTING does: its example in a new cell, and a sentence in the first one."""
    page = (paths.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    notebook = nbformat.read(file, as_version=4)
    notebook.cells[0].source += f"\n\n{SENTENCE}"
    notebook.cells.append(new_code_cell(example))
    nbformat.write(notebook, file)


def test_a_changed_notebook_changes_the_report(made):
    """CONTRIBUTING's example: the sentence and the statement are in the report, without anything else to touch."""
    assert SENTENCE in made[0].read_text()
    stated = json.loads((made[0].parent / "summary.json").read_text())["statements"]
    (one,) = [one for one in stated if one["subject"].endswith("from 4 to 16 nodes")]
    assert "GigE" in one["subject"] and one["words"] == "falls off" and one["n"] >= 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The report of a few notebooks on the scaling campaign as a cluster would have run it: other testbed and evidence,
    no pace; and where these were executed."""
    own = tmp_path_factory.mktemp("own")
    mine, source = own / "hpl_scaling-mine-01234567", REFERENCE / "hpl_scaling-fortinet_model"
    shutil.copytree(source, mine, ignore=shutil.ignore_patterns("*.xz", "SHA256SUMS"))
    (mine / "transcripts").mkdir()
    plan = json.loads((source / "trials.json").read_text())
    del plan["testbed"]["node"]
    plan["testbed"] |= {"name": "mine", "kind": "cluster"}
    (mine / "trials.json").write_text(json.dumps(plan))
    for name, text in archive.read(source / archive.NAME):
        transcript = {**json.loads(text), "testbed": "mine", "evidence": "measured"}
        (mine / "transcripts" / f"{name}.json").write_text(json.dumps(transcript))
    folder = tmp_path_factory.mktemp("report")
    (folder / "notebooks").mkdir()
    for name in FEW:
        shutil.copy(paths.NOTEBOOKS / f"{name}.ipynb", folder / "notebooks")
    edit(folder / "notebooks" / f"{FEW[0]}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
        patch.setattr(paths, "EXECUTED", folder / "executed")
        return reporting.make("quick", folder, own)[0], folder / "executed"


def test_a_measured_campaign_makes_no_claim_about_others(made):
    """No word of emulation, simulation or pace in what a reader reads; all statements are measured."""
    section = document.read(made[1] / "40_hpl_scaling" / "40_hpl_scaling.ipynb")
    text = section.markdown
    text = re.sub(r"^::: code$.*?^:::$", "", text, flags=re.M | re.S)
    assert "measured evidence" in text
    assert not re.findall(r"[^\n]*(?:emulat|simulat|paced|namespace)[^\n]*", text, re.I)
    assert {one["evidence"] for one in section.statements} == {"measured"}


def test_only_what_is_there_is_in_the_report(made):
    """Both forms, with the campaign's own provenance; what has no data is named, and has no section."""
    page_file, _ = made
    page = page_file.read_text()
    provenance = page[page.index("Appendix: provenance</h1>") :]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", provenance, re.S)
    assert cells[1:3] == ["mine", "measured"] and page_file.with_suffix(
        ".pdf"
    ).read_bytes().startswith(b"%PDF")
    heads = " ".join(re.findall(r"<h1.*?</h1>", page, re.S))
    assert "HPL over nodes" in heads and "daemon" not in heads.lower()
    text = re.sub(r"<[^>]+>|\s+", " ", page).replace("\\", "")
    assert re.search(r"42_hpl_noise: .* holds no campaign hpl_noise", text)
    stated = json.loads((page_file.parent / "summary.json").read_text())["statements"]
    assert {one["notebook"] for one in stated} == {"40_hpl_scaling"}
