"""A campaign's transcripts in one compressed file, the form in which the references are kept."""

import io
import lzma
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from runners.records.record import FalloffError, is_name

NAME = "transcripts.tar.xz"

_PRESET = 6 | lzma.PRESET_EXTREME
_MEMORY = 2**27  # B: eight times what unpacking a file of this preset takes


def unpacked_at_most(size: int) -> int:
    """The most bytes that a file of this size [B] may unpack to; the references unpack to at most
    70 times their size."""
    return 64_000_000 + 300 * size


def write(archive: Path, files: Iterable[Path]) -> None:
    """Put files into an archive under their stems, always as the same bytes: in order, without
    times and owners."""
    with (
        lzma.open(archive, "wb", preset=_PRESET) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as packed,
    ):
        for stem, file in sorted((file.stem, file) for file in files):
            entry = tarfile.TarInfo(stem)
            entry.size = file.stat().st_size
            with open(file, "rb") as content:
                packed.addfile(entry, content)


def read(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Each file's name and content in the order of the archive; nothing is written to disk.

    Raises FalloffError if the archive is damaged, or holds something that `write` never puts there.
    """
    try:
        # Read all at once, because xz's checksum can only be verified at the end.
        return iter(_members(decompressed(archive.read_bytes())))
    except OSError as error:
        raise FalloffError(f"{archive} cannot be read ({error.strerror}); restore it") from None
    except (lzma.LZMAError, tarfile.TarError, ValueError) as error:
        raise FalloffError(f"{archive} is damaged ({error}); restore it") from None


def _members(whole: bytes) -> list[tuple[str, bytes]]:
    """Name and content of each file of a tar file; raises TarError, or ValueError as tarfile does
    for odd headers.

    tarfile takes an invalid header for the end, and fills a sparse file with as many zeros as it
    claims to have.
    """
    members: dict[str, bytes] = {}
    end = 0
    with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as packed:
        for entry in packed:
            if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.issparse():
                raise tarfile.ReadError(f"{entry.name[:40]!r} is no file")
            if not is_name(entry.name) or entry.name in members:
                raise tarfile.ReadError(f"{entry.name[:40]!r} is no name, or there twice")
            begin, end = entry.offset_data, entry.offset_data + entry.size
            members[entry.name] = whole[begin:end]
            end += -end % tarfile.BLOCKSIZE
    if len(whole) < end + 2 * tarfile.BLOCKSIZE or any(whole[end:]):
        raise tarfile.ReadError("it does not end behind its last file")
    return list(members.items())


def decompressed(packed: bytes) -> bytes:
    """The content that xz packed; raises LZMAError if it is cut off, is larger than anything kept
    here, or has data after its end."""
    most = unpacked_at_most(len(packed))
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    content = unpacking.decompress(packed, most)
    if not unpacking.eof:
        raise lzma.LZMAError(f"it is cut off, or unpacks to more than {most / 1e6:.0f} MB")
    if unpacking.unused_data:
        raise lzma.LZMAError("more follows behind its end")
    return content
