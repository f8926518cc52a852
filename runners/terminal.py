"""Print text only: a terminal obeys control characters, and the printed text may come from
anyone."""

import re
from typing import IO, Any, Callable

# A whole sequence is removed; an unclosed one loses only its first character.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor, erasing
    # titles, clipboards, pictures
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]+[0-~]"  # alphabets
)
# All controls except tab and line end; characters that change the direction of writing; surrogates.
_UNPRINTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """A text without anything that a terminal or a page would obey instead of showing it."""
    if text.isascii() and text.isprintable():  # the usual case
        return text
    return _UNPRINTED.sub("", _SEQUENCE.sub("", text))


class PrintableStream:
    """A stream that writes only text, each as returned by `shown`; everything else is the stream's
    own."""

    def __init__(self, stream: IO[str], shown: Callable[[str], str] = printable) -> None:
        self._stream, self._shown = stream, shown

    def write(self, text: str) -> int:
        """Write a text as it is shown."""
        self._stream.write(self._shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
