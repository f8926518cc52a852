"""The report of a user's own campaigns: what they say, and nothing of data that are not there."""

import json
import re
import shutil

import pytest
from command_line import ROOT, run
from matplotlib.text import Text

import experiment
from analysis import own, report
from analysis.studies import together
from analysis.wording import plain
from runners import archive
from runners.record import FalloffError

REFERENCE = ROOT / "data" / "reference"


def copied(folder, *names):
    """A folder with copies of these references."""
    for name in names:
        shutil.copytree(REFERENCE / name, folder / name)
    return folder


def text(folder):
    """The report's Markdown of the campaigns in a folder, and their studies."""
    datasets, _ = own.datasets(folder)
    studies = together.analyse(datasets)
    return report.text(report.facts(studies), [], "supplement"), studies


def bodies(markdown):
    """The sections of a document: level, title and what stands before the next heading."""
    return re.findall(r"^(#+) ([^\n]+)\n(.*?)(?=^#+ |\Z)", markdown, re.M | re.S)


def empty(markdown):
    """The titles of sections in which there is nothing."""
    found = bodies(markdown)
    next_levels = [level for level, _, _ in found[1:]] + ["#"]
    return [
        title
        for (level, title, body), after in zip(found, next_levels)
        if not body.strip() and len(after) <= len(level)
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The scaling campaign as a cluster would have run it: other testbed, other evidence, no pace."""
    folder = tmp_path_factory.mktemp("own")
    mine, source = folder / "hpl_scaling-mine-01234567", REFERENCE / "hpl_scaling-scale_model"
    (mine / "transcripts").mkdir(parents=True)
    for name in ("journal.jsonl", "provenance.json"):
        shutil.copy(source / name, mine / name)
    plan = json.loads((source / "trials.json").read_text())
    del plan["testbed"]["node"]
    (mine / "trials.json").write_text(
        json.dumps({**plan, "testbed": {**plan["testbed"], "name": "mine", "kind": "cluster"}})
    )
    for name, said in archive.read(source / archive.NAME):
        transcript = {**json.loads(said), "testbed": "mine", "evidence": "measured"}
        (mine / "transcripts" / f"{name}.json").write_text(json.dumps(transcript))
    return folder


def test_a_measured_campaign_makes_no_claim_about_others(measured):
    """No word of emulation, simulation or quotas, in text and figures; the verdicts say what they rest on.

    But for the ledger of claims and the report's methods, which say what each kind of evidence can tell.
    """
    said, studies = text(measured)
    own_words = re.sub(r"^# The sources' claims.*?(?=^# )", "", said, flags=re.M | re.S)
    assert not re.findall(r"[^\n]*(?:emulat|simulat|quota|namespace)[^\n]*", own_words, re.I)
    abstract = report.abstract(report.facts(studies))
    assert "GigE" in abstract and "measured)" in abstract and not re.search("emulat|simulat", abstract)
    assert "measured evidence" in said and "cluster mine" in said
    words = [text.get_text() for figure in report.draw(studies).values() for text in figure.findobj(Text)]
    assert words and not re.search("emulat|simulat", " ".join(words))


@pytest.mark.parametrize(
    "further", [(), ("hpl_blas-emulated",), ("hpl_payload-scale_model", "tcp_mtu-paths", "frame_limits-paths")], ids=len
)
def test_only_what_is_there_has_a_section(tmp_path, further):
    """No section without its data, and no empty one."""
    said, studies = text(copied(tmp_path, "hpl_scaling-scale_model", *further))
    assert set(studies.datasets) == {name.split("-")[0] for name in ("hpl_scaling-scale_model", *further)}
    assert ("# The library under HPL" in said) == ("hpl_blas-emulated" in further)
    assert ("# What HPL sends" in said) == ("hpl_payload-scale_model" in further)
    assert empty(said) == []


def judged_on_runs(source):
    """Whether any claim of a source has a verdict by more than its printed numbers."""
    found = [it for claim in source["claims"] for it in claim["judged"] if it["evidence"] != "published"]
    return any(it["verdict"] in ("supported", "contradicted", "undecided") for it in found)


ALONE = [name for name in together.DATASETS if name not in together.BESIDE]
BESIDE = [f"{other}+{name}" for name, other in together.BESIDE.items() if other in ALONE]


@pytest.mark.parametrize("names", ALONE + BESIDE)
def test_every_campaign_makes_a_report_of_its_own(names, capsys):
    """Of whichever campaign: both documents meet the twelve rules, and neither speaks of what is not there."""
    stored, missing = experiment.all_stored()
    assert missing == []
    datasets = {name: stored[name] for name in names.split("+")}
    studies = together.analyse(datasets)
    known, drawn = report.facts(studies), report.draw(studies)
    both = [report.text(known, [], document) for document in ("report", "supplement")]
    for said in both:
        assert empty(said) == [] and "None" not in said and not re.search(r"\b0 statements", said)
        shown = set(re.findall(r"\(figures/(\w+)\.svg\)", said))
        assert shown <= set(drawn)
        linked = set(re.findall(r"\[\]\(#((?:fig|tbl):[\w-]+)\)", said))
        assert linked <= set(re.findall(r"\{#((?:fig|tbl):[\w-]+)", said))
        if "hpl_scaling" not in datasets:
            assert "HPL over few nodes" not in said and "#fig:share" not in said
    kinds = {kind for kind in ("emulated", "simulated") if any(kind in it.evidence for it in datasets.values())}
    abstract = report.abstract(known)
    assert ("emulat" in abstract) == ("emulated" in kinds) and ("simulat" in abstract.lower()) == ("simulated" in kinds)
    in_ledger = {plain(source["short"]) for source in known["claims"]["sources"] if judged_on_runs(source)}
    assert set(re.findall(r"^\| \| \*(.+?)\* \|", both[0], re.M)) == in_ledger
    own_page = report.judged(studies, drawn, both[0], own=True, beside=both[1])
    assert report.judged(studies, drawn, both[1], own=True).startswith(both[1]) and own_page.startswith(both[0])
    assert capsys.readouterr().err == ""  # where a rule was broken there would be a note


@pytest.mark.parametrize("name", together.BESIDE)
def test_what_is_shown_beside_another_is_not_shown_alone(name, tmp_path):
    """It is named with the campaign that it needs; and where nothing else is there, no report is made."""
    source = "-".join(together.DATASETS[name])
    with pytest.raises(FalloffError, match=f"campaign {name} is shown beside {together.BESIDE[name]}, which is not in"):
        own.datasets(copied(tmp_path / "alone", source))
    datasets, (line,) = own.datasets(copied(tmp_path / "two", source, "hpl_blas-emulated"))
    assert set(datasets) == {"hpl_blas"} and source in line


def test_the_command_writes_the_report(measured, tmp_path):
    """Of that folder alone, both forms, with its own campaign in the chain of evidence."""
    done = run("report", "--data", str(measured), "--out", str(tmp_path))
    assert done.returncode == 0 and "Report of hpl_scaling:" in done.stdout
    page = (tmp_path / "falloff.html").read_text()
    assert "falloff run hpl_scaling --testbed mine" in page and (tmp_path / "falloff.pdf").exists()


def test_what_cannot_be_shown_is_said(measured, tmp_path):
    """No campaign, two for one place; one without a section is left out."""
    folder = copied(tmp_path / "two", "hpl_scaling-scale_model")
    shutil.copytree(folder / "hpl_scaling-scale_model", folder / "again")
    with pytest.raises(FalloffError, match="are both of campaign hpl_scaling"):
        own.datasets(folder)
    done = run(
        "report", "--data", str(copied(tmp_path / "other", "long_repeats-paths")), "--out", str(tmp_path / "out")
    )
    assert done.returncode == 1 and "is shown beside long_path" in done.stderr and not (tmp_path / "out").exists()
    assert "Traceback" not in done.stderr
    strange = copied(tmp_path / "strange", "hpl_payload-scale_model") / "hpl_payload-scale_model"
    plan = json.loads((strange / "trials.json").read_text())
    (strange / "trials.json").write_text(json.dumps({**plan, "name": "my_own"}))
    with pytest.raises(FalloffError, match="no section for campaign my_own"):
        own.datasets(strange)
    shutil.copytree(REFERENCE / "hpl_payload-scale_model", strange.parent / "other")
    datasets, (line,) = own.datasets(strange.parent)
    assert set(datasets) == {"hpl_payload"} and "no section for campaign my_own" in line
    with pytest.raises(FalloffError, match="no campaign's folder"):
        own.datasets(tmp_path / "nowhere")
