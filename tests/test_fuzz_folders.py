"""`make fuzz`: campaigns' folders, damaged in every way: each is told of in words, and none that
was changed is called ok.

FALLOFF_FUZZ is the number of damaged folders; without it there are as many as a test suite can
afford.
"""

import hashlib
import json
import os
import random
import shutil
from pathlib import Path

import pytest
from command_line import ROOT

from analysis.dataset import store
from analysis.evidence import verify
from analysis.watch import samples
from runners.engine import status
from runners.engine.campaign import missing
from runners.records import manifest
from runners.records.journal import Folder
from runners.records.record import FalloffError

REFERENCE = ROOT / "data" / "reference" / "hpl_messages-scale_model"
CASES = int(os.environ.get("FALLOFF_FUZZ", 120))
LINES = [
    b"{}",
    b"null",
    b"5",
    b"[]",
    b'"x"',
    b"\xff\xfe",
    b"",
    b'{"event": 5}',
    b'{"event": "trial"}',
    b"NaN",
]
VALUES = [None, 5, -1, "x", [], {}, 1e999, float("nan"), 10**400, True, [[1, "x"]], "\x00\x1b[31m"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A packed campaign, and the same with its transcripts in a folder, as they are after a run."""
    top = tmp_path_factory.mktemp("campaigns")
    packed, loose = top / "packed", top / "loose"
    shutil.copytree(REFERENCE, packed)
    (loose / "transcripts").mkdir(parents=True)
    for name in ("trials.json", "journal.jsonl", "provenance.json"):
        shutil.copy(packed / name, loose)
    for trial, text in Folder(packed).texts():
        (loose / "transcripts" / f"{trial}.json").write_bytes(text)
    manifest.write(loose)
    return packed, loose


def contents(folder: Path):
    """What a folder holds: the digest of each file, and the name of each folder."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).digest()
        if path.is_file()
        else b""
        for path in folder.rglob("*")
    }


def bytes_changed(chance, text):
    where = chance.randrange(len(text) or 1)
    return chance.choice(
        [
            text[:where],
            text[:where] + bytes([chance.randrange(256)]) + text[where + 1 :],
            text[:where] + b"\xff" + text[where:],
            text[:where] + text[where + chance.randrange(1, 40) :],
            b"",
            chance.choice(LINES),
        ]
    )


def lines_changed(chance, text):
    lines = text.split(b"\n")
    where, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    change = chance.randrange(4)
    if change == 0:
        lines[where] = chance.choice(LINES)
    elif change == 1:
        lines.insert(where, lines[other])
    elif change == 2:
        del lines[where]
    else:
        lines[where], lines[other] = lines[other], lines[where]
    return b"\n".join(lines)


def value_changed(chance, text):
    """One value anywhere in a JSON text becomes another, or goes."""
    try:
        document = json.loads(text.split(b"\n")[0] if b"\n{" in text else text)
    except ValueError:
        return bytes_changed(chance, text)
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        if not keys:
            break
        key = chance.choice(list(keys))
        if isinstance(at[key], (dict, list)) and at[key] and chance.random() < 0.8:
            at = at[key]
            continue
        if chance.random() < 0.3:
            del at[key]
        else:
            at[key] = chance.choice(VALUES)
        break
    return json.dumps(document).encode()


def damage(chance, folder):
    """Change one thing of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = chance.choice(files)
    kind = chance.randrange(8)
    if kind == 0:
        file.unlink()
    elif kind == 1:
        file.unlink()
        file.mkdir()
    elif kind == 2:
        file.rename(file.with_name("other" + file.suffix))
    elif kind == 3:
        shutil.copy(file, chance.choice(files).with_name("b009-009-hpl.json"))
    else:
        how = {4: bytes_changed, 5: lines_changed}.get(kind, value_changed)
        file.write_bytes(how(chance, file.read_bytes()))


def read_in_every_way(folder):
    """Whatever reads a campaign's folder; only FalloffError may be raised, by each for itself."""
    here = Folder(folder)
    for read in (
        lambda: status.text(here),
        lambda: store.assemble(folder),
        lambda: samples.of_dataset(store.assemble(folder), str(folder)),
        lambda: missing(here.plan().trials(), here),
    ):
        try:
            read()
        except FalloffError as error:
            assert str(error)


@pytest.mark.few(1)
@pytest.mark.parametrize("which", ["packed", "loose"])
def test_a_damaged_folder_is_told_of_and_never_ok(folders, tmp_path, which):
    """No reader ends with a traceback, and verify calls no folder ok whose files are not as they
    were.
    """
    source = folders[which == "loose"]
    before, chance = contents(source), random.Random(os.environ.get("FALLOFF_FUZZ", "0"))
    for number in range(CASES // 2):
        folder = tmp_path / "campaign"
        shutil.copytree(source, folder)
        seed = chance.randrange(2**32)
        damage(random.Random(seed), folder)
        try:
            changed = contents(folder) != before
            read_in_every_way(folder)
            found = verify.check(folder)
            assert bool(found.differences or found.unknown) >= changed, found
        except Exception as error:
            raise AssertionError(f"folder {number}, seed {seed}") from error
        shutil.rmtree(folder)


def test_a_damaged_journal_is_set_aside_and_gone_on_from(folders, tmp_path):
    """Its whole lines stay, the rest is kept beside it, and what cannot be read of the provenance,
    too.
    """
    folder = tmp_path / "campaign"
    shutil.copytree(folders[1], folder)
    journal, lines = folder / "journal.jsonl", (folder / "journal.jsonl").read_bytes().split(b"\n")
    damaged = b"\n".join([lines[0], b"\xff\xfe", b"null", *lines[1:]])
    journal.write_bytes(damaged)
    (folder / "provenance.json").write_bytes(b"5")
    here = Folder(folder)
    notes = here.notes()
    assert len(here.damage()) == 3
    told = here.set_aside()
    assert len(told) == 2 and not here.damage() and here.notes() == notes
    assert journal.read_bytes() == b"\n".join(lines)
    (aside,) = folder.glob("journal.jsonl.damaged-*")
    assert aside.read_bytes() == damaged
    assert here.set_aside() == []
