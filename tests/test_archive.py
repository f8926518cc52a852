"""Archives of transcripts: the same bytes each time, small, and refused when anything is wrong with them."""

import io
import os
import re
import tarfile

import pytest

from runners import archive
from runners.record import FalloffError

SAID = "the same again " * 40
TEXTS = {
    f"b001-{order:03}-hpl": f'{{"order": {order}, "said": "{SAID}"}}'.encode()
    for order in range(50)
}


def written(folder, texts=TEXTS):
    """The archive of these texts, whose files are made in their order and now."""
    (folder / "files").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "files" / f"{name}.json").write_bytes(text)
    archive.write(folder / archive.NAME, (folder / "files").iterdir())
    return folder / archive.NAME


def test_the_same_files_give_the_same_bytes(tmp_path):
    """Whatever order, times, modes and folder they have; small, and nothing of their owner."""
    first = written(tmp_path / "first")
    assert list(archive.read(first)) == sorted(TEXTS.items())
    again = written(tmp_path / "again", dict(reversed(TEXTS.items())))
    for file in (tmp_path / "again" / "files").iterdir():
        os.utime(file, (1, 1))
        file.chmod(0o600)
    archive.write(again, (tmp_path / "again" / "files").iterdir())
    assert again.read_bytes() == first.read_bytes()
    assert first.stat().st_size < sum(map(len, TEXTS.values())) / 10
    with tarfile.open(first) as packed:
        marks = {(one.mtime, one.uid, one.gid, one.uname, one.gname, one.mode) for one in packed}
    assert marks == {(0, 0, 0, "", "", 0o644)}


def test_a_damaged_archive_is_refused(tmp_path):
    """Cut anywhere, a bit changed anywhere, or something else: its name and what to do, and never less data."""
    file = written(tmp_path)
    whole = file.read_bytes()
    damaged = [b"PK\x03\x04" + whole]
    for place in range(0, len(whole), len(whole) // 25):
        flipped = bytes([whole[place] ^ 1])
        damaged += [whole[:place], whole[:place] + flipped + whole[place + 1 :]]
    for content in damaged:
        file.write_bytes(content)
        with pytest.raises(FalloffError, match=re.escape(str(file)) + " is damaged .*; restore it"):
            list(archive.read(file))


@pytest.mark.parametrize("name", ["/tmp/falloff-escaped", "a/../../escaped"])
def test_a_name_is_no_place(tmp_path, name):
    """Where a name points to does not matter: its content is given, and nothing is written."""
    file = tmp_path / archive.NAME
    with tarfile.open(file, "w:xz") as packed:
        entry = tarfile.TarInfo(name)
        entry.size = 2
        packed.addfile(entry, io.BytesIO(b"{}"))
    assert list(archive.read(file)) == [(name, b"{}")]
    assert list(tmp_path.rglob("*")) == [file] and not os.path.exists("/tmp/falloff-escaped")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_what_is_no_file_is_refused(tmp_path, kind):
    """A link is not followed, neither to this machine's files nor to another transcript."""
    file = tmp_path / archive.NAME
    with tarfile.open(file, "w:xz") as packed:
        entry = tarfile.TarInfo("b001-001-hpl")
        entry.type, entry.linkname = kind, "/etc/passwd"
        packed.addfile(entry)
    with pytest.raises(FalloffError, match="b001-001-hpl is no file"):
        list(archive.read(file))
