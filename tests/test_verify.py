"""Whatever is changed in a campaign's folder after it was recorded is found and named; an untouched
one is ok.
"""

import json
import lzma
import os
import re
import shutil
import tarfile

import numpy as np
import pytest
from campaigns import small_plan, use_echo
from command_line import ROOT, run
from local_testbed import LocalTestbed

import runners
from analysis import paths
from analysis.dataset import store
from analysis.evidence import verify
from runners.engine import campaign
from runners.records import archive, manifest
from runners.records.journal import Folder
from runners.records.manifest import pack
from runners.records.record import FalloffError

REFERENCE = ROOT / "data" / "reference" / "hpl_messages-scale_model"


@pytest.fixture
def packed(tmp_path):
    """A copy of a small reference, as it was recorded."""
    return shutil.copytree(REFERENCE, tmp_path / REFERENCE.name)


@pytest.fixture
def loose(packed, tmp_path):
    """The same campaign as a run leaves it: a file for each transcript, with its record."""
    folder = tmp_path / "loose"
    (folder / "transcripts").mkdir(parents=True)
    for name in ("trials.json", "journal.jsonl", "provenance.json"):
        shutil.copy(packed / name, folder / name)
    for name, text in archive.read(packed / archive.NAME):
        (folder / "transcripts" / f"{name}.json").write_bytes(text)
    verify.renew(folder)
    return folder


def repacked(folder, change):
    """Write the archive anew with the transcripts that `change(name, text)` gives; those of None
    are left out.
    """
    texts = {name: change(name, text) for name, text in archive.read(folder / archive.NAME)}
    files = folder.parent / "files"
    files.mkdir()
    for name, text in texts.items():
        if text is not None:
            (files / f"{name}.json").write_bytes(text)
    archive.write(folder / archive.NAME, files.iterdir())


def differences(folder):
    """What the check says differs, as one text."""
    return "\n".join(verify.check(folder).differences)


@pytest.mark.parametrize("kind", ["packed", "loose"])
def test_what_nobody_touched_is_ok(kind, request):
    """Nothing differs and nothing is unknown."""
    found = verify.check(request.getfixturevalue(kind))
    assert (found.trials, found.differences, found.unknown) == (3, (), "")
    assert verify.text(found).startswith("ok ")


def test_a_manipulated_number_and_a_lost_trial_are_named(packed):
    """The transcript that it is in, and the value that it changed; a rate that HPL's own times
    contradict is none; what is lost is missed by the record, by the journal, and in the dataset."""
    dataset = store.assemble(packed)
    sent, rate = int(dataset.bytes_sent.values[1, 0]), f"{dataset.hpl_rate.values[0]:.3e}"

    def change(name, text):
        old, new = (str(sent), str(sent + 1)) if name == "b001-002-hpl" else (rate, "9.999e+01")
        return None if name == "b001-003-hpl" else text.replace(old.encode(), new.encode())

    repacked(packed, change)
    text = differences(packed)
    assert "transcript b001-002-hpl in transcripts.tar.xz was changed" in text
    assert f"bytes_sent[0] of b001-002-hpl: {sent}.0 was recorded, it is {sent + 1}.0" in text
    assert 'status of b001-001-hpl: "ok" was recorded, it is "unreadable"' in text
    assert "transcript b001-003-hpl in transcripts.tar.xz was recorded and is lost" in text
    assert "trial b001-003-hpl is in the journal, and its transcript is lost" in text
    assert "trial b001-003-hpl has no row any more" in text


def test_a_changed_line_of_the_journal_and_another_plan_are_named(packed):
    """The line by its number, and no other line; the plan by its digest."""
    journal, plan = packed / "journal.jsonl", packed / "trials.json"
    lines = journal.read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), "at": 1})
    journal.write_text("\n".join(lines) + "\n")
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "digest": "0" * 64}))
    text = differences(packed)
    assert "line 3 of journal.jsonl was changed" in text and text.count("line ") == 1
    assert "the plan is 0000000000000000" in text


def test_changed_added_and_lost_files_are_told_apart(loose):
    """Another point is another trial than the plan's; what a job of Slurm's leaves is no change."""
    folder = loose / "transcripts"
    shutil.copy(folder / "b001-001-hpl.json", folder / "b009-001-hpl.json")
    changed = folder / "b001-001-hpl.json"
    changed.write_text(changed.read_text().replace('"NB": 24', '"NB": 25', 1))
    (folder / "b001-002-hpl.json").unlink()
    (loose / "job-7.out").write_text("it ran")
    text = differences(loose)
    for line in (
        "transcripts/b009-001-hpl.json was added since",
        "transcript b009-001-hpl is of no trial of the plan",
        "transcripts/b001-001-hpl.json was changed",
        "b001-001-hpl is of another trial than the plan's: point",
        "transcripts/b001-002-hpl.json was recorded and is lost",
    ):
        assert line in text
    assert "job" not in text


@pytest.mark.parametrize("name", ["transcripts.tar.xz", "dataset.nc", "trials.json"])
def test_what_is_damaged_is_named_in_a_line(packed, name):
    """And the other campaigns are checked all the same."""
    (packed / name).write_bytes((packed / name).read_bytes()[:100])
    other = shutil.copytree(REFERENCE, packed.parent / "other")
    done = run("evidence", "verify", str(packed), str(other))
    assert done.returncode == 1 and "damaged" in done.stdout
    assert "1 of 2 campaigns differ" in done.stderr
    assert f"{other.name}: 3 trials rebuilt" in done.stdout


def test_a_campaign_records_itself(tmp_path, monkeypatch):
    """What a session leaves is ok, also continued and packed; one that was never recorded is
    `unknown`.
    """
    use_echo(monkeypatch)
    monkeypatch.setattr(store, "tool_named", runners.engine.campaign.tool_named)
    folder = Folder(tmp_path / "small")
    for blocks in (1, 2):
        campaign.run(small_plan(stopping={"blocks": blocks}), LocalTestbed(), folder)
        assert manifest.read(folder.path) and manifest.differences(folder.path) == []
    pack(folder.path, tmp_path / "packed")
    assert manifest.differences(tmp_path / "packed") == []
    manifest.forget(folder.path)
    found = verify.check(folder.path)
    assert found.differences == () and manifest.NAME in found.unknown
    assert verify.text(found).startswith("unknown ")


def test_a_schema_that_grows_changes_nothing_and_any_value_does(packed):
    """What is nowhere known does not count, nor what another Python's sums make of the last
    digits.
    """
    dataset = store.assemble(packed)
    recorded = dataset.copy(deep=True)
    grown = dataset.assign(new_quantity=("trial", [float("nan")] * 3), new_text=("trial", [""] * 3))
    assert verify.changed_values(recorded, grown) == []
    for name, array in dataset.data_vars.items():
        if array.dtype.kind == "f":
            rounded = dataset.assign({name: array * (1 + 3e-16)})
            assert verify.changed_values(recorded, rounded) == [], name
    dataset.wall_time[0] *= 1 + 1e-6
    (line,) = verify.changed_values(recorded, dataset)
    assert line.startswith("wall_time of ")


def test_labels_of_numbers_compare_to_print_precision(packed):
    """As other values do: a quantile with another last digit is the same, another one is not."""
    dataset = store.assemble(packed)
    quantile = dataset["quantile"].values
    delays = ("trial", "quantile"), np.ones((dataset.sizes["trial"], len(quantile)))
    recorded = dataset.assign(delay=delays)
    rounded = recorded.assign_coords(quantile=quantile * (1 + 1e-15))
    assert (rounded["quantile"].values != quantile).any()
    assert verify.changed_values(recorded, rounded) == []
    (line,) = verify.changed_values(
        recorded, recorded.assign_coords(quantile=quantile * (1 + 1e-6))
    )
    assert line.startswith("labels quantile: ")


@pytest.mark.more
def test_all_references_are_what_they_were():
    """Every stored campaign has its record, and neither differs; else `falloff evidence verify
    --renew FOLDER` after a review.
    """
    references = verify.folders([paths.REFERENCE])
    done = run("evidence", "verify", *map(str, references))
    assert done.returncode == 0, done.stdout
    assert sum(line.startswith("ok ") for line in done.stdout.splitlines()) == len(references)


def test_what_cannot_be_read_is_not_recorded_anew(packed, loose):
    """`--renew` says how many it recorded; one whose record is damaged stays, and the exit code
    says so.
    """
    (packed / manifest.NAME).write_text("no digest\n", encoding="utf-8")
    done = run("evidence", "verify", str(packed), str(loose), "--renew")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "Recorded anew: 1 campaigns"
    assert (packed / manifest.NAME).read_text(encoding="utf-8") == "no digest\n"


def test_an_archive_of_the_same_transcripts_has_the_same_bytes(tmp_path):
    """Whatever order, times and modes they have; small, and nothing of their owner."""
    texts = {f"b001-{order:03}-hpl": b"the same again " * 40 for order in range(50)}
    made = []
    for mode, names in ((0o600, texts), (0o644, reversed(texts))):
        folder = tmp_path / f"{mode}"
        folder.mkdir()
        for name in names:
            (folder / f"{name}.json").write_bytes(texts[name])
            os.utime(folder / f"{name}.json", (mode, mode))
            (folder / f"{name}.json").chmod(mode)
        archive.write(tmp_path / archive.NAME, folder.iterdir())
        made.append((tmp_path / archive.NAME).read_bytes())
    assert made[0] == made[1] and len(made[0]) < sum(map(len, texts.values())) / 10
    assert dict(archive.read(tmp_path / archive.NAME)) == texts
    with tarfile.open(tmp_path / archive.NAME) as opened:
        marks = {(one.mtime, one.uid, one.gid, one.uname, one.gname, one.mode) for one in opened}
    assert marks == {(0, 0, 0, "", "", 0o644)}


def test_a_damaged_archive_is_refused(packed):
    """Cut anywhere, a bit changed anywhere, or something else: its name and what to do, and never
    less data.
    """
    file = packed / archive.NAME
    whole = file.read_bytes()
    damaged = [b"PK\x03\x04" + whole]
    for place in range(0, len(whole), len(whole) // 25):
        flipped = bytes([whole[place] ^ 1])
        damaged += [whole[:place], whole[:place] + flipped + whole[place + 1 :]]
    for text in damaged:
        file.write_bytes(text)
        with pytest.raises(FalloffError, match=re.escape(str(file)) + " is damaged .*; restore it"):
            list(archive.read(file))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_what_is_no_file_in_an_archive_is_refused(tmp_path, kind):
    """A link is not followed, neither to this machine's files nor to another transcript."""
    file = tmp_path / archive.NAME
    with tarfile.open(file, "w:xz") as made:
        entry = tarfile.TarInfo("b001-001-hpl")
        entry.type, entry.linkname = kind, "/etc/passwd"
        made.addfile(entry)
    with pytest.raises(FalloffError, match="b001-001-hpl' is no file"):
        list(archive.read(file))


def test_an_archive_that_unpacks_to_far_too_much_is_refused(tmp_path):
    """A few hundred kilobytes of xz held gigabytes, all of which were unpacked into memory."""
    bomb = tmp_path / archive.NAME
    with lzma.open(bomb, "wb", preset=0) as packed:
        for _ in range(200):
            packed.write(bytes(1_000_000))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(FalloffError, match="unpacks to more than"):
        list(archive.read(bomb))
