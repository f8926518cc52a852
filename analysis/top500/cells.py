"""The tables in a list file, told by its content: an .xls may hold HTML, XML or TSV as well as a workbook."""

import csv
import io
import re
import warnings
from collections.abc import Iterator

from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
from python_calamine import CalamineError, CalamineWorkbook

from runners.record import FalloffError

Rows = list[list[str]]

OLE, ZIP = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x03\x04"  # how XLS and XLSX begin
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
SEPARATORS = "\t,;:"


def tables(content: bytes) -> Iterator[Rows]:
    """Every table that the content may be read as, in rows of text: each sheet, each table of a page, or the text
    with each separator. Which is the list, its headings tell.

    Raises FalloffError when it is neither a workbook nor text.
    """
    if content.startswith((OLE, ZIP)):
        yield from _sheets(content)
        return
    text = _text(content)
    yield from _markup(text) if text.lstrip().startswith("<") else _separated(text)


def _sheets(content: bytes) -> Iterator[Rows]:
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        for name in workbook.sheet_names:
            yield [[_cell(value) for value in row] for row in workbook.get_sheet_by_name(name).to_python()]
    except CalamineError as error:
        raise FalloffError(f"it is no readable Excel workbook: {error}") from None


def _cell(value) -> str:
    """A cell as text from which a number is read back to its last digit."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value).strip()


def _text(content: bytes) -> str:
    marked = [encoding for mark, encoding in BYTE_ORDER_MARKS.items() if content.startswith(mark)]
    half = content[:2].find(b"\0")  # UTF-16 without its mark: one byte of the first letter is 0
    unmarked = ["utf-16-be" if half == 0 else "utf-16-le"] if half >= 0 else ["utf-8", "cp1252", "latin-1"]
    for encoding in marked or unmarked:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise FalloffError("it is neither text nor an Excel workbook")


def _separated(text: str) -> Iterator[Rows]:
    for separator in SEPARATORS:
        try:
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            yield [[cell.strip() for cell in row] for row in lines]
        except csv.Error:  # a field that never ends: it is not this separator
            continue


def _markup(text: str) -> Iterator[Rows]:
    """Tables of an HTML page, or of Excel's XML of 2003, in which `Index` says where a cell after a gap stands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        page = BeautifulSoup(text, "html.parser")
    for table in page.find_all(re.compile(r"^(\w+:)?table$")):
        rows = []
        for row in table.find_all(re.compile(r"^(tr|(\w+:)?row)$")):
            cells: list[str] = []
            for cell in row.find_all(re.compile(r"^(td|th|(\w+:)?cell)$")):
                gap = int(cell.get("ss:index", len(cells) + 1)) - len(cells) - 1
                cells += [""] * gap + [cell.get_text(" ", strip=True)]
            rows.append(cells)
        yield rows
