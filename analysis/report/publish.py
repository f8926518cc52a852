"""Turn a Markdown text into a self-contained HTML file and a PDF, and into what its author goes on
writing with: Markdown for any pandoc, tables as LaTeX, figures as PDF. The same text gives the same
bytes."""

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pypandoc
import typst

from analysis.paths import BIBLIOGRAPHY
from analysis.quoting import as_markdown

TEMPLATES = Path(__file__).parent / "templates"
# Names and reasons in the text come from outside, so HTML, Typst and metadata in it are never
# interpreted.
READ = (
    "markdown-auto_identifiers+link_attributes+table_attributes"
    "-raw_html-raw_tex-raw_attribute-native_divs-native_spans-yaml_metadata_block-pandoc_title_block"
)
COMMON = (
    "--standalone",
    "--columns=10000",
    "--citeproc",
    "--lua-filter={}/crossref.lua",
    "--bibliography={}/references.bib",
    "--fail-if-warnings",
)
_TABLE = re.compile(r"((?:^\|.*\n)+)\n^Table: (.*?)(?: \{#tbl:([\w-]+)[^}\n]*\})?$", re.M)
# The first line of a source, with the digest of what follows it.
_GENERATED = (
    "<!-- Made by Falloff. As long as this is unchanged, the next report replaces it: {} -->\n"
)
HTML = (
    "--mathml",
    "--number-sections",
    "--toc",
    "--toc-depth=1",
    "--embed-resources",
    "--syntax-highlighting=none",
)


def to_html(markdown: str, metadata: Mapping[str, str], folder: Path) -> str:
    """The whole page, with mathematics as MathML; style sheet and figures (relative to `folder`)
    are embedded."""
    looks = "--css={}/report.css", "--include-after-body={}/page.html"
    return _converted(markdown, "html5", metadata, folder, (*HTML, *looks))


def to_typst(markdown: str, metadata: Mapping[str, str], folder: Path) -> str:
    """The document as Typst source, with the project's template."""
    return _converted(markdown, "typst", metadata, folder, ("--template={}/report.typ.template",))


def _converted(
    markdown: str, to: str, metadata: Mapping[str, str], folder: Path, options: tuple[str, ...]
) -> str:
    """A text in another format; {} in options is the folder with the templates."""
    # After a name that does not end in a letter, Pandoc would take an apostrophe for an opening
    # quotation mark.
    text = re.sub(r"(?<=[^\x00-\x7f])'(?=s\b)", "\u2019", markdown)
    stated = [f"--metadata={name}:{value}" for name, value in metadata.items()]
    with _templates() as templates:
        of_templates = [option.format(templates) for option in (*COMMON, *options)]
        return pypandoc.convert_text(
            text,
            to,
            READ,
            extra_args=[*of_templates, *stated],
            cworkdir=str(folder),
            verify_format=False,
        )


@contextmanager
def _templates() -> Iterator[Path]:
    """A folder with the templates and the bibliography under a plain path: in other paths pandoc
    decodes what follows a %."""
    with tempfile.TemporaryDirectory(prefix="falloff-") as plain:
        for file in (*TEMPLATES.iterdir(), BIBLIOGRAPHY):
            (Path(plain) / file.name).symlink_to(file)
        yield Path(plain)


def to_pdf(markdown: str, metadata: Mapping[str, str], folder: Path, timestamp: int) -> bytes:
    """The document as PDF. Figures are relative to `folder`; `timestamp` [s since 1970] is its only
    date."""
    return _compiled(to_typst(markdown, metadata, folder), folder, timestamp)


def figure_pdf(figure: Path, timestamp: int) -> bytes:
    """An SVG figure as PDF of its own size."""
    page = f'#set page(width: auto, height: auto, margin: 0pt)\n#image("{figure.name}")'
    return _compiled(page, figure.parent, timestamp)


def _compiled(source: str, folder: Path, timestamp: int) -> bytes:
    compiled: Any = typst.compile  # its stub takes only several files for bytes
    return compiled(
        source.encode(), root=str(folder), ignore_system_fonts=True, timestamp=timestamp
    )


def tables(markdown: str) -> dict[str, str]:
    """Every table of a Markdown text as LaTeX, by label."""
    return {
        label or f"table-{number}": pypandoc.convert_text(
            as_markdown(f"{body}\n\nTable: {caption}"),
            "latex",
            "markdown",
            extra_args=["--columns=10000"],
        )
        for number, (body, caption, label) in enumerate(_TABLE.findall(markdown), 1)
    }


def cited(markdown: str) -> str:
    """The entries of the bibliography that a text cites, as BibTeX."""
    keys = set(re.findall(r"@([a-z][\w-]*)", markdown))
    entries = re.finditer(r"^@\w+\{([\w-]+),.*$\n", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.M)
    return "".join(entry[0] for entry in entries if entry[1] in keys)


def to_source(markdown: str, metadata: Mapping[str, str]) -> str:
    """The document as Markdown for any pandoc, without what only the project's templates know. Its
    first line tells whether it is still as it was generated (`is_generated`)."""
    text = re.sub(
        r"^::: (?:evidence|code|beside|floating)\n.*?^:::$\n?", "", markdown, flags=re.M | re.S
    )
    text = re.sub(r"^:{3,}.*$\n?", "", text, flags=re.M)
    text = text.replace(
        "# References {.unnumbered}", "# References {.unnumbered}\n\n::: {#refs}\n:::"
    )
    names = {
        f"#{label}": f"{noun} {number}"
        for noun, kind in (("Figure", "fig"), ("Table", "tbl"))
        for number, label in enumerate(re.findall(rf"\{{#({kind}:[\w-]+)", text), 1)
    }
    text = re.sub(r"\[\]\((#[\w:-]+)\)", lambda link: names.get(link[1], "above"), text)
    text = re.sub(r" \{#tbl:[^}\n]*\}$", "", text, flags=re.M)
    figure = r"^(!\[.*\]\(figures/\w+\.)svg\)\{#(fig:[\w-]+).*\}$"
    text = re.sub(figure, r"\1pdf){#\2 width=80%}", text, flags=re.M)
    head = {**metadata, "bibliography": "references.bib"}
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    body = "\n".join(["---", *lines, "---", "", re.sub(r"\n{3,}", "\n\n", as_markdown(text)), ""])
    return _GENERATED.format(_digest(body)) + body


def is_generated(source: str) -> bool:
    """Whether nobody changed a text since `to_source` made it."""
    _, _, body = source.partition("\n")
    return source == _GENERATED.format(_digest(body)) + body


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
