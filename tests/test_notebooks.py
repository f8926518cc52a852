"""The notebooks as they are shipped: executed, they are the report of the stored references; README
says what it says.
"""

import json
import re
from types import SimpleNamespace

import browser
import command_line
import pandas as pd
import pytest
import xarray as xr

from analysis import paths
from analysis.descriptions import ledger, testbeds
from analysis.report import document, execution, summary
from analysis.statements import notebooks, style
from analysis.statements.statement import ANSWERS
from analysis.statistics import calibration
from runners.testbeds import simulated

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
SECTIONS = notebooks.sections()
OTHERS = [file for file in NOTEBOOKS if file not in SECTIONS]
SCALING = paths.NOTEBOOKS / "40_hpl_scaling.ipynb"
MOST_PAGES = {"falloff": 9, "supplement": 32}
NUMBER = re.compile(r"(-?\d+\.\d+)")
MARKUP = r".{0,40}(?:\{[.#][\w:]|\]\(|\s#+ [A-Z]|\|:?--|:::|\[@).{0,40}"
lacking = simulated.unavailable(testbeds.read("smith").plain())


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The report of the stored references by its command, how that `ended`, its `folder`, and where
    its `notebooks` lie.
    """
    folder, notebooks = (tmp_path_factory.mktemp(name) for name in ("stored", "notebooks"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "EXECUTED", notebooks)
        ended = command_line.run("report", "--preset", "stored", "--out", str(folder))
    return SimpleNamespace(ended=ended, folder=folder, notebooks=notebooks)


@pytest.mark.parametrize("notebook", SECTIONS, ids=lambda file: file.stem)
def test_a_notebook_is_a_section(notebook, stored):
    """From a clean checkout, without root or tools: every cell runs, and what it shows can be read
    in the report.
    """
    assert f"left out: {notebook.stem}" not in stored.ended.stderr
    done = stored.notebooks / notebook.stem / notebook.name
    brief, whole = document.read(done), document.read(done, whole=True)
    words = re.sub(r"^::: code$.*?^:::$", "", whole.markdown, flags=re.M | re.S)
    assert whole.markdown.startswith("# ") and not re.search(r"\b(nan|None)\b", words)
    assert set(brief.figures) <= set(whole.figures)
    assert len(whole.markdown) >= len(brief.markdown)
    figures = re.findall(r"^!\[(.*)\]\(figures/\w+\.svg\)\{#fig:([\w-]+) ", whole.markdown, re.M)
    assert {label.replace("_", "-") for label in whole.figures} == {label for _, label in figures}
    for caption, _ in figures:
        assert re.search(
            r"n = \d+|(simulated|published)( and \w+)? evidence|measured elsewhere", caption
        ), caption
    for picture in whole.figures.values():
        assert float(re.search(r'<svg [^>]*width="([\d.]+)pt"', picture.svg)[1]) <= 72 * style.WIDTH


def test_the_report_is_written_without_running_anything(stored):
    """Nothing is left out, what it links to lies beside it, and its PDF has the length of a
    paper.
    """
    assert stored.ended.returncode == 0 and "left out" not in stored.ended.stderr
    html, pdf = stored.folder / "falloff.html", stored.folder / "falloff.pdf"
    ledger = (stored.folder / "claims-ledger.csv").read_text(encoding="utf-8")
    assert ledger.startswith("Source,Name,Claim,") and ledger.count("\n") > 100
    assert stored.ended.stdout.splitlines()[-1] == f"Report: {html} and {pdf}"
    beside = set(re.findall(r'href="(\w+\.html)"', html.read_text()))
    assert beside == {"explorer.html", "supplement.html"}
    assert all((stored.folder / name).exists() for name in beside)
    for name, most in MOST_PAGES.items():
        pages = re.findall(rb"/Type\s*/Page\b", (stored.folder / f"{name}.pdf").read_bytes())
        assert len(pages) <= most


def test_the_first_page_says_nothing_twice(stored):
    """A short abstract with a sentence on the nodes, the main figure, and a table of at most twelve
    findings of which the abstract has none.
    """
    done = stored.notebooks / notebooks.SUMMARY / f"{notebooks.SUMMARY}.ipynb"
    page = document.read(done).markdown.partition("\n# Background")[0]
    abstract, figure, table = re.split(r"^(!\[.*)$", page.partition("\n")[2], flags=re.M)
    assert "figures/share.svg" in figure
    assert len(re.sub("^- ", "", abstract, flags=re.M).split()) <= summary.WORDS + 40
    assert "Gflop/s a node on GigE" in abstract
    html = (stored.folder / "falloff.html").read_text(encoding="utf-8")
    plain = " ".join(re.sub("<[^>]+>", "", html).split())
    for line in re.findall(r"^- (.*)$", abstract, re.M):  # nor does the first section say it again
        assert plain.count(" ".join(line.replace("*", "").split())) == 1, line
    findings = [row.split(" | ") for row in re.findall(r"^\| \d+ \| .*$", table, re.M)]
    assert 10 <= len(findings) <= 12 and len({row[1] for row in findings}) == len(findings)
    numbers = [int(row[0].strip("| ")) for row in findings]
    assert numbers == sorted(numbers) and 1 not in numbers  # the first section is the main question


@pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)
def test_the_answer_is_on_the_first_screen_and_nothing_is_cut_off(stored):
    """On a desk with answer and figure, and every column of every table; on a phone only tables
    scroll sideways.
    """
    ends = (
        "['.opening .summary', '.opening figure img'].map((one) => "
        "document.querySelector(one).getBoundingClientRect().bottom)"
    )
    frames = (
        "[...document.querySelectorAll('.frame')].map((one) => one.scrollWidth - one.clientWidth)"
    )
    outside = """[...document.querySelectorAll("body *")].filter((one) => {
      const place = one.getBoundingClientRect();
      const isBeside = place.left < -1 || place.right > innerWidth + 1;
        return place.width && isBeside && !one.closest(".frame, pre, math, dialog");
    }).map((one) => one.outerHTML.slice(0, 80))"""
    with browser.chromium() as running:
        page = running.new_page(viewport={"width": 1366, "height": 768})
        for name in ("supplement.html", "falloff.html"):
            page.set_viewport_size({"width": 1366, "height": 768})
            page.goto((stored.folder / name).as_uri())
            assert max(page.evaluate(frames)) <= 1 and page.evaluate(outside) == []
            page.set_viewport_size({"width": 390, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert page.evaluate(outside) == []
        page.set_viewport_size({"width": 1366, "height": 768})
        assert max(page.evaluate(ends)) <= 768


@pytest.mark.parametrize("name", ["falloff", "supplement"])
def test_no_markup_is_left_over(stored, name):
    """What was meant as a heading, a label, a link or a table has become one, and no link leads
    nowhere.
    """
    page = (stored.folder / f"{name}.html").read_text(encoding="utf-8").partition("<body>")[2]
    body = re.sub(r"<(style|script|svg|math|code)\b.*?</\1>|data:[^\"]+", "", page, flags=re.DOTALL)
    assert re.findall(MARKUP, re.sub("<[^>]+>", " ", body)) == []
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'id="([^"]+)"', page))


def test_every_experiment_is_in_the_summary(stored):
    """As data, each of its statements once, with one of five answers or none."""
    stated = json.loads((stored.folder / "summary.json").read_text())["statements"]
    silent = {"70_top500", "87_reproduce"}  # where nobody dropped lists, and nothing was run again
    assert {one["notebook"] for one in stated} == {
        file.stem for file in notebooks.of_experiments()
    } - silent
    assert len({(one["notebook"], one["subject"], one["name"]) for one in stated}) == len(stated)
    assert {one["answer"] for one in stated} <= {"", *ANSWERS}


def test_what_judges_a_claim_is_stated(stored):
    """Every quantity that a claim names is made by that notebook, and every quantity judges a
    claim, or is what the summary reads by its name.
    """
    made = {
        f"{one['notebook']}/{one['name']}"
        for one in json.loads((stored.folder / "summary.json").read_text())["statements"]
        if one["name"]
    }
    summary = (paths.NOTEBOOKS / f"{notebooks.SUMMARY}.ipynb").read_text(encoding="utf-8")
    read = {name for name in made if f'\\"{name.split("/")[1]}\\"' in summary}
    judged = {name for one in ledger.load().claims for name in one.judged_by}
    assert judged <= made and made - judged <= read


def test_readme_shows_the_reports_figure_and_answer(stored):
    """The figure as it is drawn here, and the first words of the summary."""
    drawings = (stored.folder / "figures" / "share.svg", paths.ROOT / "docs" / "hpl_share.svg")
    here, shown = (NUMBER.split(drawing.read_text()) for drawing in drawings)
    assert here[::2] == shown[::2]
    # To a tenth of a point: processors round differently.
    assert [*map(float, here[1::2])] == pytest.approx([*map(float, shown[1::2])], abs=0.1)
    opening = document.read(stored.notebooks / notebooks.SUMMARY / f"{notebooks.SUMMARY}.ipynb")
    answer = opening.markdown.replace("\u00a0", " ").replace("\\", "")
    for page in ("README.md", "paper/paper.md"):
        quotes = r"^(\*\*Most of .*)\n(From 2 to 36 nodes HPL's .*)\n\n((?:- .*\n){2})\n(With .*)\n"
        found = re.search(quotes, (paths.ROOT / page).read_text("utf-8"), re.M).groups()
        *opens, bullets, nodes = found
        quoted = [*opens, *re.findall(r"^- (.*)$", bullets, re.M), nodes]
        assert [words for words in quoted if words not in " ".join(answer.split())] == []


def test_docs_quote_error_rates_and_trust():
    """The worst rates of wrong verdicts, and the largest difference between the simulation and HPL
    itself.
    """
    method = (paths.ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    rates = calibration.table("error_rates").groupby("procedure").max(numeric_only=True)
    full, quick = 100 * rates.loc["full"], 100 * rates.loc["quick"]
    cases = pd.read_csv(paths.REFERENCE / "trust.csv")
    difference = cases.simulated_s / cases.unmocked_s - 1
    for quoted in (
        f"{full.wrong_flat:.1f} % were wrongly called flat",
        f"{full.wrong_falls_off:.1f} % wrongly called falling off",
        f"it is {quick.wrong_flat:.1f} and {quick.wrong_falls_off:.1f} %",
        f"within {100 * difference.abs().max():.2f} % of HPL itself in {len(cases)} cases",
    ):
        assert quoted in " ".join(method.split())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """`run(notebook, **parameters)` executes it on what is stored: its folder, and what went
    wrong.
    """
    with execution.Kernel() as kernel, pytest.MonkeyPatch.context() as patch:

        def executed(notebook, preset="stored", **parameters):
            folder = tmp_path_factory.mktemp("run")
            patch.setattr(paths, "EXECUTED", folder)
            error = kernel.execute(notebook, preset=preset, **parameters)
            return folder / notebook.stem, error

        yield executed


@pytest.mark.parametrize("notebook", OTHERS, ids=lambda file: file.stem)
def test_a_notebook_that_is_no_section_runs(notebook, run):
    """Every cell, on what is stored."""
    assert run(notebook)[1] == ""


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_the_scaling_notebook_runs_with_the_simulated_testbed(run):
    """The same notebook and campaign, simulated: the finding says so, and the dataset that is
    saved.
    """
    out, error = run(SCALING, preset="quick", testbed="smith")
    section = document.read(out / SCALING.name)
    said = section.markdown.partition("What it does not say")[0]
    assert not error and "simulated evidence" in said and "emulated" not in said
    assert {one.evidence for one in section.statements} == {"simulated"}
    assert xr.open_dataset(out / "hpl_scaling-smith.nc").evidence.values[0] == "simulated"


def test_wrong_parameters_are_refused(run):
    """All faults in one line, before anything is run or written."""
    out, error = run(SCALING, blokcs="3", blocks="many")
    assert "parameters: 'blokcs' is unknown; blocks = 'many' is not int" in error
    assert not list(out.iterdir())
