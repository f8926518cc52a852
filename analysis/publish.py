"""One Markdown text becomes a self-contained HTML file and a PDF; the same text gives the same bytes."""

from collections.abc import Mapping
from pathlib import Path

import pypandoc
import typst

from analysis.paths import BIBLIOGRAPHY

TEMPLATES = Path(__file__).parent / "templates"
# Names and reasons in the text may be anybody's: no HTML, no Typst and no metadata in it mean anything.
READ = (
    "markdown-auto_identifiers+link_attributes+table_attributes"
    "-raw_html-raw_tex-raw_attribute-native_divs-native_spans-yaml_metadata_block-pandoc_title_block"
)
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


def to_html(markdown: str, metadata: Mapping[str, str], folder: Path) -> str:
    """The whole page: mathematics as MathML, style sheet and figures (relative to `folder`) embedded."""
    arguments = [*COMMON, *_stated(metadata), *HTML]
    return pypandoc.convert_text(
        markdown, "html5", READ, extra_args=arguments, cworkdir=str(folder)
    )


def to_typst(markdown: str, metadata: Mapping[str, str], folder: Path) -> str:
    """The document as Typst's source, by the project's template."""
    template = f"--template={TEMPLATES / 'report.typ.template'}"
    arguments = [*COMMON, *_stated(metadata), template]
    return pypandoc.convert_text(
        markdown, "typst", READ, extra_args=arguments, cworkdir=str(folder)
    )


def _stated(metadata: Mapping[str, str]) -> list[str]:
    return [f"--metadata={name}:{value}" for name, value in metadata.items()]


def to_pdf(markdown: str, metadata: Mapping[str, str], folder: Path, timestamp: int) -> bytes:
    """The document as PDF; figures are relative to `folder`, `timestamp` [s since 1970] is its only date."""
    source = to_typst(markdown, metadata, folder)
    return typst.compile(
        source.encode(), root=str(folder), ignore_system_fonts=True, timestamp=timestamp
    )
