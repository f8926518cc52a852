"""The report: executed notebooks become one document, as HTML and PDF, with a supplement that
contains all of them in full."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

import xarray as xr
import yaml

from analysis import attributes, document, publish, statements, store
from analysis.document import Section
from analysis.evidence import chain
from analysis.exhibit import Table
from analysis.notebooks import SUMMARY, TESTS_OF_TOOLS, in_order
from analysis.paths import DATA, ROOT
from analysis.quoting import anchor, as_written, quoted
from analysis.summary import says_something
from analysis.wording import day
from runners import manifest
from runners.journal import write_whole

TITLE = "Does a cluster's efficiency fall off with its interconnect?"
SUBTITLE = "Published experiments on interconnects, made rerunnable"
FIGURE = r"^!\[.*\]\(figures/(?P<label>\w+)\.svg\)\{.*\}$"  # in a section's Markdown
DIGITS = 8  # of a digest that are shown: enough to tell all digests here apart
# Links to files in the same folder; the PDF may be moved, so it has no such line.
BESIDE = (
    "::: beside\nBeside this page: [the explorer](explorer.html), with every trial, and [the supplement](supplement.html), "
    "with every table.\n:::"
)
UNDATED = "1970-01-01T00:00:00+00:00"  # used if nothing ran and there is no date


def build(notebooks: Sequence[Path], out: Path, left_out: Sequence[str]) -> Path:
    """Write the report (`falloff`) and its supplement (`supplement`) from executed notebooks into
    the folder `out`, as HTML and PDF, with their figures and every statement as data in
    `summary.json`.

    The datasets that each notebook read (*.nc) are beside it. `left_out` lists what is missing with
    its remedy, one line each. The same notebooks give the same bytes. Returns the report's page.
    """
    datasets = {
        file.stem: store.load(file)
        for book in in_order(notebooks)
        for file in sorted(book.parent.glob("*.nc"))
    }
    (out / "figures").mkdir(parents=True, exist_ok=True)
    read = {book: document.read(book, whole=True) for book in in_order(notebooks)}
    books = [book for book, section in read.items() if says_something(book.stem, section)]
    whole = [read[book] for book in books]
    brief = [document.read(book) for book in books if book.stem not in TESTS_OF_TOOLS]
    beyond = [read[book] for book in books if book.stem in TESTS_OF_TOOLS]
    for section in whole:
        for label, svg in section.figures.items():
            write_whole(out / "figures" / f"{label}.svg", svg)
    stated = [
        one | {"notebook": book.stem}
        for book, section in zip(books, whole)
        for one in section.statements
        if book.stem != SUMMARY  # it says again what others state
    ]
    write_whole(out / "summary.json", statements.text(stated))
    dated = int(datetime.fromisoformat(_ended(datasets.values())).timestamp())
    for name, sections, further, columns in (
        ("falloff", brief, beyond, 2),
        ("supplement", whole, None, 1),
    ):
        text = markdown(sections, datasets, left_out, further)
        front = _front(datasets.values(), columns)
        write_whole(out / f"{name}.html", publish.to_html(text, front, out))
        write_whole(out / f"{name}.pdf", publish.to_pdf(text, front, out, dated))
    return out / "falloff.html"


def markdown(
    sections: Sequence[Section],
    datasets: Mapping[str, xr.Dataset],
    left_out: Sequence[str],
    further: Sequence[Section] | None = None,
) -> str:
    """The whole document, from its sections and the datasets that they use.

    The report has a first page, and the titles of the `further` sections, which are in the supplement
    alone; the supplement has None.
    """
    opening, *others = _with_evidence(sections, datasets)
    used = {
        name: None
        for section in sections
        for label in section.figures
        for name in section.rests_on[label]
    }
    opening = opening.removeprefix(f"# {TITLE}").strip()
    parts = [
        *([BESIDE, opening] if further is None else _with_first_page(opening)),
        _missing(left_out),
        "::: floating\n:::",
        *others,
        _in_supplement(further or ()),
        "# References {.unnumbered}\n\n:::: small\n::: {#refs}\n:::\n::::",
        _provenance(datasets, used),
    ]
    return "\n\n".join(filter(None, parts))


def _with_first_page(opening: str) -> Iterator[str]:
    """What stands before the first heading goes above the columns, with the abstract in a box."""
    first_page, heading, background = opening.partition("\n# ")
    abstract, figure, rest = first_page.partition("\n![")
    yield f"::::: opening\n\n::: summary\n\n{abstract.strip()}\n\n:::\n{figure}{rest}\n\n:::::"
    yield BESIDE
    yield heading.lstrip() + background


def _in_supplement(sections: Sequence[Section]) -> str:
    titles = [section.markdown.partition("\n")[0].removeprefix("# ") for section in sections]
    if not titles:
        return ""
    end = "" if titles[-1].endswith("?") else "."
    return f"**Tests of the tools**, in the supplement: {'; '.join(titles)}{end}"


def _front(datasets: Iterable[xr.Dataset], columns: int) -> dict[str, str]:
    """The title matter that the templates print above the text."""
    started = [dataset.attrs["started"] for dataset in datasets if dataset.attrs["started"]]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    ran = f"Version {cited['version']}"
    if started:
        days = f"{day(min(started))} to {day(_ended(datasets))}"
        ran += f". {len(started)} campaigns (planned sets of runs), {days}{_machine(datasets)}"
    return {
        "title": TITLE.replace("'", "\u2019"),
        "subtitle": SUBTITLE,
        "author": ", ".join(one["name"] for one in cited["authors"]),
        "lang": "en",
        "campaign": "Falloff",
        "date": ran,
        "link-citations": "true",
        "columns": str(columns),
    }


def _machine(datasets: Iterable[xr.Dataset]) -> str:
    """On which machine most campaigns ran, as words that follow the days; empty if none says so."""
    hosts = [attributes.host(dataset) for dataset in datasets]
    known = Counter(
        (one["cpu_model"], one["cpus"]) for one in hosts if one.get("cpu_model") and one.get("cpus")
    )
    if not known:
        return ""
    ((processor, count), times), *_ = known.most_common(1)
    most = "" if times == known.total() else ", most of them"
    return (
        f"{most} on {count} {as_written(processor)} {'processor' if count == 1 else 'processors'}"
    )


def _ended(datasets: Iterable[xr.Dataset]) -> str:
    """When the last of the datasets ended, as ISO 8601; 1970 if nothing ran."""
    return max((dataset.attrs["ended"] for dataset in datasets), default="") or UNDATED


def _missing(left_out: Sequence[str]) -> str:
    if not left_out:
        return ""
    lines = "\n".join(f"- {quoted(line)}" for line in left_out)
    return f"::: small\n**Not run or left out**, and the remedy:\n\n{lines}\n:::"


def _with_evidence(
    sections: Iterable[Section], datasets: Mapping[str, xr.Dataset]
) -> Iterator[str]:
    """Each section's Markdown with the evidence of each figure folded below it; only HTML shows the
    fold. A figure that appeared before is only referred to.

    Each campaign links to its row of the provenance and, in the explorer, to the transcript of
    every trial.
    """
    seen: set[str] = set()

    def shown(section: Section, found: re.Match) -> str:
        label = found["label"]
        if label in seen:
            return f"[](#fig:{label.replace('_', '-')}) shows it."
        seen.add(label)
        lines = [f"- {_source(name, datasets)}" for name in section.rests_on[label]]
        trace = f"`falloff evidence trace {label}` prints every command, digest and transcript behind it."
        return "\n".join([found[0], "", "::: evidence", *lines, "", trace, ":::"])

    for section in sections:
        yield re.sub(FIGURE, partial(shown, section), section.markdown, flags=re.MULTILINE)


def _source(name: str, datasets: Mapping[str, xr.Dataset]) -> str:
    """A campaign, or a file of data/, with links to its row below and to its trials in the
    explorer."""
    row = f"[{quoted(name)}](#data:{anchor(name)})"
    dataset = next((each for each in datasets.values() if each.attrs["campaign"] == name), None)
    if dataset is None:
        return row
    trials = f"explorer.html#{quote(name, safe='')}"
    testbed = quoted(attributes.testbed(dataset)["name"])
    return (
        f"{row}: {dataset.sizes['trial']} trials on {testbed}, each with its "
        f"[transcript]({trials}); `{quoted(chain.command(dataset))}` makes them anew"
    )


def _provenance(datasets: Mapping[str, xr.Dataset], used: Collection[str]) -> str:
    """Where, when and with which code each campaign ran, with the digests of plan, values and
    transcripts; and the files of data/."""
    rows = []
    for dataset in datasets.values():
        about, host = dataset.attrs, attributes.host(dataset)
        number = int((dataset.status != "ok").sum())
        trials = f"{dataset.sizes['trial']}" + (f", {number} failed" if number else "")
        where = [
            quoted(dataset[name].values[0].item() if dataset.sizes["trial"] else "")
            for name in ("testbed", "evidence")
        ]
        commit = host["git_commit"][:7] if host.get("git_commit") else "—"
        commit += "+" if host.get("git_dirty") else ""
        digests = about["campaign_hash"], about.get("transcripts_sha256")
        begun = about["started"][:10] or "—"
        rows.append(
            (_target(about["campaign"]), *where, trials, begun, commit, *map(_first, digests))
        )
    columns = (
        "Campaign", "Testbed", "Evidence", "Trials", "Begun", "Commit", "Plan", "Transcripts"
    )  # fmt: skip
    caption = (
        f"The campaigns, with the beginnings of the {manifest.ALGORITHM} of plan and transcripts. `falloff evidence verify` recomputes "
        "them, `falloff run CAMPAIGN --testbed TESTBED` makes them anew. A failed trial has no result, and the supplement says why. +: "
        "the code had changes that no commit has."
    )
    table = Table("campaigns", columns, "lllrllll", rows, caption)
    files = [
        f"{_target(name)} ({_first(manifest.digest((DATA / name).read_bytes()))})"
        for name in used
        if (DATA / name).is_file()
    ]
    beside = (
        f"\n\nFiles of `data/` that figures show beside them: {', '.join(files)}." if files else ""
    )
    return f"# Appendix: provenance {{.unnumbered}}\n\n::: dense\n\n{table.markdown}{beside}\n\n:::"


def _target(name: str) -> str:
    return f"[{quoted(name)}]{{#data:{anchor(name)}}}"


def _first(sha256: str | None) -> str:
    return f"`{quoted(sha256[:DIGITS])}`{{.digest}}" if sha256 else "—"
