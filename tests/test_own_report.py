"""The report of a user's own campaigns: what they say, and nothing of data that are not there."""

import json
import re
import shutil

import pytest

import reporting
from analysis import document, paths
from analysis.paths import REFERENCE
from analysis.summary import SUMMARY
from runners import archive

# One with its campaign, one without, and those that open and close the report.
FEW = ("40_hpl_scaling", "42_hpl_noise", SUMMARY, "95_methods")


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
        patch.setattr(paths, "EXECUTED", folder / "executed")
        return reporting.make("quick", folder, own)[0], folder / "executed"


def test_a_measured_campaign_makes_no_claim_about_others(made):
    """No word of emulation, simulation or pace before what the section does not say; all findings are measured."""
    section = document.read(made[1] / "40_hpl_scaling" / "40_hpl_scaling.ipynb")
    text = section.markdown.partition("What it does not say")[0]
    assert "measured evidence" in text
    assert not re.findall(r"[^\n]*(?:emulat|simulat|paced|namespace)[^\n]*", text, re.I)
    assert {finding["evidence"] for finding in section.findings} == {"measured"}


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
    stated = json.loads((page_file.parent / "summary.json").read_text())["findings"]
    assert {finding["experiment"] for finding in stated} == {"hpl_scaling", "hpl_laws"}
