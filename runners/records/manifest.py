"""Pack a campaign's folder into few files, and record the digests of all of its content.

SHA256SUMS   a line each: the SHA-256 of a file or of a packed transcript, then its name; and, for
             every line of the journal, the first digits of its digest, enough to identify a
             changed line
"""

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runners.records import archive
from runners.records.journal import write_whole
from runners.records.record import FalloffError

NAME = "SHA256SUMS"
ALGORITHM = "SHA-256"
JOURNAL = "journal.jsonl"
# The analysis' stored result is compared with a new analysis of the transcripts, value by value.
DATASET = "dataset.nc"
LINE_DIGITS = 8

_RECORDS = ("trials.json", JOURNAL, "provenance.json")
_PACKED = f"{archive.NAME}:"
# Files that change without the campaign: the record, the dataset of archives made before version
# 0.2, the lock, temporary files, and those that Slurm jobs leave.
_OTHERS = re.compile(
    rf"({NAME}|dataset\.jsonl\.xz|lock|jobs\.json|code/.*|job-[^/]*\.out|.*\.part)$"
)


def pack(source: Path, target: Path) -> None:
    """Copy a campaign's folder, with its transcripts in one compressed file, always as the same
    bytes."""
    target.mkdir(parents=True, exist_ok=True)
    for name in _RECORDS:
        write_whole(target / name, (source / name).read_text(encoding="utf-8"))
    archive.write(target / archive.NAME, (source / "transcripts").glob("*.json"))
    write(target)


def unpack(source: Path, target: Path) -> None:
    """The inverse of `pack`, so that a run can go on in `target`, which becomes a campaign's folder
    with the last file that is written."""
    (target / "transcripts").mkdir(parents=True)
    for trial_id, text in archive.read(source / archive.NAME):
        write_whole(target / "transcripts" / f"{trial_id}.json", text)
    for name in reversed(_RECORDS):
        write_whole(target / name, (source / name).read_bytes())


def write(folder: Path) -> None:
    """Record the present content of a folder, replacing an earlier record."""
    write_whole(folder / NAME, _text(digests(folder)))


def forget(folder: Path) -> None:
    """Remove the record, because the folder is about to change."""
    with suppress(FileNotFoundError):
        (folder / NAME).unlink()


def read(folder: Path) -> dict[str, str]:
    """The recorded digest of each name; empty without a record. Raises FalloffError if the record
    is damaged."""
    file = folder / NAME
    recorded = {}
    text = file.read_bytes().decode("utf-8", "replace") if file.is_file() else ""
    for line in text.splitlines():
        value, _, name = line.partition("  ")
        if not name:
            raise FalloffError(f"{file} is damaged at {line[:40]!r}; restore it")
        recorded[name] = value
    if text != _text(recorded):
        raise FalloffError(
            f"{file} is damaged: its lines are not in order, or not whole; restore it"
        )
    return recorded


def digests(folder: Path) -> dict[str, str]:
    """The digest of each file, packed transcript and line of the journal; raises like
    `archive.read`."""
    digest_of = _files(folder)
    if (folder / archive.NAME).exists():
        for name, text in archive.read(folder / archive.NAME):
            digest_of[_PACKED + name] = digest(text)
    return digest_of


def together(texts: Mapping[str, bytes]) -> str:
    """One SHA-256 for all transcripts of a campaign: that of a line with digest and id for each, in
    order."""
    lines = [f"{digest(text)}  {trial_id}\n" for trial_id, text in sorted(texts.items())]
    return digest("".join(lines).encode())


def digest(content: bytes) -> str:
    """The SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def is_unchanged(folder: Path) -> bool:
    """Whether every file of a folder is as recorded; raises like `read`. Says nothing of single
    transcripts beside their archive."""
    return _files(folder) == _without_packed(read(folder))


def differences(folder: Path) -> list[str]:
    """Every difference from the record, a line each: changed, lost, or added since; raises like
    `read`."""
    recorded, messages = read(folder), []
    if not recorded:
        return []
    try:
        present = digests(folder)
    except FalloffError as error:  # a damaged archive: then the file itself differs
        present, messages = _files(folder), [str(error)]
        recorded = _without_packed(recorded)
    for name in sorted({*recorded, *present}, key=_by_number):
        was, now, what = recorded.get(name), present.get(name), name
        # As a reader would look for it: the transcript in the archive, the line of the journal.
        file, _, part = name.partition(":")
        if part:
            is_packed = file == archive.NAME
            what = f"transcript {part} in {file}" if is_packed else f"line {part} of {file}"
        if now is None:
            messages.append(f"{what} was recorded and is lost")
        elif was is None:
            messages.append(f"{what} was added since")
        elif now != was:
            messages.append(
                f"{what} was changed: SHA-256 {was[:16]} was recorded, it is {now[:16]}"
            )
    return messages


def _without_packed(digest_of: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in digest_of.items() if not name.startswith(_PACKED)}


def _text(digest_of: Mapping[str, str]) -> str:
    return "".join(f"{digest_of[name]}  {name}\n" for name in sorted(digest_of, key=_by_number))


def _files(folder: Path) -> dict[str, str]:
    digest_of = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not _OTHERS.match(name):
            content = file.read_bytes()
            digest_of[name] = digest(content)
            for number, line in enumerate(content.splitlines() if name == JOURNAL else (), 1):
                digest_of[f"{name}:{number}"] = digest(line)[:LINE_DIGITS]
    return digest_of


def _by_number(name: str) -> tuple[str, int, str]:
    """Names in order; lines of the journal are ordered by number."""
    file, _, part = name.partition(":")
    return file, int(part) if part.isdigit() else 0, part
