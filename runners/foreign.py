"""Files that somebody hands us: read them, and say what they are when they are not what was asked for."""

import re
from pathlib import Path
from typing import Tuple

from runners.record import FalloffError

# Far beyond any tool's output; a wrong file or an endless device should not fill the memory.
_LARGEST = 256 * 2**20

# Tool whose output it is (or none), its mark, what to say. The more specific comes first.
_KINDS = (
    ("", re.compile(r"\A\s*\Z"), "it is empty"),
    (
        "",
        re.compile(r"\A(?:\x1f\ufffd|\ufffd7zXZ|BZh\d|PK\x03\x04)"),
        "it is compressed: unpack it first",
    ),
    ("", re.compile(r"\0|\ufffd{3}"), "it is binary data"),
    ("hpcc", re.compile(r"HPC Challenge Benchmark version"), "it is an output of HPCC"),
    ("hpl", re.compile(r"HPLinpack \d"), "it is an output of HPL"),
    (
        "payload",
        re.compile(r"^Payload: messages that all ranks sent", re.M),
        "it is a table of messages by size",
    ),
    ("", re.compile(r"# of (?:problems? sizes|process grids)"), "it is an HPL.dat input deck"),
    (
        "",
        re.compile(r"Optimized LINPACK Benchmark"),
        "it is an output of Intel's LINPACK, not of HPL",
    ),
    ("", re.compile(r"^HPCG-Benchmark|^Final Summary::HPCG", re.M), "it is an output of HPCG"),
    ("iperf3", re.compile(r"\A\s*\{\s*\"start\""), "it is an iperf3 JSON output"),
    ("", re.compile(r"\A\s*\{\s*\""), "it is JSON of another program"),
    (
        "netperf",
        re.compile(r"^\s*(?:MIGRATED )?(?:TCP|UDP|SCTP|OMNI) .*TEST (?:from|to) ", re.M),
        "it is an output of netperf",
    ),
    (
        "frame_limit",
        re.compile(r"^frame_limit: .* requests a batch", re.M),
        "it is a search for the largest frame",
    ),
    ("fanout", re.compile(r"^fanout: \d+ flows, ", re.M), "it is a table of iperf3 flows"),
    (
        "",
        re.compile(r"^\[ *(?:\d+|SUM)\] .*bits/sec", re.M),
        "it is an iperf3 output that is not JSON",
    ),
    ("ping", re.compile(r"^PING \S+ ", re.M), "it is an output of ping"),
    ("dgemm", re.compile(r"^dgemm: n = ", re.M), "it is an output of dgemm"),
    (
        "token_exchange",
        re.compile(r"^token: \d+ pairs, ", re.M),
        "it is a table of token exchanges",
    ),
    ("osu", re.compile(r"# OSU \S+ .{1,80} Test"), "it is an output of the OSU Micro-Benchmarks"),
    (
        "imb",
        re.compile(r"Intel ?\(R\) MPI Benchmark"),
        "it is an output of the Intel MPI Benchmarks",
    ),
    ("", re.compile(r"\A\s*<(?:!DOCTYPE|html)", re.I), "it is a web page"),
    ("", re.compile(r"\A#!.*(?:\n#.*|\n)*?\n#SBATCH"), "it is a batch script for Slurm"),
    (
        "",
        re.compile(r"(?m)^(?:slurmstepd|srun|sbatch)[\w.-]{0,99}: error: "),
        "it is output of a Slurm job",
    ),
)

# A launcher's, the shell's or the loader's own words about why a program did not run to its end.
_COMPLAINT = re.compile(
    r"^.*(?:(?:slurmstepd|srun|sbatch)[\w.-]{0,99}: error: "
    r"|^(?:mpirun|mpiexec|orterun|prterun)\b.*(?:unable|error|noticed|not find|detected)"
    r"|There are not enough slots|BAD TERMINATION|error while loading shared libraries"
    r"|command not found|No such file or directory|Segmentation fault|Bus error|Out of memory).*$",
    re.M,
)
_LONGEST_QUOTE = 150

# What `mpirun --tag-output` (with or without the time) and `srun --label` put before a line.
_LABEL = re.compile(r"^(?:[^\n]{0,40}\[\d+,\d+\]<std\w+>:|\d{1,6}: )", re.M)


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
    return "" if owner == tool else what


def is_output_of(tool: str, text: str) -> bool:
    """Whether a file is an output of `tool`, even one without a result."""
    return _kind(text)[0] == tool


def without_labels(text: str) -> str:
    """The text without what launchers put before each line to name the process that printed it."""
    return _LABEL.sub("", text)


def complaint(text: str) -> str:
    """The first line in which something says why a program did not run to its end, or empty."""
    found = _COMPLAINT.search(text)
    return found[0].strip()[:_LONGEST_QUOTE] if found else ""


def _kind(text: str) -> Tuple[str, str]:
    """The tool whose output a text is, or none, and what it is in words; both empty when it is unknown."""
    return next(((owner, what) for owner, mark, what in _KINDS if mark.search(text)), ("", ""))
