"""Files that somebody hands us: read them, and say what they are when they are not what was asked for."""

import re
from pathlib import Path
from typing import Tuple

from runners.record import Cut, FalloffError, Foreign, Unreadable

# Far beyond any tool's output; a wrong file or an endless device should not fill the memory.
_LARGEST = 256 * 2**20

# Tool whose output it is (or none), its mark, what it is. The more specific comes first.
_KINDS = (
    ("", r"\A\s*\Z", "empty"),
    ("", r"\A(?:\x1f\ufffd|\ufffd7zXZ|BZh\d|PK\x03\x04)", "compressed: unpack it first"),
    ("", r"\0|\ufffd{3}", "binary data"),
    ("hpcc", r"HPC Challenge Benchmark version|^End of Summary section\.", "an output of HPCC"),
    ("hpl", r"HPLinpack \d", "an output of HPL"),
    ("hpl", r"HPL MxP Result", "an output of HPL-MxP"),
    ("", r"^Payload: messages that all ranks sent", "a table of messages by size"),
    ("", r"# of (?:problems? sizes|process grids)", "an HPL.dat input deck"),
    ("", r"Optimized LINPACK Benchmark", "an output of Intel's LINPACK, not of HPL"),
    ("", r"^HPCG-Benchmark|^Final Summary::HPCG", "an output of HPCG"),
    ("iperf3", r"^(?:\^C)?\{\s*\"start\"", "an iperf3 JSON output"),
    ("iperf3", r"\A\s*\{\s*\"(?:error|event)\"", "an iperf3 JSON output"),
    ("", r"\A\s*\{\s*\"", "JSON of another program"),
    (
        "netperf",
        r"^[ \t]*(?:MIGRATED )?(?:TCP|UDP|SCTP|OMNI) .*TEST (?:from|to) ",
        "an output of netperf",
    ),
    ("frame_limit", r"^frame_limit: .* requests a batch", "a search for the largest frame"),
    ("fanout", r"^fanout: \d+ flows, ", "a table of iperf3 flows"),
    (
        "iperf3",
        r"^iperf3: (?:error|interrupt)|^Connecting to host |^Server listening on \d",
        "a text output of iperf3",
    ),
    ("iperf3", r"^\[ ID\](?:\[Role\])? Interval {11}\S", "a text output of iperf3"),
    (
        "iperf2",
        r"^\[ ID\] Interval(?: {5,7}| {12})\S|^Server listening on (?:TCP|UDP) port",
        "an output of iperf 2",
    ),
    ("iperf2", r"^\d{14},[\d.]+,\d+,[\d.]+,\d+,-?\d+,", "a CSV output of iperf 2"),
    ("ping", r"^PING \S+ ", "an output of ping"),
    ("", r"^Pinging \S+ ", "an output of Windows's ping, which is not read"),
    ("dgemm", r"^dgemm: n = ", "an output of dgemm"),
    ("token_exchange", r"^token: \d+ pairs, ", "a table of token exchanges"),
    ("osu", r"# OSU \S+ .{1,80} Test", "an output of the OSU Micro-Benchmarks"),
    ("imb", r"Intel ?\(R\) MPI Benchmark", "an output of the Intel MPI Benchmarks"),
    (
        "hpl",
        r"^(?:\S{1,80}: ?)?[ \t]*(?:\S{1,20}[ \t]+)?W[RC][A-Z]?\d\S*(?: [A-Z]\S*)?(?:[ \t]+\d+){4,5}[ \t]+\d+\.\d+[ \t]+"
        r"\d\.\d+e",
        "rows of HPL's table",
    ),
    ("", r"\A\s*<(?i:!DOCTYPE|html)", "a web page"),
    ("", r"\A#!.*(?:\n#.*|\n)*?\n#SBATCH", "a batch script for Slurm"),
    ("", r"^(?:slurmstepd|srun|sbatch)[\w.-]{0,99}: error: ", "output of a Slurm job"),
)

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
    """The text of a file, in UTF-8 or, as PowerShell redirects, UTF-16; bytes that are no text become U+FFFD.

    Raises FalloffError when it cannot be read or is too large to be a tool's output.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise FalloffError(f"cannot read {file}: {error.strerror}") from None
    if len(data) > _LARGEST:
        limit = f"{_LARGEST // 2**20} MiB"
        raise FalloffError(f"{file} is larger than {limit}: cut out the part with the results")
    utf_16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if utf_16 else "utf-8-sig", errors="replace")


def describe(text: str, tool: str) -> str:
    """What a file without results of `tool` is, in words; empty when it is unknown or the tool's own."""
    owner, what = _kind(text)
    return f"it is {what}" if what and owner != _OWNER.get(tool, tool) else ""


def is_output_of(tool: str, text: str) -> bool:
    """Whether a file is an output of `tool`, even one without a result."""
    return _kind(text)[0] == _OWNER.get(tool, tool)


def refusal(tool: str, text: str, reason: Unreadable) -> Unreadable:
    """Why a file holds no result of `tool`: what it is, when that is something else, or its parser's reason."""
    if not text.strip():
        return Cut("it is empty")
    what = describe(text, tool)
    return Foreign(what) if what else reason


def absent(tool: str, text: str, what: str) -> Unreadable:
    """Why `tool`'s parser does not find where its output begins: there is too little of it, or the file is no such output."""
    if not text.strip():
        return Cut("it is empty")
    if is_output_of(tool, text):
        return Cut(f"too little is here of {what}: stopped or cut off")
    return Foreign(f"not {what}")


def complaint(text: str) -> str:
    """The first line in which something says why a program did not run to its end, or empty."""
    found = _COMPLAINT.search(text)
    return found[0].strip()[:_LONGEST_QUOTE] if found else ""


def _kind(text: str) -> Tuple[str, str]:
    """The tool whose output a text is, or none, and what it is; both empty when it is unknown."""
    for owner, mark, what in _KINDS:
        if re.search(mark, text, re.M):
            return owner, what
    return "", ""
