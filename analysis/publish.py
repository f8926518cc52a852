"""Turn a Markdown text into a self-contained HTML file and a PDF. The same text gives the same
bytes."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pypandoc
import typst

from analysis.paths import BIBLIOGRAPHY

TEMPLATES = Path(__file__).parent / "templates"
# Names and reasons in the text come from outside, so HTML, Typst and metadata in it are never interpreted.
READ = (
    "markdown-auto_identifiers+link_attributes+table_attributes"
    "-raw_html-raw_tex-raw_attribute-native_divs-native_spans-yaml_metadata_block-pandoc_title_block"
)
COMMON = ("--standalone", "--columns=10000", "--citeproc", "--fail-if-warnings")
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
    with _templates() as templates:
        looks = (
            f"--css={templates / 'report.css'}",
            f"--include-after-body={templates / 'page.html'}",
        )
        return _converted(markdown, "html5", metadata, folder, templates, (*HTML, *looks))


def to_typst(markdown: str, metadata: Mapping[str, str], folder: Path) -> str:
    """The document as Typst source, with the project's template."""
    with _templates() as templates:
        template = f"--template={templates / 'report.typ.template'}"
        return _converted(markdown, "typst", metadata, folder, templates, (template,))


def _converted(
    markdown: str,
    to: str,
    metadata: Mapping[str, str],
    folder: Path,
    templates: Path,
    options: tuple[str, ...],
) -> str:
    stated = [f"--metadata={name}:{value}" for name, value in metadata.items()]
    read = (
        f"--lua-filter={templates / 'crossref.lua'}",
        f"--bibliography={templates / 'references.bib'}",
    )
    arguments = [*COMMON, *read, *stated, *options]
    # After a name that does not end in a letter, Pandoc would take an apostrophe for an opening quotation mark.
    text = re.sub(r"(?<=[^\x00-\x7f])'(?=s\b)", "\u2019", markdown)
    return pypandoc.convert_text(
        text, to, READ, extra_args=arguments, cworkdir=str(folder), verify_format=False
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
    source = to_typst(markdown, metadata, folder)
    return typst.compile(
        source.encode(), root=str(folder), ignore_system_fonts=True, timestamp=timestamp
    )
