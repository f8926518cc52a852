"""Whatever the strings of a campaign say, nothing obeys them: not the report, the explorer, the
terminal or a notebook.

Each string of each file, and each name of a value, becomes a hostile text. It is refused in words,
or shown; what is shown is looked through for what a browser, Typst, Markdown or a terminal would
act upon.
"""

import copy
import json
import re
import shutil
import unicodedata
from contextlib import suppress
from html.parser import HTMLParser

import pypandoc
import pytest
from command_line import ROOT, run
from nbformat.v4 import new_markdown_cell
from test_report import notebook, ran

from analysis import paths, wording
from analysis.dataset import store
from analysis.evidence import artifact, chain
from analysis.explorer import data, static
from analysis.quoting import as_written, quoted
from analysis.report import document, publish, report, summary
from analysis.statements import notebooks
from analysis.statements.statement import Text
from runners.records import provenance
from runners.records.journal import Folder
from runners.records.record import FalloffError

REFERENCE = ROOT / "data" / "reference" / "hpl_size-scale_model"
CONTROLS = (
    "\x1b]0;title\x07\x1b[31m\x9b2J\r\x00\x08\u202e\u2066\u2028\nfalloff: ok\n\n# "
    "Heading\n\n::: summary\n"
)
MARKUP = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>![x](file:///etc/passwd)"
    "[y](javascript:alert(3))`<b>`{=html}\n"
    '#read("/etc/passwd")\\input{/etc/passwd}$$\\href{javascript:alert(4)}{x}$$"'
    "'><svg onload=alert(5)>{{7*7}}|a|b [@smith]"
)
HOSTILE = f"{CONTROLS}{MARKUP}{'A' * 10_000}"
# Tables in which anybody may call values as they like: one name of each will do.
OPEN = {
    *("point", "requested", "effective", "counters", "tools", "host", "testbed", "node", "nodes"),
    *("tcp", "mpi", "offloads", "networks", "interconnects", "gige", "10gige", "unshaped"),
}


def contents():
    """What is in the campaign's files, up to its first block."""
    read = {name: (REFERENCE / name).read_text() for name in ("trials.json", "provenance.json")}
    notes = (REFERENCE / "journal.jsonl").read_text().splitlines()
    return {name: json.loads(text) for name, text in read.items()} | {
        "journal.jsonl": [json.loads(note) for note in notes],
        "transcripts": [json.loads(text) for text in TEXTS.values()],
    }


TURNING = (
    "LRE",
    "RLE",
    "LRO",
    "RLO",
    "PDF",
    "LRI",
    "RLI",
    "FSI",
    "PDI",
)  # the direction of writing
LOADING = "script img iframe object embed svg form base meta link audio video style".split()
TEXTS = {
    name: text
    for name, text in Folder(REFERENCE).texts()
    if json.loads(text)["trial"]["block"] <= 1
}


def write(held, folder):
    """Make this a campaign's files."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "transcripts").mkdir(parents=True)
    for name in ("trials.json", "provenance.json"):
        (folder / name).write_text(json.dumps(held[name]))
    notes = (json.dumps(note) + "\n" for note in held["journal.jsonl"])
    (folder / "journal.jsonl").write_text("".join(notes))
    for name, transcript in zip(TEXTS, held["transcripts"]):
        (folder / "transcripts" / f"{name}.json").write_text(json.dumps(transcript))


def ways(value, way=()):
    """The way to each string in a value, and, where it is a name, to what is called so, with True
    behind it.
    """
    if isinstance(value, str):
        yield way, False
    elif isinstance(value, dict):
        for name, one in value.items():
            yield (*way, name), True
            yield from ways(one, (*way, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from ways(one, (*way, number))


def kinds(held):
    """A way to each kind of string: of those that differ in a number alone, each time another."""
    found = {}
    for file, value in held.items():
        for way, is_name in ways(value, (file,)):
            kind = ["*" if isinstance(part, int) else part for part in way]
            if is_name and kind[-2] in OPEN:
                kind[-1] = "*"
            found.setdefault((*kind, is_name), []).append((way, is_name))
    return [alike[number % len(alike)] for number, alike in enumerate(found.values())]


def hostile(held, way, is_name):
    """The same with a hostile string there."""
    return planted(copy.deepcopy(held), way, is_name)


def planted(held, way, is_name):
    """The same, changed in place."""
    table = held
    for part in way[:-1]:
        table = table[part]
    if is_name:
        called = [(HOSTILE if name == way[-1] else name, value) for name, value in table.items()]
        table.clear()
        table.update(called)
    else:
        table[way[-1]] = HOSTILE
    return held


def renamed(value, old):
    """A value in which all that is called `old` is called by the hostile string."""
    if isinstance(value, dict):
        return {renamed(name, old): renamed(one, old) for name, one in value.items()}
    if isinstance(value, list):
        return [renamed(one, old) for one in value]
    return HOSTILE if value == old else value


def in_terminal(text):
    """What of a text a terminal obeys; and letters of the private area, which no reader should
    see.
    """
    return [
        letter
        for letter in set(text) - {"\n", "\t"}
        if unicodedata.category(letter) in ("Cc", "Cs", "Co")
        or unicodedata.bidirectional(letter) in TURNING
    ]


class Page(HTMLParser):
    """What of a page a browser runs, loads or opens elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.found = in_terminal(text)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        is_own = given.get("src", "").startswith("data:image/svg+xml;base64,")
        loads = tag in LOADING and not is_own
        runs = any(name.startswith("on") for name in given)
        leads = not re.match(r"#|https?://|\w+\.html", given.get("href") or "#")
        if loads or runs or leads:
            self.found.append((tag, given))


def in_page(text):
    return Page(text).found


def in_report(page):
    """What is live of what the report's page says; its own script and style stand around that."""
    return in_page(page.partition("<body>")[2].partition("<dialog")[0])


def in_typst(source):
    """What of a PDF's source Typst would read or open, or what has become a heading."""
    without = re.sub(r'#"(?:[^"\\]|\\.)*"|`+[^`]*`+|\\.', "", source.partition("Before")[2])
    own = re.findall(r'(?:read|image|link|include|plugin)\("[^"]*"', without)
    strange = [call for call in own if not re.search(r'image\("figures/|link\("https?://', call)]
    return [*in_terminal(source), *strange, *re.findall(r"^=+ Heading.*", without, re.M)]


def in_markdown(text):
    """What of a text a notebook, or a site that shows files, would act upon."""
    page = pypandoc.convert_text(text, "html", "commonmark_x")
    return [*in_terminal(text), *in_page(page), *re.findall("<h1.*Heading.*", page)]


def texts(value):
    """All texts of a value from JSON, names too."""
    if isinstance(value, str):
        return [value]
    inside = [*value, *value.values()] if isinstance(value, dict) else value
    return [text for one in inside for text in texts(one)] if isinstance(inside, list) else []


def explored(folder):
    """What is live of a folder's part of the explorer, which is HTML and the texts of a figure."""
    page = static._page(data.source(folder))
    figure, transcripts = page.pop("plot", {}), page.pop("transcripts", {})
    found = [
        live for html in (*page.values(), *transcripts.values()) for live in in_page(str(html))
    ]
    drawn = texts(json.loads(json.dumps(figure)))
    return found + [live for text in drawn for live in in_terminal(text)]


def said(*words):
    """What is live of a command's answer."""
    done = run(*map(str, words))
    assert "Traceback" not in done.stderr
    return in_terminal(done.stdout + done.stderr)


def readable(held, folder):
    """Whether a campaign with these files is accepted; why not, in words."""
    write(held, folder)
    try:
        store.assemble(folder)
    except FalloffError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A place for the user's runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RAW", tmp_path_factory.mktemp("raw"))
        yield paths.RAW


@pytest.fixture(scope="module")
def held():
    return contents()


@pytest.fixture(scope="module")
def places(held, raw):
    """Where a hostile string is accepted, and where it is refused, with the reason."""
    accepted, refused = [], {}
    for place in kinds(held):
        if reason := readable(hostile(held, *place), raw / "hostile"):
            refused[place] = reason
        else:
            accepted.append(place)
    return accepted, refused


def together(held, places):
    """The files with hostile strings at all of these places; names last, as the way to others leads
    through them.
    """
    held = copy.deepcopy(held)
    for way, is_name in sorted(places, key=lambda place: (place[1], -len(place[0]))):
        planted(held, way, is_name)
    return held


@pytest.mark.more
def test_what_is_refused_is_told_of_in_words(held, raw, places):
    """In the terminal and in the explorer, without what the string would have done."""
    refused, live = places[1], []
    assert len(refused) > 20
    for place in refused:
        write(hostile(held, *place), raw / "hostile")
        live += [*said("evidence", "verify", raw / "hostile"), *explored(raw / "hostile")]
    assert live == []
    lines = [f"hpl_size: {reason}" for reason in refused.values()]
    part = report.Part(paths.NOTEBOOKS / "90_summary.ipynb", ())
    section = document.Section("# Before\n\nNothing ran.", {}, ())
    whole = report.Document("supplement", [(part, section)], columns=1)
    text = report.markdown(whole, report.project_facts([]), lines)
    assert in_report(publish.to_html(text, {"title": "t"}, raw)) == []
    assert in_typst(publish.to_typst(text, {"title": "t"}, raw)) == []


@pytest.mark.more
def test_what_is_accepted_is_shown_and_not_obeyed(held, raw, places):
    """Some strings at once, in every command that reads a campaign and in the explorer."""
    accepted, live = places[0], []
    assert len(accepted) > 100
    for first in range(0, len(accepted), 24):
        reason = readable(together(held, accepted[first : first + 24]), raw / "hostile")
        live += [*in_terminal(quoted(reason))]
        for words in (
            ("evidence", "verify"),
            ("compare", REFERENCE),
            ("compare", "--json", REFERENCE),
        ):
            live += said(*words, raw / "hostile")
        live += [*said("status"), *explored(raw / "hostile")]
    assert live == []


def told(folder):
    """The dataset of a folder's campaign, and what its notebook shows of it, what it says first."""
    dataset = store.assemble(folder)
    made = notebooks.run(paths.NOTEBOOKS / "41_hpl_size.ipynb", {"hpl_size": dataset})
    said = [one for one in made.shown if isinstance(one, Text)]
    return dataset, [*said, *made.figures.values(), *made.tables]


def as_many(places, work, chosen=()):
    """Those of the places, and those chosen before, with which it still works."""
    if work([*chosen, *places]):
        return [*chosen, *places]
    if len(places) == 1:
        return chosen
    half = len(places) // 2
    return as_many(places[half:], work, as_many(places[:half], work, chosen))


@pytest.mark.more
def test_the_report_shows_it_and_obeys_nothing(held, raw, places, tmp_path):
    """A finding, its figure and its tables, with every string hostile that leaves a finding: as
    HTML, as the PDF's source, as data, in a notebook, in the terminal and in the artifact
    description."""
    folder = raw / "hostile"

    def work(places):
        with suppress(FalloffError, LookupError, ValueError, ArithmeticError):
            write(together(held, places), folder)
            return bool(told(folder))
        return False

    chosen = as_many(places[0], work)
    assert len(chosen) > 100
    assert work(chosen)
    dataset, shown = told(folder)
    live = []
    for one in shown:
        bundle = one._repr_mimebundle_()[0]
        live += in_markdown(bundle.get("text/markdown", "")) + in_page(bundle.get("text/html", ""))
    live += in_terminal(as_written(wording.plain(shown[0].text)))
    live += in_markdown(artifact.described([chain.of(folder)], provenance.code(), {}))
    cells = [new_markdown_cell("# Before"), *map(ran, shown)]
    books = [notebook(tmp_path, name, cells) for name in (summary.SUMMARY, "41_hpl_size")]
    store.save(dataset, books[1].with_name("hpl_size.nc"))
    parts = report.parts(books)
    facts = report.project_facts(parts)
    page, _ = report.build(parts, facts, tmp_path / "report", [f"hpl_size: {HOSTILE}"])
    for name in ("falloff", "supplement"):
        live += in_report(page.with_name(f"{name}.html").read_text())
    whole = report.Document("supplement", [(part, part.whole) for part in parts], columns=1)
    text = report.markdown(whole, facts, [HOSTILE])
    live += in_typst(publish.to_typst(text, {"title": "t"}, page.parent))
    live += in_terminal("".join(texts(json.loads((page.parent / "summary.json").read_text()))))
    assert live == []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("CAMPAIGNS", "hpl_size"),
        ("TESTBEDS", "smith"),
        ("TESTBEDS", "example_slurm"),
        ("TESTBEDS", "scale_model"),
    ],
)
def test_no_string_of_a_description_is_obeyed(kind, name, raw, tmp_path, monkeypatch):
    """A campaign's or testbed's TOML: refused, or listed and planned with; the terminal shows
    text.
    """
    folder = shutil.copytree(getattr(paths, kind), tmp_path / kind)
    monkeypatch.setattr(paths, kind, folder)
    text, live = (folder / f"{name}.toml").read_text(encoding="utf-8"), []
    mine = ("mine",) if kind == "CAMPAIGNS" else ("hpl_size", "--testbed", "mine")
    found = list(re.finditer(r'"[^"\n]*"', text))
    assert found
    for one in found:
        changed = text[: one.start()] + json.dumps(HOSTILE) + text[one.end() :]
        (folder / "mine.toml").write_text(changed, encoding="utf-8")
        live += [*said("run", *mine, "--plan"), *said("run", "--list")]
    assert live == []
