"""A campaign's transcripts in one compressed file, as the references are kept."""

import io
import lzma
import tarfile
from pathlib import Path
from typing import Iterable, Iterator, Tuple

from runners.record import FalloffError

NAME = "transcripts.tar.xz"

_PRESET = 6 | lzma.PRESET_EXTREME


def unpacked_at_most(size: int) -> int:
    """To how many bytes a file of this size [B] may unpack: the references unpack to at most 70 times theirs."""
    return 64_000_000 + 300 * size


def write(archive: Path, files: Iterable[Path]) -> None:
    """Put files into an archive under their stems, always as the same bytes: in order, without times and owners."""
    with tarfile.open(archive, "w:xz", preset=_PRESET, format=tarfile.PAX_FORMAT) as packed:
        for stem, file in sorted((file.stem, file) for file in files):
            entry = tarfile.TarInfo(stem)
            entry.size = file.stat().st_size
            with open(file, "rb") as content:
                packed.addfile(entry, content)


def read(archive: Path) -> Iterator[Tuple[str, bytes]]:
    """Each file's name and content in the order of the archive; nothing is written to disk.

    Raises FalloffError when the archive is damaged, or holds what is no file.
    """
    try:
        # All at once: only at its end is it known whether xz's checksum holds.
        whole = _decompressed(archive.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as packed:
            for entry in packed:
                content = packed.extractfile(entry) if entry.isreg() else None
                if content is None:
                    raise tarfile.ReadError(f"{entry.name} is no file")
                yield entry.name, content.read()
    except OSError as error:
        raise FalloffError(f"{archive} cannot be read ({error.strerror}); restore it") from None
    except (lzma.LZMAError, tarfile.TarError) as error:
        raise FalloffError(f"{archive} is damaged ({error}); restore it") from None


def _decompressed(packed: bytes) -> bytes:
    """What xz packed; raises LZMAError where it is cut off, or more than transcripts could be."""
    most, unpacking = unpacked_at_most(len(packed)), lzma.LZMADecompressor()
    found = unpacking.decompress(packed, most)
    if not unpacking.eof:
        raise lzma.LZMAError(f"it is cut off, or unpacks to more than {most / 1e6:.0f} MB")
    if unpacking.unused_data:
        raise lzma.LZMAError("more follows behind its end")
    return found
