"""Recognise a user's file: which tool wrote it, or what else it is."""

import re
from functools import cache
from pathlib import Path

from runners.parsing import without_labels
from runners.records.record import Cut, FalloffError, Foreign, Mark, Unreadable, Unsupported
from runners.tools import all_tools

# Far beyond any tool's output; a wrong file or an endless device should not fill the memory.
_LARGEST = 256 * 2**20

# What is no tool's output: its mark, and what it is. The first are looked for before all tools'
# marks, the others after.
_NO_TEXT = (
    Mark(r"\A\s*\Z", "empty"),
    Mark(r"\A(?:\x1f\ufffd|\ufffd7zXZ|BZh\d|PK\x03\x04)", "compressed: unpack it first"),
    Mark(r"\0|\ufffd{3}", "binary data"),
)
_OTHERS = (
    Mark(r"^Payload: messages that all ranks sent", "a table of messages by size"),
    Mark(r"# of (?:problems? sizes|process grids)", "an HPL.dat input deck"),
    Mark(r"Optimized LINPACK Benchmark", "an output of Intel's LINPACK, not of HPL"),
    Mark(r"^HPCG-Benchmark|^Final Summary::HPCG", "an output of HPCG"),
    Mark(r"\A\s*(?:\[\s*)?\{\s*\"", "JSON of another program"),
    Mark(r"^Pinging \S+ ", "an output of Windows's ping, which is not read"),
    Mark(r"\A\s*<(?i:!DOCTYPE|html)", "a web page", weak=True),
    Mark(r"\A#!.*(?:\n#.*|\n)*?\n#SBATCH", "a batch script for Slurm", weak=True),
    Mark(r"^(?:slurmstepd|srun|sbatch)[\w.-]{0,99}: error: ", "output of a Slurm job", weak=True),
)

# Lines below its mark with which an output is not merely cut off.
_FEW_LINES = 10

# What one of our own runners reads is the output of another tool.
_OWNER = {"udp_sizes": "iperf3"}

# A launcher's, the shell's or the loader's own words about why a program did not run to its end.
_COMPLAINT = re.compile(
    r"^.*(?:(?:slurmstepd|srun|sbatch)[\w.-]{0,99}: error: "
    r"|^(?:mpirun|mpiexec|orterun|prterun)\b.*(?:unable|error|noticed|not find|detected)"
    r"|There are not enough slots|BAD TERMINATION|error while loading shared libraries"
    r"|command not found|No such file or directory|Segmentation fault|Bus error|Out of memory).*$",
    re.M,
)
_LONGEST_QUOTE = 150


def read(file: Path) -> str:
    """The text of a file, in UTF-8 or, as PowerShell redirects, UTF-16; bytes that are no text
    become U+FFFD.

    Raises FalloffError when it cannot be read or is too large to be a tool's output.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise FalloffError(f"cannot read {file}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise FalloffError(
            f"{file} is larger than {_LARGEST // 2**20} MiB: cut out the part with the results"
        )
    utf_16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if utf_16 else "utf-8-sig", errors="replace")


def tool_of(text: str) -> str:
    """The name of the tool that wrote a file; empty when none is recognised."""
    return _kind(text)[0]


def describe(text: str, tool: str) -> str:
    """What a file without results of `tool` is, in words; empty when it is unknown or the tool's
    own.
    """
    owner, what, _ = _kind(text)
    return f"it is {what}" if what and (not owner or owner != _OWNER.get(tool, tool)) else ""


def is_output_of(tool: str, text: str) -> bool:
    """Whether a file is an output of `tool`, even one without a result."""
    return _kind(text)[0] == _OWNER.get(tool, tool)


def refusal(tool: str, text: str, reason: Unreadable) -> Unreadable:
    """Why a file holds no result of `tool`: what it is, when that is something else, or its
    parser's reason.
    """
    if not text.strip():
        return Cut("it is empty")
    what = describe(text, tool)
    return Foreign(what) if what else reason


def absent(tool: str, text: str, what: str) -> Unreadable:
    """Why `tool`'s parser does not find where its output begins: there is too little of it, or the
    file is no such output.
    """
    if not text.strip():
        return Cut("it is empty")
    owner, _, rest = _kind(text)
    if owner != _OWNER.get(tool, tool):
        return Foreign(f"not {what}")
    if rest.count("\n") > _FEW_LINES:
        return Unsupported(f"{what}, written with another version or other options than are read")
    return Cut(f"too little is here of {what}: stopped or cut off")


def complaint(text: str) -> str:
    """The first line in which something says why a program did not run to its end, or empty."""
    line = _COMPLAINT.search(text)
    return line[0].strip()[:_LONGEST_QUOTE] if line else ""


def _kind(text: str) -> tuple[str, str, str]:
    """The tool whose output a text is, or none, what it is, and the text below its mark; all empty
    when it is unknown.
    """
    text = without_labels(text)
    for owner, mark in _marks():
        if match := re.search(mark.pattern, text, re.M):
            return owner, mark.what, text[match.end() :]
    return "", "", ""


@cache
def _marks() -> tuple[tuple[str, Mark], ...]:
    """All marks, with the tool's name or none, in the order in which they are looked for: a tool
    whose outputs contain those of another before that one, weak marks last."""
    of_tools = [
        (tool.name, mark)
        for tool in sorted(all_tools(), key=lambda tool: not tool.contains)
        for mark in tool.marks
    ]
    others = [("", mark) for mark in _OTHERS]
    marks = sorted([*of_tools, *others], key=lambda pair: pair[1].weak)
    return (*(("", mark) for mark in _NO_TEXT), *marks)
