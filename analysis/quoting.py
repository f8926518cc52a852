"""Show text from outside, such as a network's name, exactly as it was written, in whatever format.

Markdown, Typst, HTML and figures each treat some letters as commands. `quoted` replaces these
letters with letters of Unicode's private area, which have no meaning in any format. So no sentence,
table or figure has to escape its text. The original letters come back only where a text reaches its
reader: through `as_written` in figures, the terminal, data and the explorer, through `as_markdown`
in Jupyter, and through templates/crossref.lua in the report, once its Markdown is parsed.
"""

import re
import string
from typing import Any

from runners.terminal import printable

MOST = 1000  # characters of a text that are shown
# Start of the private area; a letter's stand-in is at this code plus the letter's own.
_FIRST = 0xE000
_STAND_INS = {ord(letter): chr(_FIRST + ord(letter)) for letter in string.punctuation}
_LETTERS = {ord(stand_in): chr(letter) for letter, stand_in in _STAND_INS.items()}
_ESCAPED = {stand_in: f"\\{letter}" for stand_in, letter in _LETTERS.items()}
# What no Markdown takes for a command: these letters anywhere, and those behind a digit or between
# letters.
_HARMLESS = re.compile(
    rf"[{''.join(_STAND_INS[ord(letter)] for letter in '/(),;%')}]"
    rf"|(?<=\d)[{_STAND_INS[ord('.')]}](?=\w)|(?<=\w){_STAND_INS[ord('-')]}(?=\w)"
)
_CODE = re.compile(rf"`[\w {''.join(_STAND_INS[ord(letter)] for letter in '_-.+=/,')}]+`")


def quoted(text: object) -> str:
    """A text from outside, on one line, without any letter that has a special meaning in the
    formats here."""
    line = " ".join(printable(" ".join(str(text).split())).split())
    line = line if len(line) <= MOST else f"{line[:MOST]} …"
    return line.translate(_STAND_INS)


def as_written(text: str) -> str:
    """A text with each quoted part in its original letters; it contains nothing that a terminal
    would obey."""
    return printable(text.translate(_LETTERS))


def as_markdown(text: str) -> str:
    """Markdown in which quoted parts are escaped instead. In code, where a backslash would be
    visible, harmless letters stay unescaped, as those do that mean nothing to any Markdown."""
    for harmless in (_CODE, _HARMLESS):
        text = harmless.sub(lambda match: match[0].translate(_LETTERS), text)
    return text.translate(_ESCAPED)


def as_data(value: Any) -> Any:
    """Lists and tables of text and numbers, with every text `as_written`."""
    if isinstance(value, str):
        return as_written(value)
    if isinstance(value, dict):
        return {name: as_data(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(item) for item in value]
    return value


def anchor(name: str) -> str:
    """A name as the target of a link: letters, digits and _ stay, everything else becomes -."""
    return re.sub(r"[^\w-]", "-", name)
