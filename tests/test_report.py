"""From an exhibit to the report: what a figure or table must say, an executed notebook as a
section, the first page, and one document of all in two forms, with a supplement; the same notebooks
give the same bytes."""

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import browser
import nbformat
import pytest
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from shown import failed
from synthetic import campaign, sequential_campaign

from analysis.dataset import store
from analysis.dataset.derive import points
from analysis.quoting import as_written
from analysis.report import document, publish, report, summary
from analysis.statements.exhibit import Basis, Exhibit, Table, planned
from analysis.statements.notebooks import FRAME, REPORT, SUPPLEMENT, in_order, role, with_audience
from analysis.statements.statement import KEY, Statement, planned_falls, say
from analysis.watch import reproducing, todays_run
from runners.records.record import FalloffError

BASIS = Basis("emulated", 4, "95 % t intervals")
CAPTION = "(emulated evidence, n = 4\u00a0blocks, 95 % t intervals)"
LEFT_OUT = ["link_bonding_hpl: no netns; as root: make report"]


def exhibit(x="nodes", y="HPL rate [Gflop/s]", **given):
    figure = Figure()
    figure.subplots().set(xlabel=x, ylabel=y)
    return Exhibit("rate", figure, "HPL over nodes", BASIS, "HPL over nodes", **given)


def ran(shown, *tags):
    """A cell of code with what it showed."""
    data, about = shown._repr_mimebundle_() if shown else ({"text/plain": "3"}, {})
    output = new_output("execute_result", data=data, metadata=about, execution_count=1)
    tags = {"tags": [*tags]}
    return new_code_cell("show()", outputs=[output], execution_count=1, metadata=tags)


def build(books, out, left_out=()):
    """The page of the report of executed notebooks."""
    parts = report.parts(books)
    return report.build(parts, report.project_facts(parts), out, left_out)[0]


def notebook(folder, name, cells):
    file = folder / name / f"{name}.ipynb"
    file.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), file)
    return file


@pytest.fixture(scope="module")
def falls():
    """The statements of the planned campaign."""
    return planned_falls(points(sequential_campaign(noise=0.003)))


def todays(falls, **changed):
    """A run of today that says the same of each statement."""
    run = campaign(blocks=3)
    verdicts = [
        reproducing.StatementVerdict("40_scaling", one, "reproduced", "", replace(one, n=3))
        for one in falls
    ]
    return todays_run.TodaysRun(run, tuple(verdicts), "")


@pytest.fixture(scope="module")
def notebooks(falls, tmp_path_factory):
    """A section with all that one can have, the summary and the methods, in the wrong order."""
    folder = tmp_path_factory.mktemp("notebooks")
    answer = say("**It falls off.**", falls)
    scaling = [
        new_markdown_cell("# Scaling\n\nA *fall* is $1 - e^D$ [@schuirmann]; see [](#fig:rate)."),
        ran(None),
        ran(exhibit(rests_on=("hpl_scaling", "published/fortinet.toml"))),
        ran(answer),
        ran(Table("runs", ("Run",), "r", [("1",)], "All runs.", BASIS), "detail"),
        ran(todays(falls)),
    ]
    opening = [new_markdown_cell(f"# {report.TITLE}\n\n**The answer.**"), ran(answer)]
    made = [
        notebook(folder, "95_methods", [new_markdown_cell("# How it was measured")]),
        notebook(folder, "40_scaling", scaling),
        notebook(folder, summary.SUMMARY, opening),
    ]
    store.save(campaign(blocks=2), folder / "40_scaling" / "hpl_scaling-emulated.nc")
    return made


@pytest.fixture(scope="module")
def built(notebooks, tmp_path_factory):
    return build(notebooks, tmp_path_factory.mktemp("report"), LEFT_OUT)


@pytest.fixture(scope="module")
def html(built):
    return built.read_text()


@pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)
def test_every_column_is_seen(built):
    """On a desk and on paper no table scrolls, also not that of all campaigns with its nine
    columns.
    """
    hidden = (
        "[...document.querySelectorAll('.frame')].map((one) => one.scrollWidth - one.clientWidth)"
    )
    with browser.chromium() as running:
        page = running.new_page(viewport={"width": 1366, "height": 768})
        page.goto(built.as_uri())
        assert page.evaluate(hidden) and max(page.evaluate(hidden)) <= 1
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 718, "height": 1000})  # A4 within its margins
        assert max(page.evaluate(hidden)) <= 1


def test_what_does_not_say_what_it_rests_on_is_refused():
    """Neither an axis without a unit, nor what scatters without its n and intervals; a simulation
    has neither.
    """
    for labels in ({"y": "HPL rate"}, {"x": "buffer"}, {"x": "", "y": ""}):
        with pytest.raises(FalloffError, match="rate: .*(no unit|no axis)"):
            exhibit(**labels)
    for rest in ({}, {"n": 4}, {"intervals": "95 % t intervals"}):
        with pytest.raises(FalloffError, match="its n and the kind of its intervals"):
            Basis("measured", **rest)
    assert str(Basis("simulated")) == "simulated evidence"
    both = replace(BASIS, evidence="emulated, simulated")
    assert str(both).startswith("emulated and simulated evidence, n = 4")
    with pytest.raises(FalloffError, match="its n"):
        Basis("emulated, simulated")


def test_captions_stand_alone():
    """Jupyter shows figure or table with it; the report finds the same in the output's metadata."""
    caption = f"HPL over nodes {CAPTION}. Bars are means."
    data, about = exhibit(marks="Bars are means.", rests_on=("hpl_scaling",))._repr_mimebundle_()
    assert caption in data["text/html"] and data["image/svg+xml"].startswith("<?xml")
    image = f'![{caption}](figures/rate.svg){{#fig:rate alt="HPL over nodes"}}'
    assert about[KEY] == {"markdown": image, "label": "rate", "rests_on": ["hpl_scaling"]}
    columns = ("Network", "Rate [Gflop/s]")
    table = Table("rates", columns, "lr", [("GigE", "1.2")], "The rates.", BASIS)
    assert table.body == "| Network | Rate [Gflop/s] |\n| :-- | --: |\n| GigE | 1.2 |"
    assert table.markdown.endswith(f"The rates {CAPTION}. {{#tbl:rates}}")
    assert dict(planned(campaign(blocks=3)).rows)["nodes"] == "1, 2, 4, 8"
    with pytest.raises(FalloffError, match="not 2 columns"):
        Table("rates", columns, "lr", [("GigE",)], "The rates.")


def test_a_section_is_its_words_and_outputs(notebooks, tmp_path):
    """Details, and the code of what showed nothing that a reader reads, are in the supplement
    alone.
    """
    brief, whole = document.read(notebooks[1]), document.read(notebooks[1], whole=True)
    order = [brief.markdown.index(part) for part in ("# Scaling", "rate.svg", "It falls off")]
    assert order == sorted(order) and set(brief.figures) == {"rate"}
    assert brief.figures["rate"].rests_on == ("hpl_scaling", "published/fortinet.toml")
    assert "All runs" not in brief.markdown and "#tbl:runs" in whole.markdown
    assert brief.markdown.count("::: code") < whole.markdown.count("::: code")
    cells = [ran(None), new_code_cell("late()")]
    with pytest.raises(FalloffError, match="not executed to its end: 'late"):
        document.read(notebook(tmp_path, "40_scaling", cells))


def test_statements_are_gathered_once_and_are_data_too(falls, notebooks, built):
    """As they were made; what the summary repeats is not gathered again. Without notebooks the
    remedy is told.
    """
    sections = summary.gathered(notebooks[0].parents[1])
    assert list(sections) == ["40_scaling", "95_methods"]
    assert sections["40_scaling"].statements == tuple(falls)
    data = json.loads((built.parent / "summary.json").read_text())["statements"]
    assert [Statement.from_data(one) for one in data] == list(falls)
    assert {one["notebook"] for one in data} == {"40_scaling"} and data[0]["answer"] == "yes"
    with pytest.raises(FalloffError, match="make report"):
        summary.gathered(built.parent / "figures")


def test_the_first_page_has_what_was_planned_and_what_today_says(falls, notebooks):
    """Each primary statement with answer, estimate, interval, n and evidence. A run of the same
    truth reproduces; without one, nothing was run here."""
    sections = summary.gathered(notebooks[0].parents[1])
    rows = summary.table(sections.values()).rows
    assert [row[0] for row in rows] == ["1", "1", "1"]
    assert [row[2] for row in rows] == ["**falls off**", "**flat**", "**flat**"]
    assert rows[0][1] == "GigE loses rate against 10GE from 2 to 8 nodes"
    assert rows[0][4:] == ("9\u00a0blocks", "emulated") and "%" in rows[0][3] and "to" in rows[0][3]
    said = summary.abstract(sections, "40_scaling").text.splitlines()
    assert said[0] == "**It falls off.**" and said[2:] == [f"- {one}" for one in falls[:3]]
    told = as_written(summary.today(sections).text)
    assert "of campaign hpl_scaling (emulated) reproduces this: GigE loses rate" in told
    assert "began on 1\u00a0January 2026" in told
    alone = {name: replace(section, today=()) for name, section in sections.items()}
    assert "nothing was run on your machine" in summary.today(alone).text
    assert summary.today(alone, is_stored=False).text == ""
    with pytest.raises(FalloffError, match="40_hpl_scaling was not executed"):
        summary.abstract(sections, "40_hpl_scaling")


def test_an_abstract_is_short_and_of_what_ran(falls, notebooks):
    """As many of the statements as fit, in their order; those against what was not run are left to
    the section.
    """
    section = summary.gathered(notebooks[0].parents[1])["40_scaling"]
    told = [replace(one, sentence="word " * 50) for one in falls[:2]]
    told += [replace(falls[0], sentence="Too " * 30), replace(falls[0], sentence="Short.")]
    told += [replace(falls[0], subject="GigE against HPL without messages", sentence="Not run.")]
    made = replace(section, statements=tuple(told))
    said = summary.abstract({"40_scaling": made}, "40_scaling").text
    assert "Short." in said and "Too" not in said and "Not run" not in said
    assert 100 < len(said.replace("- ", "").split()) <= summary.WORDS


def test_a_section_that_states_nothing_is_left_out(falls, notebooks, tmp_path):
    """Of an experiment; the table of the first page then has one row for each other one, with its
    number in the report.
    """
    folder = tmp_path / "notebooks"
    cells = [new_markdown_cell("# Scaling"), ran(say("It falls.", falls))]
    books = [
        notebook(folder, "10_mtu", [new_markdown_cell("# Silent"), ran(say("Nothing."))]),
        notebook(folder, "20_token_exchange", cells),
        notebook(folder, "40_hpl_scaling", cells),
        notebook(folder, "44_hpl_paper", cells),
        notebook(folder, "53_suspects", [new_markdown_cell("# Suspects"), *cells[1:]]),
        notebook(folder, summary.SUMMARY, [new_markdown_cell(f"# {report.TITLE}")]),
    ]
    sections = summary.gathered(folder)
    assert [*sections] == ["40_hpl_scaling", "44_hpl_paper", "20_token_exchange", "53_suspects"]
    assert [row[0] for row in summary.findings(sections).rows] == ["2", "3"]
    page = build(books, tmp_path / "report")
    whole = page.with_name("supplement.html").read_text(encoding="utf-8")
    page = page.read_text(encoding="utf-8")
    assert "Silent" not in page and page.count("Scaling</h1>") == 3
    # What tests the tools is in the supplement, which the report says.
    assert "Suspects</h1>" not in page and "in the supplement: Suspects." in page
    assert whole.index("Suspects</h1>") > whole.rindex("Scaling</h1>")


def test_sections_stand_by_weight(tmp_path):
    """The main question first, what tests the tools last; an experiment that is not named comes
    before the claims.
    """
    names = "10_mtu 12_ping_pong 40_hpl_scaling 53_suspects 85_claims 90_summary 95_methods 99_mine"
    ordered = [file.stem for file in in_order(tmp_path / f"{one}.ipynb" for one in names.split())]
    assert ordered[:4] == ["90_summary", "40_hpl_scaling", "10_mtu", "99_mine"]
    assert ordered[4:] == ["85_claims", "95_methods", "12_ping_pong", "53_suspects"]
    weights = Counter(role(file.stem).weight for file in with_audience(REPORT, SUPPLEMENT, FRAME))
    assert len(weights) == weights.total()


def test_the_first_page_tells_of_a_run_that_failed(falls, notebooks):
    """Once for all of its statements, with the commonest reason; what failed is not compared."""
    run = failed(campaign(blocks=1), "exit code 1")
    rows = todays_run.compare(notebooks[1], {}, "hpl_scaling", run).as_data()
    sections = summary.gathered(notebooks[0].parents[1])
    sections = {"40_scaling": replace(sections["40_scaling"], today=tuple(rows))}
    told = summary.today(sections).text
    assert told.count("failed") == 1 and "gave no reading" in told
    assert "too short" not in told and "GigE loses" not in told


def test_the_answer_comes_first_and_the_methods_last(html):
    """The document's title is the summary's heading; it is not there twice."""
    heads = re.findall(r"<h1[^>]*>(?:<span[^>]*>[\d.]*</span> ?)?(.*?)</h1>", html, re.S)
    said = [re.sub("<[^>]+>", "", head).replace("\u2019", "'") for head in heads[:3]]
    assert said == [report.TITLE, "Scaling", "How it was measured"]
    assert html.index("The answer.") < html.index("no netns; as root") < html.index("Scaling</h1>")


def test_the_page_needs_nothing_else_and_is_readable_everywhere(html):
    """Figures, style and script are in the file; links leave it only where a reader clicks. Dark,
    phone, large figures.
    """
    assert html.startswith("<!DOCTYPE html>")
    assert not re.search(r'(?:src|data)="(?!data:)[^"]+"', html)
    assert not re.search(r'<link[^>]+href="(?!data:)', html) and "@import" not in html
    assert "prefers-color-scheme: dark" in html and "max-width: 600px" in html and "<dialog" in html
    assert re.search(r"<nav[^>]*TOC", html) and "<math" in html and 'alt="HPL over nodes"' in html


def test_code_and_evidence_lie_under_the_figure(html):
    """With links to the trials in the explorer and to the provenance, which has digests and
    commands.
    """
    under = html[html.index("<figure") :]
    assert '<details class="code">' in under and '<details class="evidence">' in under
    assert "falloff evidence trace rate" in under and 'href="#data:hpl_scaling-' in under
    assert 'href="explorer.html#hpl_scaling"' in under
    body = html[html.index("Appendix: provenance") :]
    assert 'id="data:hpl_scaling-' in body and 'id="data:published-fortinet-toml"' in body
    assert "falloff evidence verify" in body and "falloff run CAMPAIGN --testbed TESTBED" in body


def test_the_same_notebooks_give_the_same_bytes(notebooks, built, tmp_path):
    again = build(notebooks, tmp_path, LEFT_OUT)
    for name in ("falloff.html", "falloff.pdf", "supplement.html", "supplement.pdf"):
        assert again.with_name(name).read_bytes() == built.with_name(name).read_bytes(), name
    assert built.with_name("supplement.pdf").read_bytes().startswith(b"%PDF")


HOSTILE = (
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "`<script>alert(2)</script>`{=html}",
    "```{=html}\n<script>alert(3)</script>\n```",
    '`#read("secret")`{=typst}',
    "![secret](secret.svg)",
    "![](secret.svg){#fig:x}",
    "[go](javascript:alert)",
    "[go](file:///etc/passwd)",
    "---\nheader-includes: secret\ncss: secret.svg\n---",
    "\\input{secret}",
    '#read("secret.svg")',
)


@pytest.mark.few(4)
@pytest.mark.parametrize("text", HOSTILE)
def test_what_somebody_wrote_runs_and_reads_nothing(text, tmp_path):
    """Names of networks, reasons and notes come from files that anybody may hand over: of these
    nothing is executed, no file is embedded and nothing leads elsewhere than to the web."""
    (tmp_path / "secret.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><!-- a secret --></svg>'
    )
    body = f"# Before\n\nWords.\n\n{text}\n\nOn {text} it is slow.\n"
    assert _elements(publish.to_html(body, {"title": "t"}, tmp_path)) == []
    source = publish.to_typst(body, {"title": "t"}, tmp_path).split("Before", 1)[1]
    source = re.sub("`[^`]*`", "", source)  # shown as it is
    assert not re.search(r'(?<!\\)#(?:read|image|box)\(|link\("(?:file|javascript)', source)


def _elements(page: str) -> list[tuple]:
    """Scripts, pictures and links elsewhere than to the web in a page's body, but for the page's
    own script.
    """
    found = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            given = dict(attributes)
            leads = given.get("href") or "#"
            handlers = [name for name in given if name.startswith("on")]
            is_harmless = leads.startswith(("#", "https://", "http://")) and not handlers
            if tag in ("script", "img", "iframe", "object", "embed") or not is_harmless:
                found.append((tag, given))

    Parser().feed(page.split("<body>", 1)[1].rsplit("<dialog", 1)[0])
    return found


def test_honest_names_are_not_lost(tmp_path):
    """What looks like a tag stands there as it was written."""
    page = publish.to_html("On <lab> and 10G <fast>.", {"title": "t"}, tmp_path)
    assert "On &lt;lab&gt; and 10G &lt;fast&gt;." in page
