"""The digests of all that a campaign's folder holds, so that a later change of it can be named.

SHA256SUMS   a line each: the SHA-256 of a file or of a packed transcript, then its name; and, for every line of
             the journal, so many of its digest's first digits as it takes to name the one that was changed
"""

import hashlib
import re
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Tuple

from runners import archive
from runners.journal import write_whole
from runners.record import FalloffError

NAME = "SHA256SUMS"
ALGORITHM = "SHA-256"
JOURNAL = "journal.jsonl"
# What the analysis makes of the transcripts: it is compared with what it makes of them now, value by value.
DATASET = "dataset.jsonl.xz"
LINE_DIGITS = 8

_PACKED = f"{archive.NAME}:"
# What changes without the campaign: these two, what is being written, and what jobs of Slurm's leave and print.
_OTHERS = re.compile(rf"({NAME}|{re.escape(DATASET)}|jobs\.json|code/.*|job-[^/]*\.out|.*\.part)$")


def write(folder: Path) -> None:
    """Record what a folder holds now, in place of an earlier record."""
    lines = [f"{value}  {name}" for name, value in sorted(digests(folder).items(), key=_by_number)]
    write_whole(folder / NAME, "\n".join(lines) + "\n")


def forget(folder: Path) -> None:
    """Remove the record: from now on the folder is to change."""
    if (folder / NAME).exists():
        (folder / NAME).unlink()


def read(folder: Path) -> Dict[str, str]:
    """The recorded digest of each name; empty when nothing was recorded. Raises FalloffError when it is damaged."""
    file = folder / NAME
    recorded = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        value, _, name = line.partition("  ")
        if not name:
            raise FalloffError(f"{file} is damaged ({line[:40]!r} is no digest and name); restore it")
        recorded[name] = value
    return recorded


def digests(folder: Path) -> Dict[str, str]:
    """The digest of each file, packed transcript and line of the journal; raises FalloffError as `archive.read`."""
    found = dict(_files(folder))
    if (folder / archive.NAME).exists():
        found.update((_PACKED + name, digest(text)) for name, text in archive.read(folder / archive.NAME))
    return found


def together(texts: Mapping[str, bytes]) -> str:
    """One SHA-256 for all transcripts of a campaign: that of a line for each, in order, with its own and its id."""
    return digest("".join(f"{digest(text)}  {trial_id}\n" for trial_id, text in sorted(texts.items())).encode())


def digest(content: bytes) -> str:
    """The SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def differences(folder: Path) -> List[str]:
    """What is not as it was recorded, a line each: changed, lost, or added since; raises FalloffError as `read`."""
    recorded = read(folder)
    if not recorded:
        return []
    # A damaged archive holds nothing that could be compared: the file itself differs.
    try:
        found = digests(folder)
    except FalloffError as error:
        found, recorded = dict(_files(folder)), {k: v for k, v in recorded.items() if not k.startswith(_PACKED)}
        told = [str(error)]
    else:
        told = []
    for name in sorted({*recorded, *found}, key=lambda name: _by_number((name, ""))):
        if name not in found:
            told.append(f"{_said(name)} was recorded and is lost")
        elif name not in recorded:
            told.append(f"{_said(name)} was added since")
        elif found[name] != recorded[name]:
            told.append(
                f"{_said(name)} was changed: SHA-256 {recorded[name][:16]} was recorded, it is {found[name][:16]}"
            )
    return told


def _files(folder: Path) -> Iterator[Tuple[str, str]]:
    for file in folder.rglob("*"):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not _OTHERS.match(name):
            content = file.read_bytes()
            yield name, digest(content)
            if name == JOURNAL:
                for number, line in enumerate(content.splitlines(), 1):
                    yield f"{name}:{number}", digest(line)[:LINE_DIGITS]


def _said(name: str) -> str:
    """A name as a reader looks for it: the transcript in the archive, the line of the journal."""
    if name.startswith(_PACKED):
        return f"transcript {name[len(_PACKED) :]} in {archive.NAME}"
    if name.startswith(f"{JOURNAL}:"):
        return f"line {name[len(JOURNAL) + 1 :]} of {JOURNAL}"
    return name


def _by_number(entry: Tuple[str, str]) -> Tuple[str, int, str]:
    """Names in order, the lines of the journal by their number."""
    name, _, part = entry[0].partition(":")
    return name, int(part) if part.isdigit() else 0, part
