"""A finished campaign's folder as it is kept and handed on: few files, with their digests."""

from pathlib import Path

from runners import archive, manifest
from runners.journal import write_whole


def pack(source: Path, target: Path) -> None:
    """Copy a campaign's folder with its transcripts in one compressed file, always the same bytes."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("trials.json", "journal.jsonl", "provenance.json"):
        write_whole(target / name, (source / name).read_text(encoding="utf-8"))
    archive.write(target / archive.NAME, (source / "transcripts").glob("*.json"))
    manifest.write(target)
