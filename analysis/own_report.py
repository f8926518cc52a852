"""The report of one's own data: what imported files and own campaigns say, and nothing else.

It is written as HTML and PDF, and as a Markdown source to go on writing with, beside its figures (SVG, PDF), tables
(LaTeX), references (BibTeX) and statements (JSON).
"""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pypandoc
import typst
import xarray as xr

from analysis import (
    attributes,
    document,
    own_cluster,
    own_methods,
    publish,
    statements,
    summary,
)
from analysis.document import Section
from analysis.exhibit import Table
from analysis.notebooks import INSUFFICIENT, OF_OWN_FILES
from analysis.paths import BIBLIOGRAPHY
from analysis.quoting import anchor, as_markdown, as_written, quoted
from analysis.report import DIGITS, FIGURE, UNDATED
from analysis.report_facts import TITLE, ReportFacts
from analysis.statements import Statement
from analysis.wording import UNKNOWN, counted, day, first_sentence, with_decimal_comma, within_words
from runners.journal import write_whole
from runners.record import FalloffError

PAGE, SOURCE = "report.html", "report.md"
FINDINGS = (
    "What was found; § is the section. An efficiency *falls off* if the whole interval of its loss lies beyond the margin, and is "
    "*flat* if all of it lies within. *Undecided*: the interval decides nothing. An interval's level stands before it."
)
_TABLE = re.compile(r"((?:^\|.*\n)+)\n^Table: (.*?)(?: \{#tbl:([\w-]+)[^}\n]*\})?$", re.M)
_GENERATED = re.compile(
    r"\A<!-- Made by Falloff\. As long as this is unchanged, the next report replaces it: (\w+) -->\n"
)


@dataclass(frozen=True)
class Part:
    """A section of the report: the notebook's name, the executed notebook, and the dataset that it shows."""

    notebook: str
    book: Path
    dataset: xr.Dataset


def build(parts: Sequence[Part], facts: ReportFacts, out: Path) -> tuple[Path, list[str]]:
    """Write the report from executed notebooks into the folder `out`; everything is made before anything there is replaced.

    Returns the page and a line about each file of the user's that was kept. Raises FalloffError if there is no part.
    """
    if not parts:
        raise FalloffError("there is nothing to report")
    # There is no supplement, so that one's own notebooks are shown whole.
    sections = [document.read(part.book, whole=part.notebook in OF_OWN_FILES) for part in parts]
    stated = [
        one | {"notebook": part.notebook}
        for part, section in zip(parts, sections)
        for one in section.statements
    ]
    with tempfile.TemporaryDirectory(prefix="falloff-") as made:
        folder = Path(made)
        (folder / "figures").mkdir()
        for section in sections:
            for label, svg in section.figures.items():
                (folder / "figures" / f"{label}.svg").write_text(svg, encoding="utf-8")
        text = markdown(parts, sections, facts)
        text = with_decimal_comma(text) if facts.numbers == "de" else text
        front = _front(parts, facts)
        dated = int(_ended(parts).timestamp())
        (folder / PAGE).write_text(publish.to_html(text, front, folder), encoding="utf-8")
        (folder / "report.pdf").write_bytes(publish.to_pdf(text, front, folder, dated))
        for figure in sorted((folder / "figures").glob("*.svg")):
            figure.with_suffix(".pdf").write_bytes(_as_pdf(folder, figure, dated))
        (folder / "tables").mkdir()
        for label, latex in _tables(text).items():
            (folder / "tables" / f"{label}.tex").write_text(latex, encoding="utf-8")
        (folder / "references.bib").write_text(_cited(text), encoding="utf-8")
        (folder / "summary.json").write_text(statements.text(stated), encoding="utf-8")
        return out / PAGE, _put(folder, out, _source(text, front))


def markdown(parts: Sequence[Part], sections: Sequence[Section], facts: ReportFacts) -> str:
    """The whole document: abstract, statements, sections, cluster, methods, limits, references,
    provenance."""
    table = replace(summary.table(sections), caption=FINDINGS)
    beside = "::: beside\nBeside this page: [the explorer](explorer.html), with every trial.\n:::"
    shown = [(part.notebook, part.dataset) for part in parts]
    datasets = [part.dataset for part in parts]
    opening = f"::: summary\n{abstract(sections)}\n:::"
    found = [opening]
    if facts.introduction:
        found.append(introduction(facts))
    found += [table.markdown if table.rows else "", beside]
    found += _sections(parts, sections)
    found += [
        _optional("The cluster", lambda: own_cluster.section(datasets, facts)),
        f"# Methods\n\n{own_methods.methods(shown)}" if own_methods.methods(shown) else "",
        f"# Limits\n\n{own_methods.limits(shown)}",
        "# References {.unnumbered}\n\n:::: small\n::: {#refs}\n:::\n::::",
        _provenance(parts),
    ]
    return "\n\n".join(filter(None, found))


def introduction(facts: ReportFacts) -> str:
    """The author's introduction (Markdown) without HTML and TeX, which the page does not interpret and other readers of the
    source would."""
    text = pypandoc.convert_text(facts.introduction, "markdown", publish.READ)
    return text.replace("`{=", "` {=")


def _optional(title: str, section: Callable[[], str]) -> str:
    """A section, or why these data have none: the other sections are shown anyway."""
    try:
        return section()
    except INSUFFICIENT as error:
        return f"# {title}\n\nLeft out: {quoted(error)} ({type(error).__name__})."


def abstract(sections: Sequence[Section]) -> str:
    """The main sentences of the sections' primary statements, as many as fit."""
    return " ".join(within_words(_main(sections), summary.WORDS))


def _main(sections: Sequence[Section]) -> Iterator[str]:
    """The main sentence of every primary statement that says something in bold. Those that compare with another network
    come only where a section has no others: they are in the table."""
    for section in sections:
        made = [Statement.from_data(one) for one in section.statements]
        lines = [str(one) for one in made if one.primary and str(one).startswith("**")]
        alone = [line for line in lines if " against " not in line]
        yield from map(first_sentence, alone or lines)


def _sections(parts: Sequence[Part], sections: Sequence[Section]) -> Iterator[str]:
    """Each section, named by its campaign where several are alike, with the evidence of its figures
    folded below them."""
    titles = [section.markdown.partition("\n")[0] for section in sections]
    for part, section, title in zip(parts, sections, titles):
        text = section.markdown
        if titles.count(title) > 1:
            text = text.replace(title, f"{title}: {_called(part.dataset)}", 1)
        for label in section.figures:
            text = re.sub(
                FIGURE,
                lambda found: (
                    "\n".join([found[0], "", "::: evidence", f"- {_row(part.dataset)}", ":::"])
                    if found["label"] == label
                    else found[0]
                ),
                text,
                flags=re.M,
            )
        yield text


def _called(dataset: xr.Dataset) -> str:
    """What tells a dataset from others of the same tool: its networks, and the beginning of its
    digest."""
    names = ", ".join(attributes.short_names(dataset).values())
    campaign = f"{quoted(dataset.attrs['campaign'])} {dataset.attrs['campaign_hash'][:8]}"
    return f"{names} ({campaign})" if names else campaign


def _row(dataset: xr.Dataset) -> str:
    name = dataset.attrs["campaign"]
    row = f"[{quoted(name)}](#data:{anchor(_target(dataset))})"
    trials = f"[transcript](explorer.html#{quote(name, safe='')})"
    return f"{row}: {counted(dataset.sizes['trial'], 'result')}, each with its {trials}"


def _provenance(parts: Sequence[Part]) -> str:
    """Where each dataset is from, with the digests of its values and transcripts."""
    rows, seen = [], set()
    for part in parts:
        dataset, about = part.dataset, part.dataset.attrs
        if about["campaign_hash"] in seen:
            continue
        seen.add(about["campaign_hash"])
        failed = int((dataset.status != "ok").sum())
        files = len(set(dataset.file.values.tolist()))
        what = (
            counted(files, "file")
            if own_methods.is_import(dataset)
            else counted(dataset.sizes["trial"], "trial")
        )
        rows.append(
            (
                f"[{quoted(about['campaign'])}]{{#data:{anchor(_target(dataset))}}}",
                quoted(str(dataset.testbed.values[0])),
                str(dataset.evidence.values[0]),
                what,
                f"{failed}" if failed else "none",
                _span(dataset),
                _first(about.get("transcripts_sha256")),
            )
        )
    columns = (
        "Campaign",
        "Testbed",
        "Evidence",
        "Made of",
        "Without result",
        "Run",
        "Transcripts",
    )
    caption = "The data, with the beginnings of the SHA-256 of their transcripts. `falloff evidence verify FOLDER` recomputes them."
    table = Table("campaigns", columns, "llllrll", rows, caption)
    return f"# Appendix: provenance {{.unnumbered}}\n\n::: dense\n\n{table.markdown}\n\n:::"


def _target(dataset: xr.Dataset) -> str:
    return f"{dataset.attrs['campaign']}-{dataset.attrs['campaign_hash'][:8]}"


def _first(sha256: str | None) -> str:
    return f"`{sha256[:DIGITS]}`{{.digest}}" if sha256 else UNKNOWN


def moments(dataset: xr.Dataset) -> list[str]:
    """When the runs of a dataset began, as far as that is known, in order."""
    known = [
        as_written(each["moment"])
        for session in attributes.sessions(dataset)
        for each in session.get("imported", [])
        if each.get("moment")
    ]
    known += filter(None, (dataset.attrs["started"], dataset.attrs["ended"]))
    return sorted(known)


def _span(dataset: xr.Dataset) -> str:
    found = [moment[:10] for moment in moments(dataset)]
    return " to ".join(dict.fromkeys(found[:1] + found[-1:])) or UNKNOWN


def _ended(parts: Sequence[Part]):
    """The moment of the last run that is known, else 1970: the PDF's only date."""
    from datetime import UTC, datetime

    known = [moment for part in parts for moment in moments(part.dataset)]
    last = datetime.fromisoformat(max(known)) if known else datetime.fromisoformat(UNDATED)
    return last if last.tzinfo else last.replace(tzinfo=UTC)


def _front(parts: Sequence[Part], facts: ReportFacts) -> dict[str, str]:
    """The title matter."""
    known = sorted(moment for part in parts for moment in moments(part.dataset))
    dates = list(dict.fromkeys([day(known[0][:10]), day(known[-1][:10])])) if known else []
    if len(dates) == 2 and known[0][:7] == known[-1][:7]:  # 14 to 15 November 2023
        dates[0] = dates[0].partition(" ")[0]
    date = facts.date or (f"Runs of {' to '.join(dates)}" if dates else "")
    authors = ", ".join(facts.authors)
    front = {
        "title": (facts.title or TITLE).replace("'", "\u2019"),
        "author": f"{authors} ({facts.affiliation})"
        if authors and facts.affiliation
        else authors or facts.affiliation,
        "lang": "en",
        "campaign": "",
        "figurewidth": "78%",
        "date": date,
        "link-citations": "true",
    }
    return {name: value for name, value in front.items() if value}


def _as_pdf(folder: Path, figure: Path, dated: int) -> bytes:
    """A figure as PDF of its own size."""
    page = f'#set page(width: auto, height: auto, margin: 0pt)\n#image("figures/{figure.name}")'
    return typst.compile(page.encode(), root=str(folder), ignore_system_fonts=True, timestamp=dated)


def _tables(text: str) -> dict[str, str]:
    """Every table of the text as LaTeX, by label."""
    found = {
        label or f"table-{n}": (body, caption)
        for n, (body, caption, label) in enumerate(_TABLE.findall(text), 1)
    }
    split = "FALLOFFNEXTTABLE"
    whole = f"\n\n{split}\n\n".join(
        f"{body}\n\nTable: {caption}" for body, caption in found.values()
    )
    if not found:
        return {}
    latex = pypandoc.convert_text(
        _standard(whole), "latex", "markdown", extra_args=["--columns=10000"]
    )
    return dict(zip(found, (part.strip() + "\n" for part in latex.split(split))))


def _cited(text: str) -> str:
    """The entries of the bibliography that the text cites, as BibTeX."""
    keys = set(
        re.findall(r"@([a-z][\w-]*)", " ".join(re.findall(r"\[[^\]\n]*@[^\]\n]*\]|@[a-z]+", text)))
    )
    entries = re.findall(r"^@\w+\{([\w-]+),.*$", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.M)
    lines = BIBLIOGRAPHY.read_text(encoding="utf-8").splitlines()
    by_key = {key: line for key in entries for line in lines if re.match(rf"@\w+\{{{key},", line)}
    return "\n".join(by_key[key] for key in entries if key in keys) + "\n"


def _source(text: str, front: Mapping[str, Any]) -> str:
    """The report as Markdown for any pandoc: without what only the project's templates know."""
    text = re.sub(
        r"^::: (?:evidence|code|beside|floating)\n.*?^:::$\n?", "", text, flags=re.M | re.S
    )
    text = re.sub(r"^:{3,}.*$\n?", "", text, flags=re.M)
    text = text.replace(
        "# References {.unnumbered}", "# References {.unnumbered}\n\n::: {#refs}\n:::"
    )
    labels = [f"fig:{one}" for one in re.findall(r"\{#fig:([\w-]+)", text)]
    tables = [f"tbl:{one}" for one in re.findall(r"\{#tbl:([\w-]+)", text)]
    names = {f"#{one}": f"Figure {n}" for n, one in enumerate(labels, 1)}
    names |= {f"#{one}": f"Table {n}" for n, one in enumerate(tables, 1)}
    text = re.sub(r"\[\]\((#[\w:-]+)\)", lambda found: names.get(found[1], "above"), text)
    text = re.sub(r" \{#tbl:[^}\n]*\}$", "", text, flags=re.M)
    text = re.sub(
        r"^(!\[.*\]\(figures/\w+\.)svg\)\{#(fig:[\w-]+).*\}$",
        r"\1pdf){#\2 width=80%}",
        text,
        flags=re.M,
    )
    head = {**front, "bibliography": "references.bib"}
    for name in ("campaign", "figurewidth"):
        head.pop(name, None)
    lines = [f"{name}: {_yaml(value)}" for name, value in head.items()]
    body = "\n".join(["---", *lines, "---", "", re.sub(r"\n{3,}", "\n\n", _standard(text)), ""])
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    first = f"<!-- Made by Falloff. As long as this is unchanged, the next report replaces it: {digest} -->\n"
    return first + body


def _yaml(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _standard(text: str) -> str:
    """Markdown whose quoted text is escaped."""
    return as_markdown(text)


def _put(folder: Path, out: Path, source: str) -> list[str]:
    """Put what was made into `out`; a source that its user has changed stays, with the new one
    beside it."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("figures", "tables"):
        shutil.rmtree(out / name, ignore_errors=True)
        shutil.copytree(folder / name, out / name)
    for file in sorted(folder.iterdir()):
        if file.is_file():
            write_whole(out / file.name, file.read_bytes())
    kept = out / SOURCE
    if not kept.exists() or _is_generated(kept.read_text(encoding="utf-8")):
        write_whole(kept, source)
        return []
    write_whole(out / "report-new.md", source)
    return [f"{kept} was changed by you and stays; the new text is {out / 'report-new.md'}"]


def _is_generated(text: str) -> bool:
    found = _GENERATED.match(text)
    return bool(found) and hashlib.sha256(text[found.end() :].encode()).hexdigest()[:16] == found[1]
