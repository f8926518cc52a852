"""One Markdown text becomes a self-contained HTML file and a PDF; the same text gives the same bytes."""

from pathlib import Path

import pypandoc
import typst

from analysis.paths import BIBLIOGRAPHY

TEMPLATES = Path(__file__).parent / "templates"
READ = "markdown-auto_identifiers+link_attributes+table_attributes"
COMMON = (
    "--standalone",
    f"--lua-filter={TEMPLATES / 'crossref.lua'}",
    "--columns=10000",
    "--citeproc",
    f"--bibliography={BIBLIOGRAPHY}",
    "--fail-if-warnings",
)
HTML = (
    "--mathml",
    "--number-sections",
    "--toc",
    "--toc-depth=1",
    "--embed-resources",
    "--syntax-highlighting=none",
    f"--css={TEMPLATES / 'report.css'}",
    f"--include-after-body={TEMPLATES / 'page.html'}",
)


def to_html(markdown: str, folder: Path) -> str:
    """The whole page: mathematics as MathML, style sheet and figures (relative to `folder`) embedded."""
    return pypandoc.convert_text(
        markdown, "html5", READ, extra_args=[*COMMON, *HTML], cworkdir=str(folder)
    )


def to_pdf(markdown: str, folder: Path, timestamp: int) -> bytes:
    """The document as PDF; figures are relative to `folder`, `timestamp` [s since 1970] is its only date."""
    template = f"--template={TEMPLATES / 'report.typ.template'}"
    source = pypandoc.convert_text(
        markdown, "typst", READ, extra_args=[*COMMON, template], cworkdir=str(folder)
    )
    return typst.compile(
        source.encode(), root=str(folder), ignore_system_fonts=True, timestamp=timestamp
    )
