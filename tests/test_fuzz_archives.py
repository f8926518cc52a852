"""`make fuzz`: what the project unpacks, damaged and made up in every way: read as it was written,
or refused in words.

Nothing but FalloffError may be raised, nothing is written outside the folder that is unpacked to,
nothing unpacks to more than its bound, and nothing that was changed is called as it was recorded.

FALLOFF_FUZZ is the number of archives of each kind; without it there are as many as a test suite
can afford.
"""

import bz2
import gzip
import io
import lzma
import os
import random
import re
import shutil
import stat
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from functools import cache
from pathlib import Path

import pytest
from command_line import ROOT

from analysis.dataset import store
from analysis.evidence import artifact, verify
from runners.recording import recorder
from runners.records import archive, manifest
from runners.records.record import FalloffError

REFERENCE = ROOT / "data" / "reference" / "hpl_messages-scale_model"
CASES = int(os.environ.get("FALLOFF_FUZZ", 200))
BOMB = 200_000_000  # bytes of zeros, far more than a small archive may unpack to
OUTSIDE = "outside"  # a name that must not appear anywhere but where is unpacked to
NAMES = [
    *(
        "../outside",
        "../../../../outside/raw/outside",
        "/tmp/outside",
        "raw/../../outside",
        "..",
        ".",
        "/",
        "",
        "~/outside",
    ),
    *(
        "C:\\outside",
        "\\\\host\\outside",
        "raw\\outside",
        "raw/x/trials.json",
        "raw/trials.json/outside",
        "con",
        "a\x00b",
    ),
    *(
        "raw/\x1b[31m\x07",
        "raw/a\nb",
        "raw/\u202eb",
        "raw/" + "n" * 300,
        "raw/" + "d/" * 3000 + "x",
        "b001-001-hpl",
        "\udcff",
    ),
]


@cache
def zeros(pack):
    """A bomb: many zeros, packed small."""
    return {
        "xz": lambda: lzma.compress(bytes(BOMB), preset=0),
        "deflate": lambda: zlib.compress(bytes(BOMB), 9),
    }[pack]()


def by_bytes(chance, data):
    """One to three changes of bytes anywhere."""
    for _ in range(chance.randrange(1, 4)):
        where, length = chance.randrange(len(data) + 1), chance.choice([1, 2, 4, 64, 512, 2048])
        part = data[chance.randrange(len(data) or 1) :][:length]
        flipped = bytes(chance.randrange(256) for _ in range(min(length, 8)))
        data = chance.choice(
            [
                data[:where],
                data[:where] + flipped + data[where + len(flipped) :],
                data[:where] + data[where + length :],
                data[:where] + part + data[where:],
                data + flipped,
                data + data,
                data[where:],
                data[:where] + bytes(length) + data[where + length :],
            ]
        )
    return data


def other_kind(chance, data):
    """The same, or nothing, as another kind of file."""
    return chance.choice(
        [
            lambda: b"",
            lambda: gzip.compress(data),
            lambda: bz2.compress(data),
            lambda: lzma.compress(data),
            lambda: lzma.compress(data, format=lzma.FORMAT_ALONE),
            lambda: zeros("xz"),
            lambda: b"\xfd7zXZ\x00" + data[:100],
            lambda: b"PK\x05\x06" + bytes(18),
            lambda: data + lzma.compress(b"more"),
        ]
    )()


def tar_made_up(chance, members):
    """A tar file with members that no campaign has among those of a whole one."""
    made = io.BytesIO()
    kind = chance.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    members = [*members, *chance.sample(members, chance.randrange(2))]
    chance.shuffle(members)
    with tarfile.open(fileobj=made, mode="w:", format=kind, errors="surrogateescape") as packed:
        for name, text in members:
            entry, change = tarfile.TarInfo(name), chance.randrange(14)
            entry.size = len(text)
            if change == 0:
                entry.name = chance.choice(NAMES)
            elif change == 1:
                entry.type = chance.choice(b"1234567AxgLKSDVN").to_bytes(1, "big")
                entry.linkname = chance.choice(["/etc/passwd", "../outside", members[0][0], ""])
            elif change == 2:
                entry.size = chance.choice([0, 1, len(text) + 1, 2**33 - 1])
            elif change == 3:
                entry.pax_headers = dict(
                    [
                        chance.choice(
                            [
                                ("path", chance.choice(NAMES[1:9])),
                                ("size", chance.choice(["-1", "x", "1e9", "99999999999", "0"])),
                                ("GNU.sparse.realsize", "99999999999"),
                                ("GNU.sparse.size", "99999999999"),
                                ("GNU.sparse.major", "1"),
                                ("hdrcharset", "BINARY"),
                                ("mtime", "nan"),
                                ("uid", "x"),
                            ]
                        )
                        for _ in range(3)
                    ]
                )
            elif change == 4:
                entry.mode, entry.mtime, entry.uid = 0o7777, 2**31, 2**20
            try:
                packed.addfile(
                    entry, io.BytesIO(text + bytes(max(0, min(entry.size, 9**6) - len(text))))
                )
            except (ValueError, OSError, UnicodeError):
                continue
    return made.getvalue()


def sparse(size):
    """A tar file with a GNU sparse member of so many bytes, of which none is there."""
    entry = tarfile.TarInfo("b001-001-hpl")
    entry.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    block[386 : 386 + 24] = b"%011o\0%011o\0" % (size, 0)
    block[483:495] = b"%011o\0" % size
    block[148:156] = b"%06o\0 " % sum([*block[:148], *b" " * 8, *block[156:512]])
    return bytes(block) + bytes(1024)


@pytest.fixture(scope="module")
def whole():
    """The transcripts of a packed campaign."""
    return dict(archive.read(REFERENCE / archive.NAME))


def damaged_tar(chance, packed, whole):
    kind = chance.randrange(6)
    if kind == 0:
        return other_kind(chance, packed)
    if kind == 1:
        return by_bytes(chance, packed)
    if kind == 2:
        return lzma.compress(by_bytes(chance, lzma.decompress(packed)), preset=0)
    if kind == 3:
        inside = sparse(chance.choice([1000, 10**8, 8**11 - 1]))
        return lzma.compress(inside, preset=0)
    return lzma.compress(tar_made_up(chance, [*whole.items()]), preset=0)


def cases(kind):
    """A seed for each case."""
    for number in range(CASES):
        yield number, random.Random(f"{os.environ.get('FALLOFF_FUZZ', '')} {kind} {number}")


@pytest.fixture
def counts(request):
    """How many archives were read as they were written, were read otherwise and are told of, or
    were refused.
    """
    found = dict.fromkeys(("as written", "otherwise", "refused"), 0)
    yield found
    print(f"\n{request.node.name}: {found}")
    assert found["refused"] > CASES // 10


def told(number, read, counts, whole):
    """What a reader says of case `number`, None where it refuses it in a line."""
    try:
        found = read()
    except FalloffError as error:
        assert len(str(error).splitlines()) == 1, str(error)
        counts["refused"] += 1
        return None
    except Exception as error:
        raise AssertionError(f"case {number}") from error
    counts["as written" if found == whole else "otherwise"] += 1
    return found


@pytest.mark.more
def test_transcripts_are_read_as_they_were_written(tmp_path, whole, counts):
    """Of a damaged archive all files, each with its name, or a line; the campaign's record tells of
    all that is not the same.
    """
    source = (REFERENCE / archive.NAME).read_bytes()
    folder = shutil.copytree(REFERENCE, tmp_path / "campaign")
    file = folder / archive.NAME
    for number, chance in cases("tar"):
        data = damaged_tar(chance, source, whole)
        file.write_bytes(data)
        found = told(number, lambda: dict(archive.read(file)), counts, whole) or {}
        assert sum(map(len, found.values())) <= archive.unpacked_at_most(len(data)), number
        assert all("/" not in name and name.isprintable() for name in found), number
        assert manifest.differences(folder) or data == source, number


@pytest.mark.more
def test_values_are_compared_as_they_were_kept(tmp_path, counts):
    """A damaged dataset is refused, or every value that differs is told."""
    source = (REFERENCE / manifest.DATASET).read_bytes()
    whole = verify._known(store.load(REFERENCE / manifest.DATASET))
    for number, chance in cases("values"):
        (tmp_path / manifest.DATASET).write_bytes(
            chance.choice([by_bytes, by_bytes, by_bytes, other_kind])(chance, source)
        )

        def read():
            kept = store.load(tmp_path / manifest.DATASET)
            return verify._known(kept).equals(whole), verify.changed_values(kept, whole)

        found = told(number, read, counts, (True, []))
        assert found is None or found[0] == (not found[1]), number


def inside(chance, packed):
    """A compressed file that is damaged, or is whole and holds what is damaged."""
    kind = chance.randrange(8)
    if kind == 0:
        return other_kind(chance, packed)
    if kind == 1:
        return by_bytes(chance, packed)
    text = lzma.decompress(packed)
    if kind < 3:
        return lzma.compress(by_bytes(chance, text), preset=0)
    if kind < 6:
        digits = [place for place, letter in enumerate(text) if letter in b"0123456789"]
        where = chance.choice(digits)
        return lzma.compress(
            text[:where] + b"%d" % chance.randrange(10) + text[where + 1 :], preset=0
        )
    lines, odd = (
        text.split(b"\n"),
        [b"5", b"null", b"{}", b"[]", b'{"name": 5}', b'{"name": "N", "dims": 5}', b"\xff", b""],
    )
    where = chance.randrange(len(lines))
    lines[where : where + chance.randrange(2)] = [chance.choice([*odd, chance.choice(lines)])]
    return lzma.compress(b"\n".join(lines), preset=0)


def test_recordings_are_read_as_they_were_kept(monkeypatch, tmp_path, counts):
    """A damaged recording of a program is refused, or it is another one, whose checksum differs."""
    source = min(recorder.STORE.glob("*.txt.xz"), key=lambda file: file.stat().st_size)
    program = source.name.rsplit("-", 1)[0]
    store = tmp_path / "programs"
    store.mkdir()
    file = Path(shutil.copy(source, store))
    monkeypatch.setattr(recorder, "STORE", store)
    whole, digest = recorder.by_ranks(program), recorder.digest(program)
    for number, chance in cases("recording"):
        file.write_bytes(inside(chance, source.read_bytes()))
        found = told(number, lambda: recorder.by_ranks(program), counts, whole)
        assert found in (None, whole) or recorder.digest(program) != digest, number


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A campaign and some code in a zip file, by name, as `falloff evidence archive` packs them."""
    files = sorted(file for file in REFERENCE.iterdir() if file.is_file())
    held = {f"data/reference/{REFERENCE.name}/{file.name}": file.read_bytes() for file in files}
    return {**held, "falloff.py": b"print()\n", "data/raw/README.md": b"runs\n"}


def zipped(entries):
    """Entries in a zip file: (ZipInfo, content) each."""
    made = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w") as file:
        warnings.simplefilter("ignore")  # of names that are there twice
        for entry, text in entries:
            file.writestr(entry, text)
    return made.getvalue()


def zip_made_up(chance, packed):
    """A zip file with entries that no archive has among those of a whole one."""
    entries = []
    for name, text in [*packed.items(), *chance.sample([*packed.items()], chance.randrange(2))]:
        entry, change = zipfile.ZipInfo(name), chance.randrange(24)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        if change == 0:
            continue
        if change == 1:
            entry.filename = chance.choice(
                [name.rpartition("/")[0] + "/", "data/raw/"]
            ) + chance.choice(NAMES[:-1])
        elif change == 2:
            entry.filename = chance.choice(
                [*packed, *(f"{other}/x" for other in packed), name + "/", "/" + name, "./" + name]
            )
        elif change == 3:
            kind = chance.choice(
                [
                    stat.S_IFLNK,
                    stat.S_IFCHR,
                    stat.S_IFBLK,
                    stat.S_IFIFO,
                    stat.S_IFSOCK,
                    stat.S_IFDIR,
                ]
            )
            entry.external_attr, text = (
                (kind | 0o777) << 16,
                chance.choice([b"/etc/passwd", b"../..", text]),
            )
        elif change == 4:
            entry.compress_type = chance.choice(
                [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
            )
        elif change == 5:
            text = by_bytes(chance, text)
        elif change == 6 and chance.random() < 0.1:
            text = bytes(BOMB // 2)
        elif change == 7:
            entry.date_time, entry.comment, entry.extra = (
                (2107, 12, 31, 23, 59, 58),
                b"x" * 60_000,
                b"\x01\x00\x08\x00" + bytes(8),
            )
        entries.append((entry, text))
    chance.shuffle(entries)
    return zipped(entries)


def fields_changed(chance, data):
    """A zip file of which numbers in the headers, such as sizes, methods and flags, are others."""
    data = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        sign, fields = chance.choice(
            [
                (b"PK\x01\x02", range(4, 46, 2)),
                (b"PK\x03\x04", range(4, 30, 2)),
                (b"PK\x05\x06", range(4, 22, 2)),
            ]
        )
        starts = [found.start() for found in re.finditer(re.escape(sign), data)]
        where = chance.choice(starts) + chance.choice(fields)
        data[where : where + 2] = chance.choice(
            [b"\0\0", b"\xff\xff", b"\1\0", b"\x0e\0", chance.randbytes(2)]
        )
    return bytes(data)


def contents(folder):
    """The digest of each file of a campaign that its record names."""
    return dict(manifest.digests(folder))


def test_zip_files_are_unpacked_as_they_were_written(tmp_path, packed, counts, monkeypatch):
    """Campaigns as they were recorded, or a line; whatever an entry claims to be or to be called,
    all lies where it is unpacked to, and nothing stays."""
    temporary, file = tmp_path / "temporary", tmp_path / "archive.zip"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    entries = []
    for name, text in packed.items():
        entries.append((zipfile.ZipInfo(name), text))
        entries[-1][0].compress_type = zipfile.ZIP_DEFLATED
    source, whole, places = zipped(entries), [contents(REFERENCE)], {*tmp_path.iterdir(), file}
    for number, chance in cases("zip"):
        kind = chance.randrange(5)
        if kind == 0:
            data = chance.choice([other_kind, by_bytes])(chance, source)
        elif kind < 3:
            data = fields_changed(chance, source)
        else:
            data = zip_made_up(chance, packed)
        file.write_bytes(data)

        def read():
            with artifact.opened(file) as folders:
                unpacked = sum(
                    one.lstat().st_size for one in temporary.rglob("*") if not one.is_dir()
                )
                assert unpacked <= archive.unpacked_at_most(len(data))
                assert all(one.is_file() or one.is_dir() for one in temporary.rglob("*"))
                assert not any(one.is_symlink() for one in temporary.rglob("*"))
                return [contents(folder) for folder in folders]

        found = told(number, read, counts, whole)
        assert found in (None, whole), number
        assert not list(temporary.iterdir()) and {*tmp_path.iterdir()} == places, number
    assert not Path("/tmp", OUTSIDE).exists() and not list(tmp_path.parent.glob(OUTSIDE))
