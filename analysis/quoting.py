"""Text that somebody else wrote, such as a network's name: shown as it was written, wherever it is put.

Markdown, Typst, HTML and a figure each take some letters for commands. `quoted` puts letters of Unicode's private area
in their place, which none of them knows: so no sentence, table or figure has to think of what is put into it. They are
given back where a text goes to its reader, and nowhere before: by `as_written` for a figure, the terminal, data and the
explorer, by `as_markdown` for Jupyter, and for the report by templates/crossref.lua, when its Markdown is understood.
"""

import re
import string
from typing import Any

from runners.terminal import printable

MOST = 1000  # characters that are shown of a text
_FIRST = 0xE000  # of the private area; a letter's stand-in is so many places behind it
_STAND_INS = {ord(letter): chr(_FIRST + ord(letter)) for letter in string.punctuation}
_LETTERS = {ord(stand_in): chr(letter) for letter, stand_in in _STAND_INS.items()}
STAND_INS = "".join(_STAND_INS.values())
_ESCAPED = {stand_in: f"\\{letter}" for stand_in, letter in _LETTERS.items()}


def quoted(text: object) -> str:
    """A text from outside, on one line, without a letter that means something to whatever it is put into."""
    line = " ".join(printable(" ".join(str(text).split())).split())
    line = line if len(line) <= MOST else f"{line[:MOST]} …"
    return line.translate(_STAND_INS)


def as_written(text: str) -> str:
    """A text in which every quoted one stands as it was written; nothing in it is obeyed by a terminal."""
    return printable(text.translate(_LETTERS))


def as_markdown(text: str) -> str:
    """Markdown in which every quoted text is escaped instead."""
    return text.translate(_ESCAPED)


def as_data(value: Any) -> Any:
    """Lists and tables of texts and numbers, with every text in them `as_written`."""
    if isinstance(value, str):
        return as_written(value)
    if isinstance(value, dict):
        return {name: as_data(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(one) for one in value]
    return value


def anchor(name: str) -> str:
    """A name as what a link leads to: its letters, digits and _, all else as -."""
    return re.sub(r"[^\w-]", "-", name)
