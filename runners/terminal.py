"""What is printed: text alone. A terminal obeys control characters, and what is printed may be anybody's words."""

import re
from typing import IO, Any, Callable

CLEAR = "\r\x1b[K"  # ECMA-48: back to the first column, erase to the end of the line

# A sequence goes as a whole; what of one is not closed loses the letter that begins it.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\)"  # titles, clipboards, pictures
    r"|\x1b[ -/]+[0-~]"  # alphabets
)
# All controls but tab and the end of a line; what turns the direction of writing around; halves of a letter.
_UNPRINTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """A text without what a terminal or a page would obey instead of showing it."""
    if text.isascii() and text.isprintable():  # most are
        return text
    return _UNPRINTED.sub("", _SEQUENCE.sub("", text))


class Printed:
    """A stream to which nothing but text is written, each as `shown` gives it; all else is as the stream's own."""

    def __init__(self, stream: IO[str], shown: Callable[[str], str] = printable) -> None:
        self._stream, self._shown = stream, shown

    def write(self, text: str) -> int:
        """Write a text as it is shown."""
        self._stream.write(self._shown(text))
        return len(text)

    def clear(self) -> None:
        """Empty the line that the cursor is in."""
        self._stream.write(CLEAR)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
