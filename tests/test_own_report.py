"""The report of a user's own data: from files to a verdict, what they say, and nothing of data that
are not there.
"""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import measured
import own_results
import pypandoc
import pytest
import recorded
from command_line import run
from own_pages import of_emulation, words

from analysis import paths
from analysis.dataset import store
from analysis.report import execution
from runners.records.record import FalloffError

FACTS = """
title = "Three networks of my cluster"
authors = ["Ada Example", "Bob Example"]
affiliation = "Example University"
numbers = "de"
[cluster]
mpi = "Open MPI 4.1"
nodes = "16 behind one switch"
"""


@pytest.fixture(scope="module")
def hpl(tmp_path_factory):
    """45 outputs of HPL on three networks, and what three commands make of them."""
    home = tmp_path_factory.mktemp("home")
    truth = own_results.write_hpl(home / "results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "BUILD", home / "build")
        said = [
            run("import", "hpl", str(home / "results"), "--write-map", str(home / "map.csv")),
            run(
                "import",
                "hpl",
                str(home / "results"),
                "--map",
                str(home / "map.csv"),
                "--out",
                str(home / "mine"),
            ),
        ]
        (home / "mine" / "report.toml").write_text(FACTS)
        said.append(run("report", "--data", str(home / "mine"), "--out", str(home / "report")))
    return SimpleNamespace(home=home, truth=truth, said=said, report=home / "report")


def test_the_report_says_what_the_data_say_and_how_sure_that_is(hpl):
    page = (hpl.report / "report.html").read_text()
    text = words(page)
    for said in (
        "Three networks of my cluster",
        "Ada Example, Bob Example (Example University)",
        "16 behind one switch",
    ):
        assert said in text
    # Numbers have the decimal comma that report.toml asks for, and what is quoted stays as it is.
    body = text.rpartition(" References ")[0]
    assert "Open MPI 4.1" in text and len(re.findall(r"\d,\d %", body)) > 10
    assert not re.findall(r"(?<![\w.])\d+\.\d+ %", body)
    assert "The order of the runs is not known" in text and "GigE falls off" in text
    assert not of_emulation(hpl.report)
    stated = json.loads((hpl.report / "summary.json").read_text())["statements"]
    own_results.require_planted(stated, hpl.truth)
    assert (hpl.report / "report.pdf").read_bytes().startswith(b"%PDF")
    heads = [words(head).strip() for head in re.findall(r"<h1.*?</h1>", page, re.S)]
    titles = [re.sub(r"^\d+ ", "", head) for head in heads]
    ours = [
        "HPL over nodes",
        "The cluster",
        "Methods",
        "Limits",
        "References",
        "Appendix: provenance",
    ]
    assert titles[1:] == ours
    cited = set(re.findall(r"^@\w+\{(\w+),", (hpl.report / "references.bib").read_text(), re.M))
    assert cited >= {"schuirmann", "holm", "welch"} and "simgrid" not in cited
    assert {f"ref-{key}" for key in cited} == set(re.findall(r'id="(ref-\w+)"', page))


def test_a_student_can_go_on_writing(hpl):
    """The source is standard Markdown; what its user changed is kept, and the next text is put
    beside it.
    """
    source = hpl.report / "report.md"
    figures = re.findall(r"\]\((figures/\w+\.pdf)\)", source.read_text())
    assert figures and all((hpl.report / each).read_bytes().startswith(b"%PDF") for each in figures)
    arguments = [
        "--citeproc",
        f"--resource-path={hpl.report}",
        f"--bibliography={hpl.report / 'references.bib'}",
        "--fail-if-warnings",
    ]
    latex = pypandoc.convert_file(str(source), "latex", "markdown", extra_args=["-s", *arguments])
    assert "\\includegraphics" in latex and "falls off" in latex and ":::" not in latex
    tables = list((hpl.report / "tables").glob("*.tex"))
    assert len(tables) >= 4 and all("\\begin{longtable}" in each.read_text() for each in tables)
    assert source.read_text().startswith("<!--")


@pytest.mark.more
def test_comparisons_and_fits_take_the_folder(hpl, tmp_path):
    """`compare` knows that nothing of the machines is recorded; `fit` answers with a law, and as
    JSON.
    """
    laws = {**own_results.LAWS, "1gbe": lambda n: 0.8 * own_results.LAWS["1gbe"](n)}
    own_results.write_hpl(tmp_path / "results", seed=7, laws=laws)
    run("import", "hpl", str(tmp_path / "results"), "--out", str(tmp_path / "new"))
    figure = ("--figure", str(tmp_path / "shown.svg"))
    done = run("compare", str(hpl.home / "mine"), str(tmp_path / "new"), "--margin", "8", *figure)
    assert done.returncode == 1 and "GigE, 16 nodes" in done.stdout
    assert "not recorded in the files of OLD and NEW" in done.stdout
    slower = {
        line.split(",")[0].split()[-1]
        for line in done.stdout.splitlines()
        if line.endswith("slower")
    }
    assert slower == {"GigE"}
    done = run("fit", str(tmp_path / "new"), *figure)
    assert (
        "support best: Amdahl's law for GigE" in done.stdout and (tmp_path / "shown.svg").exists()
    )
    data = json.loads(run("fit", str(tmp_path / "new"), "--json").stdout)
    sigma = [
        one
        for one in data["parameters"]
        if (one["interconnect"], one["parameter"]) == ("gige", "sigma")
    ]
    assert sigma[0]["estimate"] == pytest.approx(0.02, rel=0.2)


@pytest.mark.more
def test_messages_and_streams_have_sections(tmp_path, monkeypatch):
    """Outputs of OSU, IMB and iperf3: a figure, a statement and a section each, and nothing of
    HPL.
    """
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    for tool, network, cases in (
        ("osu", "edr_ib", ["osu/5.4.3-latency", "osu/5.4.3-bandwidth"]),
        ("imb", "100g", ["imb/2021.3-pingpong"]),
        ("iperf3", "100mbit", ["iperf3/3.12-forward", "iperf3/3.12-reverse"]),
    ):
        for case in cases:
            file = tmp_path / "results" / tool / network / f"{case.replace('/', '-')}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(recorded.text(case))
        done = run(
            "import", tool, str(tmp_path / "results" / tool), "--out", str(tmp_path / "mine")
        )
        assert done.returncode == 0 and "Figure: " in done.stdout, done.stderr
    done = run("report", "--data", str(tmp_path / "mine"), "--out", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    page = words((tmp_path / "report" / "report.html").read_text())
    assert page.count("Messages by size") >= 2 and "Streams and round trips" in page
    assert "HPL" not in page and len(list((tmp_path / "report" / "figures").glob("*.pdf"))) == 3
    stated = json.loads((tmp_path / "report" / "summary.json").read_text())["statements"]
    latency = {one["subject"]: one["estimate"] for one in stated if one["unit"] == "µs"}
    shortest = [1.82, 1.73, 1.69, 1.65, 1.64, 1.69, 1.70, 1.71]  # of OSU, up to 64 bytes [µs]
    of_fit = latency["The latency of a message on EDR IB (latency)"]
    assert min(shortest) <= of_fit <= max(shortest)
    assert any("FastE" in one["subject"] for one in stated)


def test_what_no_section_reads_is_one_line_and_keeps_the_last_report(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    old = tmp_path / "report" / "report.html"
    old.parent.mkdir()
    old.write_text("the last one")
    (tmp_path / "empty").mkdir()
    failed = tmp_path / "failed.txt"
    failed.write_text(recorded.text("iperf3/3.12-refused"))
    run("import", "iperf3", str(failed), "--out", str(tmp_path / "mine"))
    for data in ("empty", "mine"):
        done = run("report", "--data", str(tmp_path / data), "--out", str(old.parent))
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
        assert old.read_text() == "the last one"
    (tmp_path / "mine" / "report.toml").write_text("titel = 1\n")
    with pytest.raises(FalloffError, match="titel.*title"):
        execution.make_own(tmp_path / "mine", old.parent)


# One notebook with its campaign, and one without.
FEW = ("40_hpl_scaling", "42_hpl_noise")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The report of the scaling campaign as a cluster of two networks left it."""
    own = tmp_path_factory.mktemp("own")
    measured.write(own)
    folder = tmp_path_factory.mktemp("report")
    (folder / "notebooks").mkdir()
    for name in FEW:
        shutil.copy(paths.NOTEBOOKS / f"{name}.ipynb", folder / "notebooks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
        patch.setattr(paths, "BUILD", folder / "build")
        page, *_ = execution.make_own(own, folder / "out")
    (book,) = (folder / "build").rglob("40_hpl_scaling.ipynb")
    return SimpleNamespace(page=page, book=book)


def test_a_measured_campaign_is_reported_in_its_own_words(cluster):
    """Read as a whole: no word of emulation or simulation, each network by its own name, the
    machines as they told of themselves; all statements are measured, and have the planted fall in
    their interval."""
    page = cluster.page.read_text()
    assert not of_emulation(cluster.page.parent)
    page = words(page)
    assert "Xeon(R) CPU E5-2660 v3" in page and "Arista 7050T, interface ens2f0" in page
    stated = json.loads((cluster.page.parent / "summary.json").read_text())["statements"]
    assert {one["evidence"] for one in stated} == {"measured"}
    first, *_ = (one for one in stated if one["quantity"] == "fall")
    assert first["subject"] == "GigE loses rate against 10GE from 2 to 16 nodes"
    gige, ten = (law(16) / law(2) for law in measured.LAWS.values())
    low, high = first["interval"]
    assert low < 1 - gige / ten < high and first["words"] == "falls off"
    assert "without_messages" not in measured.plan().design  # it was simulated of other nodes


def test_only_what_is_there_is_in_the_report(cluster):
    """Both forms, with the campaign's own provenance; what has no data has no section and is not
    listed.
    """
    page = cluster.page.read_text()
    provenance = page[page.index("Appendix: provenance</h1>") :]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", provenance, re.S)
    assert cells[1:3] == ["example_ssh", "measured"]
    assert cluster.page.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    heads = " ".join(re.findall(r"<h1.*?</h1>", page, re.S))
    assert "HPL over nodes" in heads and "daemon" not in heads.lower()
    assert "hpl_noise" not in words(page)
    stated = json.loads((cluster.page.parent / "summary.json").read_text())["statements"]
    assert {one["notebook"] for one in stated} == {"40_hpl_scaling"}


def test_each_program_of_ones_own_has_a_section():
    """That of emulated programs, whatever the campaign is called; an experiment has one for all its
    folders.
    """
    ran = store.read(paths.REFERENCE / "program-program_model")
    own = {Path(name): ran.assign_attrs(campaign=f"program_{name}") for name in ("mine", "theirs")}
    found = [(section.notebook, section.folder.name) for section in execution.planned_sections(own)]
    assert found == [("59_program", "mine"), ("59_program", "theirs")]
    tokens = store.read(paths.REFERENCE / "token_exchange-beowulf")
    assert len(execution.planned_sections({Path("a"): tokens, Path("b"): tokens})) == 1
