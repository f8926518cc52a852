"""The report: executed notebooks become one document, as HTML and PDF.

Falloff's own report has a first page and a frame of notebooks, and a supplement with all of them in
full. That of a user's own data has what these say, the cluster, the methods and the limits, and
lies beside what its author goes on writing with.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from urllib.parse import quote

import pypandoc
import xarray as xr
import yaml

from analysis.dataset import store
from analysis.descriptions.report_facts import ReportFacts
from analysis.evidence import chain
from analysis.imports.dataset_sections import HPL, MESSAGES, STREAMS, TWIN
from analysis.paths import DATA, ROOT
from analysis.quoting import anchor, as_written, quoted
from analysis.report import document, machines, publish, summary
from analysis.report.document import Section
from analysis.statements import statement
from analysis.statements.exhibit import Table
from analysis.statements.notebooks import (
    FRAME,
    INSUFFICIENT,
    OWN_FILES,
    SUMMARY,
    SUPPLEMENT,
    in_order,
    role,
)
from analysis.subjects import hpl_points
from analysis.wording import (
    UNKNOWN,
    counted,
    day,
    listed,
    percent,
    with_decimal_comma,
)
from runners.records import manifest
from runners.records.journal import write_whole

TITLE = "Does a cluster's efficiency fall off with its interconnect?"
SUBTITLE = "Published experiments on interconnects, made rerunnable"
FIGURE = r"^!\[.*\]\(figures/(?P<label>\w+)\.svg\)\{.*\}$"  # in a section's Markdown
DIGITS = 8  # of a digest that are shown: enough to tell all digests here apart
# Links to files in the same folder; the PDF may be moved, so it has no such line.
BESIDE = "::: beside\nBeside this page: [the explorer](explorer.html), with every trial{}.\n:::"
AND_SUPPLEMENT = ", and [the supplement](supplement.html), with every table"
AND_REPORT = ", and [the report](falloff.html), with the answer and what its words mean"
IN_FULL = "Supplement: every section in full"
REFERENCES = "# References {.unnumbered}\n\n:::: small\n::: {#refs}\n:::\n::::"
UNDATED = "1970-01-01"  # used if nothing ran and there is no date


@dataclass(frozen=True)
class Part:
    """A section of the report: an executed notebook, and the datasets that it shows."""

    book: Path
    datasets: tuple[xr.Dataset, ...]

    @property
    def audience(self) -> str:
        """Who reads it."""
        return role(self.book.stem).audience

    @cached_property
    def whole(self) -> Section:
        """What the notebook shows, with its details."""
        return document.read(self.book, whole=True)

    @cached_property
    def brief(self) -> Section:
        """What the notebook shows, without its details."""
        return document.read(self.book)


@dataclass(frozen=True)
class Document:
    """A document of the report: its file name, its parts as they are shown in it, and the parts
    that are in the supplement alone. With `columns` it is one that notebooks frame, as they do
    Falloff's own report, and is printed in as many."""

    name: str
    shown: Sequence[tuple[Part, Section]]
    further: Sequence[Part] = ()
    columns: int = 0

    @property
    def sections(self) -> list[Section]:
        """The sections in their order."""
        return [section for _, section in self.shown]


def parts(books: Iterable[Path]) -> list[Part]:
    """Executed notebooks in the order of the report, with the datasets beside them (*.nc), which
    they read.
    """
    return [
        Part(book, tuple(map(store.load, sorted(book.parent.glob("*.nc")))))
        for book in in_order(books)
    ]


def build(
    parts: Sequence[Part], facts: ReportFacts, out: Path, left_out: Sequence[str] = ()
) -> tuple[Path, list[str]]:
    """Write the report into the folder `out`, with its figures and every statement as data in
    `summary.json`; everything is made before anything there is replaced.

    `left_out` lists what is missing with its remedy, one line each. The same notebooks give the
    same bytes. Returns the report's page, and a line about each file of the user's that was kept.
    """
    datasets = _datasets(parts)
    last_day = (moments(*datasets.values()) or [UNDATED])[-1][:10]
    dated = int(datetime.fromisoformat(f"{last_day}T00:00+00:00").timestamp())
    front, documents = _front(facts, datasets.values()), _documents(parts)
    *_, most = documents
    with tempfile.TemporaryDirectory(prefix="falloff-") as made:
        folder = Path(made)
        (folder / "figures").mkdir()
        for section in most.sections:
            for label, figure in section.figures.items():
                (folder / "figures" / f"{label}.svg").write_text(figure.svg, encoding="utf-8")
        stated = [
            made.as_data() | {"notebook": part.book.stem}
            for part, section in most.shown
            for made in section.statements
        ]
        (folder / "summary.json").write_text(statement.text(stated), encoding="utf-8")
        for table in (file for part in parts for file in part.book.parent.glob("*.csv")):
            (folder / table.name).write_bytes(table.read_bytes())
        for variant in documents:
            text = markdown(variant, facts, left_out)
            text = with_decimal_comma(text) if facts.numbers == "de" else text
            page, about = folder / f"{variant.name}.html", {**front}
            if variant.columns:
                about |= {"campaign": "Falloff", "columns": str(variant.columns)}
            if variant.columns == 1:
                about["subtitle"] = IN_FULL
            page.write_text(publish.to_html(text, about, folder), encoding="utf-8")
            page.with_suffix(".pdf").write_bytes(publish.to_pdf(text, about, folder, dated))
        sources = [] if most.columns else _write_sources(text, front, folder, out, dated)
        for file in sorted(filter(Path.is_file, folder.rglob("*"))):
            place = out / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, file.read_bytes())
    return out / f"{documents[0].name}.html", sources


def _documents(parts: Sequence[Part]) -> list[Document]:
    """The documents of a report, that with most in it last. Without a supplement what shows users'
    own files is shown whole.
    """
    if not any(part.audience == FRAME for part in parts):
        own = [
            part.audience == OWN_FILES or any(it.falloff.is_imported for it in part.datasets)
            for part in parts
        ]
        shown = [(part, part.whole if is_own else part.brief) for part, is_own in zip(parts, own)]
        return [Document("report", shown)]
    parts = [part for part in parts if summary.says_something(part.book.stem, part.whole)]
    main = [(part, part.brief) for part in parts if part.audience != SUPPLEMENT]
    further = [part for part in parts if part.audience == SUPPLEMENT]
    # The first page says again what the sections state.
    whole = [(part, part.whole) for part in parts if part.book.stem != SUMMARY]
    return [
        Document("falloff", main, further, columns=2),
        Document("supplement", whole, columns=1),
    ]


def _write_sources(text: str, front: Mapping, folder: Path, out: Path, dated: int) -> list[str]:
    """Write what an author goes on writing with. A source in `out` that its user has changed stays,
    with the new one beside it: a line says so."""
    for figure in sorted((folder / "figures").glob("*.svg")):
        figure.with_suffix(".pdf").write_bytes(publish.figure_pdf(figure, dated))
    (folder / "tables").mkdir()
    for label, latex in publish.tables(text).items():
        (folder / "tables" / f"{label}.tex").write_text(latex, encoding="utf-8")
    (folder / "references.bib").write_text(publish.cited(text), encoding="utf-8")
    source, new = out / "report.md", out / "report-new.md"
    is_changed = source.exists() and not publish.is_generated(source.read_text(encoding="utf-8"))
    made = folder / (new if is_changed else source).name
    made.write_text(publish.to_source(text, front), encoding="utf-8")
    return [f"{source} was changed by you and stays; the new text is {new}"] * is_changed


def markdown(made: Document, facts: ReportFacts, left_out: Sequence[str]) -> str:
    """A whole document, from its sections and the datasets of these."""
    sections, datasets = [*_with_evidence(made)], _datasets(part for part, _ in made.shown)
    if made.columns:
        head = [BESIDE.format(AND_REPORT)]
        if made.columns > 1:
            head = [*_first_page(sections.pop(0).removeprefix(f"# {facts.title}").strip())]
        ending = [_in_supplement(made.further)]
        sections[:0] = [_missing(left_out), "::: floating\n:::"]
    else:
        shown, table = [*datasets.values()], summary.table(made.sections)
        names = {part.book.stem for part, _ in made.shown}
        head = [
            f"::: summary\n{summary.own_abstract(made.sections)}\n:::",
            facts.introduction and introduction(facts),
            table.markdown if table.rows else "",
            BESIDE.format(""),
        ]
        ending = [
            _optional("The cluster", lambda: machines.section(shown, facts)),
            methods_and_limits(names, shown),
        ]
    ending += [REFERENCES, _provenance(made, datasets)]
    return "\n\n".join(filter(None, [*head, *sections, *ending]))


def _first_page(opening: str) -> Iterator[str]:
    """What stands before the first heading goes above the columns, with the abstract in a box."""
    first_page, heading, background = opening.partition("\n# ")
    abstract, figure, rest = first_page.partition("\n![")
    yield f"::::: opening\n\n::: summary\n\n{abstract.strip()}\n\n:::\n{figure}{rest}\n\n:::::"
    yield BESIDE.format(AND_SUPPLEMENT)
    yield heading.lstrip() + background


def _in_supplement(parts: Sequence[Part]) -> str:
    if not parts:
        return ""
    titles = "; ".join(_title(part.whole).removeprefix("# ") for part in parts)
    return (
        f"**More experiments** are in the supplement: {titles}{'.' * (titles[-1] != '?')} Its "
        "appendix lists every campaign with the digests of what it rests on."
    )


def _title(section: Section) -> str:
    return section.markdown.partition("\n")[0]


def _missing(left_out: Sequence[str]) -> str:
    if not left_out:
        return ""
    lines = "\n".join(f"- {quoted(line)}" for line in left_out)
    return f"::: small\n**Not run or left out**, and the remedy:\n\n{lines}\n:::"


def introduction(facts: ReportFacts) -> str:
    """The author's introduction (Markdown) without HTML and TeX, which the page does not interpret
    and other readers of the source would."""
    text = pypandoc.convert_text(facts.introduction, "markdown", publish.READ)
    return text.replace("`{=", "` {=")


def _optional(title: str, section: Callable[[], str]) -> str:
    """A section, or why these data have none: the other sections are shown anyway."""
    try:
        return section()
    except INSUFFICIENT as error:
        return f"# {title}\n\nLeft out: {quoted(error)} ({type(error).__name__})."


def methods_and_limits(names: Collection[str], datasets: Sequence[xr.Dataset]) -> str:
    """How a user's own data were judged, and what they cannot tell (Markdown): of
    templates/methods.md and limits.md the paragraphs on what these notebooks, by name, and datasets
    show."""
    imported = [dataset.falloff.is_imported for dataset in datasets]
    unordered = [dataset.falloff.is_unordered for dataset in datasets]
    is_there = {
        "planned": not all(imported),
        "imported": any(imported),
        "hpl": HPL in names,
        "unplanned": HPL in names and any(imported),
        "blocks": HPL in names and not all(unordered),
        "unordered": HPL in names and any(unordered),
        "no blocks": any(unordered),
        "messages": MESSAGES in names,
        "wire": MESSAGES in names or STREAMS in names,
        "twin": TWIN in names,
        "evidence": True,
    }
    words = {
        "margin": percent(hpl_points.MARGIN, 0),
        "kinds": listed(sorted({dataset.falloff.evidence for dataset in datasets})),
    }
    parts = []
    for title in ("Methods", "Limits"):
        text = (publish.TEMPLATES / f"{title.lower()}.md").read_text(encoding="utf-8").strip()
        paragraphs = [paragraph.partition(": ") for paragraph in text.split("\n\n")]
        chosen = [text for key, _, text in paragraphs if is_there[key]]
        parts += [f"# {title}", *chosen] if chosen else []
    return "\n\n".join(parts).format(**words)


def project_facts(parts: Sequence[Part]) -> ReportFacts:
    """The title matter of Falloff's own report."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    datasets = _datasets(parts).values()
    ran = f"Version {cited['version']}"
    if count := sum(bool(dataset.attrs["started"]) for dataset in datasets):
        days, machine = _days(datasets), _machine(datasets)
        ran += f". {count} campaigns (planned sets of runs), {days}{machine}"
    authors = [author["name"] for author in cited["authors"]]
    return ReportFacts(title=TITLE, subtitle=SUBTITLE, authors=authors, date=ran)


def _machine(datasets: Iterable[xr.Dataset]) -> str:
    """On which machine most campaigns ran, as words that follow the days; empty if none says so."""
    hosts = [dataset.falloff.host for dataset in datasets]
    machines = Counter((host["cpu_model"], host["cpus"]) for host in hosts if host.get("cpu_model"))
    if not machines:
        return ""
    ((processor, count), times), *_ = machines.most_common(1)
    most = "" if times == machines.total() else ", most of them"
    return f"{most} on {counted(count, f'{as_written(processor)} processor')}"


def _front(facts: ReportFacts, datasets: Iterable[xr.Dataset]) -> dict[str, str]:
    """The title matter that the templates print above the text."""
    authors = ", ".join(facts.authors)
    by = f" ({facts.affiliation})" if authors and facts.affiliation else facts.affiliation
    front = {
        "title": facts.title.replace("'", "\u2019"),
        "subtitle": facts.subtitle,
        "author": authors + by,
        "lang": "en",
        "date": facts.date or (f"Runs of {days}" if (days := _days(datasets)) else ""),
        "link-citations": "true",
    }
    return {name: value for name, value in front.items() if value}


def _days(datasets: Iterable[xr.Dataset]) -> str:
    """The days of the first and the last run, as far as they are known."""
    days = [day(moment) for moment in moments(*datasets)]
    return " to ".join(dict.fromkeys(days[:1] + days[-1:]))


def _datasets(parts: Iterable[Part]) -> dict[str, xr.Dataset]:
    """The datasets of a report by the targets of links to them: name and beginning of the digest of
    what was recorded.
    """
    return {_target(dataset): dataset for part in parts for dataset in part.datasets}


def _target(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    digest = about.get("transcripts_sha256") or about["campaign_hash"]
    return anchor(f"{about['campaign']}-{digest[:DIGITS]}")


def moments(*datasets: xr.Dataset) -> list[str]:
    """When the runs of datasets began and the last ones ended (ISO 8601), as far as that is known,
    in order.
    """
    imported = (
        as_written(run.get("moment", ""))
        for dataset in datasets
        for session in dataset.falloff.sessions
        for run in session.get("imported", [])
    )
    ran = (dataset.attrs[end] for dataset in datasets for end in ("started", "ended"))
    return sorted(filter(None, (*imported, *ran)))


def _with_evidence(made: Document) -> Iterator[str]:
    """Each section's Markdown, named by its campaign where several are alike, with the evidence of
    each figure folded below it; only HTML shows the fold. A figure that appeared before is only
    referred to, and what the first page has of an answer is not said again.

    Each campaign links to its row of the provenance and, in the explorer, to the transcript of
    every trial.
    """
    seen: set[str] = set()

    def folded(part: Part, section: Section, reference: re.Match) -> str:
        label = reference["label"]
        if label in seen:
            return f"[](#fig:{label.replace('_', '-')}) shows it."
        seen.add(label)
        sources = [_source(name, part.datasets) for name in section.figures[label].rests_on]
        lines = [f"- {source}" for source in sources if source]
        if made.columns:
            trace = f"`falloff evidence trace {label}`"
            lines += ["", f"{trace} prints every command, digest and transcript behind it."]
        return "\n".join([reference[0], "", "::: evidence", *lines, ":::"])

    first_page = set(made.sections[0].markdown.splitlines() if made.columns > 1 else ()) - {""}
    titles = Counter(map(_title, made.sections))
    for part, section in made.shown:
        answer = [line for line in section.answer.splitlines() if line not in first_page]
        title, text = _title(section), section.markdown.replace(section.answer, "\n".join(answer))
        if titles[title] > 1 and part.datasets:
            text = text.replace(title, f"{title}: {_called(part.datasets[0])}", 1)
        yield re.sub(FIGURE, partial(folded, part, section), text, flags=re.MULTILINE)


def _called(dataset: xr.Dataset) -> str:
    """What tells a dataset from others of the same tool: its networks, and the beginning of its
    digest."""
    names = ", ".join(dataset.falloff.names.values())
    about = dataset.attrs
    campaign = f"{quoted(about['campaign'])} {quoted(about['campaign_hash'][:DIGITS])}"
    return f"{names} ({campaign})" if names else campaign


def _source(name: str, datasets: Iterable[xr.Dataset]) -> str:
    """A campaign, or a file of data/, with links to its row below and to its trials in the
    explorer; empty if it is not in the report."""
    dataset = next((it for it in datasets if it.attrs["campaign"] == name), None)
    if dataset is None:
        return f"[{quoted(name)}](#data:{anchor(name)})" * (DATA / name).is_file()
    trials, command = f"explorer.html#{quote(name, safe='')}", quoted(chain.command(dataset))
    testbed = quoted(dataset.falloff.testbed.name)
    return (
        f"[{quoted(name)}](#data:{_target(dataset)}): {dataset.sizes['trial']} trials on "
        f"{testbed}, each with its [transcript]({trials}); `{command}` makes them anew"
    )


def _provenance(made: Document, datasets: Mapping[str, xr.Dataset]) -> str:
    """Where, when and with which code each campaign ran, with the digests of plan, values and
    transcripts; and the files of data/."""
    rows = []
    for target, dataset in datasets.items():
        about, host = dataset.attrs, dataset.falloff.host
        trials, failed = f"{dataset.sizes['trial']}", int((dataset.status != "ok").sum())
        commit = (host.get("git_commit") or UNKNOWN)[:7] + "+" * bool(host.get("git_dirty"))
        rows.append(
            (
                f"[{quoted(about['campaign'])}]{{#data:{target}}}",
                quoted(dataset.falloff.testbed.name),
                quoted(dataset.falloff.evidence),
                f"{trials}, {failed} failed" if failed else trials,
                (moments(dataset) or [UNKNOWN])[0][:10],
                commit,
                _first(about["campaign_hash"]),
                _first(about.get("transcripts_sha256")),
            )
        )
    columns = (
        "Campaign",
        "Testbed",
        "Evidence",
        "Trials",
        "Begun",
        "Commit",
        "Plan",
        "Transcripts",
    )
    folder, ours = "" if made.columns else " FOLDER", ""
    if made.columns:
        ours = (
            ", `falloff run CAMPAIGN --testbed TESTBED` makes them anew. A failed trial has no "
            "result, and the supplement says why"
        )
    caption = (
        f"The campaigns, with the beginnings of the {manifest.ALGORITHM} of plan and transcripts. "
        f"`falloff evidence verify{folder}` recomputes them{ours}. +: the code had changes that no "
        "commit has."
    )
    table = Table("campaigns", columns, "lllrllll", rows, caption)
    used = dict.fromkeys(
        name
        for section in made.sections
        for figure in section.figures.values()
        for name in figure.rests_on
        if (DATA / name).is_file()
    )
    files = [
        f"[{quoted(name)}]{{#data:{anchor(name)}}} ({_first(manifest.digest(content))})"
        for name in used
        for content in [(DATA / name).read_bytes()]
    ]
    title, shown = "# Appendix: provenance {.unnumbered}", [table.markdown]
    if files:
        shown.append(f"Files of `data/` that figures show beside them: {', '.join(files)}.")
    appendix = "\n\n".join([title, "::: dense", *shown, ":::"])
    return f"::::: screen\n\n{appendix}\n\n:::::" if made.further else appendix


def _first(sha256: str | None) -> str:
    return f"`{quoted(sha256[:DIGITS])}`{{.digest}}" if sha256 else UNKNOWN
