"""The report: executed notebooks become one document, as HTML and PDF, beside a supplement of all of them whole."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import xarray as xr

from analysis import conduct, document, findings, publish, store
from analysis.document import Section
from analysis.evidence import chain, content
from analysis.exhibit import Table
from analysis.paths import DATA
from analysis.summary import SUMMARY
from analysis.wording import day, moment, plain
from runners import manifest
from runners.journal import write_whole

TITLE = "Does a cluster's efficiency fall off with its interconnect?"
SUBTITLE = "Published experiments on interconnects, made rerunnable"
LAST = ("95_methods",)  # these close it
DIGITS = 10  # of a digest that are shown: enough to tell it from all others here
UNDATED = 0  # s since 1970: where nothing ran there is no date


@dataclass(frozen=True)
class Report:
    """Where the report and its supplement lie, each in two forms."""

    html: Path
    pdf: Path
    supplement_html: Path
    supplement_pdf: Path


def build(notebooks: Sequence[Path], out: Path, left_out: Sequence[str]) -> Report:
    """Write the report (`falloff`) and its supplement (`supplement`) of executed notebooks into the folder `out`, as HTML and
    PDF, with their figures and every finding as data in `summary.json`.

    Beside each notebook are the datasets that it read (*.nc). `left_out` says, in a line each, what is missing and the
    remedy. The same notebooks give the same bytes.
    """
    datasets = {file.stem: store.load(file) for book in in_order(notebooks) for file in sorted(book.parent.glob("*.nc"))}
    (out / "figures").mkdir(parents=True, exist_ok=True)
    whole = [document.read(book, whole=True) for book in in_order(notebooks)]
    brief = [document.read(book) for book in in_order(notebooks)]
    for section in whole:
        for label, svg in section.figures.items():
            write_whole(out / "figures" / f"{label}.svg", svg)
    stated = [finding for section in whole for finding in section.findings]
    write_whole(out / "summary.json", findings.text(stated))
    dated = _timestamp(datasets.values())
    for name, sections in (("falloff", brief), ("supplement", whole)):
        text = markdown(sections, datasets, left_out)
        write_whole(out / f"{name}.html", publish.to_html(text, out))
        write_whole(out / f"{name}.pdf", publish.to_pdf(text, out, dated))
    return Report(*(out / f"{name}.{form}" for name in ("falloff", "supplement") for form in ("html", "pdf")))


def in_order(notebooks: Iterable[Path]) -> list[Path]:
    """The summary first, the methods last, all others by their names."""
    return sorted(notebooks, key=lambda book: (book.stem in LAST, book.stem != SUMMARY, book.stem))


def markdown(sections: Sequence[Section], datasets: Mapping[str, xr.Dataset], left_out: Sequence[str]) -> str:
    """The whole document, from its sections and the datasets that they rest on."""
    opening, *others = _each_figure_once([_with_evidence(section) for section in sections])
    shown = {label for section in sections for label in section.figures}
    rests_on = {label: names for section in sections for label, names in section.rests_on.items() if label in shown}
    parts = [
        _front(datasets.values()),
        opening.removeprefix(f"# {TITLE}").lstrip(),
        _missing(left_out),
        *others,
        "# References {.unnumbered}\n\n::: {#refs}\n:::",
        _provenance(datasets),
        _chains(rests_on, datasets),
    ]
    return "\n\n".join(filter(None, parts))


def _front(datasets: Iterable[xr.Dataset]) -> str:
    started = [dataset.attrs["started"] for dataset in datasets if dataset.attrs["started"]]
    ended = [dataset.attrs["ended"] for dataset in datasets if dataset.attrs["ended"]]
    ran = f"{len(started)} campaigns, run from {day(min(started))} to {day(max(ended))}" if started else ""
    return (
        f"---\ntitle: {TITLE}\nsubtitle: {SUBTITLE}\nlang: en\ncampaign: Falloff\ndate: >-\n  {ran}\n"
        "link-citations: true\n---"
    )


def _missing(left_out: Sequence[str]) -> str:
    if not left_out:
        return ""
    lines = "\n".join(f"- {plain(line)}" for line in left_out)
    return f"::: small\n**Not run or left out**, and the remedy:\n\n{lines}\n:::"


def _each_figure_once(texts: Iterable[str]) -> list[str]:
    """The texts, in which a figure that stood before, with its line of evidence, is only referred to."""
    seen: set[str] = set()

    def once(found: re.Match) -> str:
        if found["label"] in seen:
            return f"[](#fig:{found['label']}) shows it."
        seen.add(found["label"])
        return found[0]

    figure = r"^!\[.*\]\(figures/\w+\.svg\)\{#fig:(?P<label>[\w-]+) .*\}$(?:\n\n::: evidence\n.*\n:::)?"
    return [re.sub(figure, once, text, flags=re.MULTILINE) for text in texts]


def _with_evidence(section: Section) -> str:
    """The section's Markdown with a line under each figure that says what it rests on; only HTML shows it."""

    def under(found: re.Match) -> str:
        label = found["label"]
        names = ", ".join(f"[{plain(name)}](#data:{_anchor(name)})" for name in section.rests_on[label])
        trace = f"`falloff trace {label}` prints every transcript behind it."
        return f"{found[0]}\n\n::: evidence\nData: {names}. {trace}\n:::"

    return re.sub(r"^!\[.*\]\(figures/(?P<label>\w+)\.svg\)\{.*\}$", under, section.markdown, flags=re.MULTILINE)


def _provenance(datasets: Mapping[str, xr.Dataset]) -> str:
    """The campaigns of the report: what ran where and when, by which code."""
    rows = []
    for dataset in datasets.values():
        ran = conduct.campaign(dataset)
        failed = f", {len(ran['failed'])} failed" if ran["failed"] else ""
        commit = f"{ran['commit'][:8]}{', changed' if ran['dirty'] else ''}" if ran["commit"] else "—"
        names = plain(ran["campaign"]), plain(ran["testbed"]), ran["evidence"]
        digest = f"`{ran['campaign_hash'][:8]}`{{.digest}}"
        rows.append((*names, f"{ran['trials']}{failed}", moment(ran["started"]), commit, digest))
    columns = ("Campaign", "Testbed", "Evidence", "Trials", "Begun", "Commit", "Digest")
    caption = "The campaigns of this report. A failed trial has no result; the supplement says why. A digest is of the trials that were planned."
    table = Table("campaigns", columns, "lllrlll", rows, caption)
    return f"# Appendix: provenance {{.unnumbered}}\n\n::: dense\n\n{table.markdown}\n\n:::"


def _chains(rests_on: Mapping[str, Sequence[str]], datasets: Mapping[str, xr.Dataset]) -> str:
    """What each figure rests on: datasets with their digests and the commands that make them, and files."""
    campaigns = {dataset.attrs["campaign"]: dataset for dataset in datasets.values()}
    used = list(dict.fromkeys(name for names in rests_on.values() for name in names))
    rows = []
    for name in used:
        if name in campaigns:
            dataset = campaigns[name]
            values, raw = content.digest(dataset), dataset.attrs.get("transcripts_sha256")
            made = f"`{chain.command(dataset)}`{{.digest}}"
            rows.append((_target(name), str(dataset.sizes["trial"]), _first(values), _first(raw), made))
        elif (DATA / name).exists():
            digest = manifest.digest((DATA / name).read_bytes())
            rows.append((_target(name), "—", _first(digest), "—", "a file of `data/`"))
    columns = ("Dataset", "Trials", "Values", "Transcripts", "Made by")
    caption = (
        f"What the figures rest on: the beginnings of the {manifest.ALGORITHM} of values and transcripts, and the command that makes "
        "them anew. `falloff verify` recomputes them."
    )
    table = Table("sources", columns, "lrlll", rows, caption)
    return f"# Appendix: chain of evidence {{.unnumbered}}\n\n::: dense\n\n{table.markdown}\n\n:::"


def _target(name: str) -> str:
    return f"[{plain(name)}]{{#data:{_anchor(name)}}}"


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "-", name)


def _first(sha256: str | None) -> str:
    return f"`{sha256[:DIGITS]}`{{.digest}}" if sha256 else "—"


def _timestamp(datasets: Iterable[xr.Dataset]) -> int:
    """When the last of them ended [s since 1970]."""
    ends = [datetime.fromisoformat(dataset.attrs["ended"]).timestamp() for dataset in datasets if dataset.attrs["ended"]]
    return int(max(ends, default=UNDATED))
