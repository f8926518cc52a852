"""Whatever is changed in a campaign's folder after it was recorded is found and named; an untouched one is ok."""

import json
import lzma
import shutil

import pytest
from campaigns import small_plan, use_echo
from command_line import ROOT, run
from local_testbed import LocalTestbed

import runners
from analysis import paths, store
from analysis.evidence import content, verify
from runners import archive, campaign, manifest
from runners.journal import Folder
from runners.manifest import pack
from runners.record import FalloffError

REFERENCE = ROOT / "data" / "reference" / "hpl_payload-scale_model"


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
    """Write the archive anew with the transcripts that `change(name, text)` gives; those of None are left out."""
    texts = {name: change(name, text) for name, text in archive.read(folder / archive.NAME)}
    files = folder.parent / "files"
    files.mkdir()
    for name, text in texts.items():
        if text is not None:
            (files / f"{name}.json").write_bytes(text)
    archive.write(folder / archive.NAME, files.iterdir())


def told(folder):
    """What the check says differs, as one text."""
    return "\n".join(verify.check(folder, paths.DATASETS / "of nobody").differences)


@pytest.mark.parametrize("kind", ["packed", "loose"])
def test_what_nobody_touched_is_ok(kind, request):
    """Nothing differs and nothing is unknown."""
    found = verify.check(request.getfixturevalue(kind), paths.DATASETS / "of nobody")
    assert (found.trials, found.differences, found.unknown) == (3, (), ())
    assert verify.text(found).startswith("ok ")


def test_a_manipulated_digit_is_named(packed):
    """The transcript that it is in, and the value that it changed, as it was and as it is."""
    sent = int(store.assemble(packed).bytes_sent.values[1, 0])

    def change(name, text):
        return text.replace(str(sent).encode(), str(sent + 1).encode()) if name == "b001-002-hpl" else text

    repacked(packed, change)
    said = told(packed)
    assert "transcript b001-002-hpl in transcripts.tar.xz was changed" in said and "b001-001-hpl" not in said
    assert f"bytes_sent[0] of b001-002-hpl: {sent}.0 was recorded, it is {sent + 1}.0" in said


def test_a_manipulated_rate_is_no_result_any_more(packed):
    """HPL prints the same rate in two ways, and the time: the parser refuses what does not agree."""
    rate = f"{store.assemble(packed).hpl_rate.values[1]:.3e}".encode()
    repacked(packed, lambda name, text: text.replace(rate, b"9.999e+01"))
    assert 'status of b001-002-hpl: "ok" was recorded, it is "unreadable"' in told(packed)


def test_a_lost_trial_is_named(packed):
    """By the record, by the journal, and by its row in the dataset."""
    repacked(packed, lambda name, text: None if name == "b001-003-hpl" else text)
    said = told(packed)
    assert "transcript b001-003-hpl in transcripts.tar.xz was recorded and is lost" in said
    assert "trial b001-003-hpl is in the journal, and its transcript is lost" in said
    assert "trial b001-003-hpl has no row any more" in said


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_changed_line_of_the_journal_is_named(packed, number):
    """By its number, and no other line."""
    journal = packed / "journal.jsonl"
    lines = journal.read_text().splitlines()
    note = json.loads(lines[number - 1])
    lines[number - 1] = json.dumps({**note, "at": note["at"] + 1})
    journal.write_text("\n".join(lines) + "\n")
    said = told(packed)
    assert f"line {number} of journal.jsonl was changed" in said and said.count("line ") == 1


def test_an_added_file_is_named(loose):
    """A transcript that the plan does not have; what a job of Slurm's leaves is no change."""
    shutil.copy(loose / "transcripts" / "b001-001-hpl.json", loose / "transcripts" / "b009-001-hpl.json")
    (loose / "job-7.out").write_text("it ran")
    (loose / "jobs.json").write_text("[]")
    said = told(loose)
    assert "transcripts/b009-001-hpl.json was added since" in said and "job" not in said
    assert "transcript b009-001-hpl is of no trial of the plan" in said


def test_loose_transcripts_are_told_apart_too(loose):
    """A changed point is another trial than the plan's; a file that is gone is lost."""
    file = loose / "transcripts" / "b001-001-hpl.json"
    file.write_text(file.read_text().replace('"NB": 24', '"NB": 25', 1))
    (loose / "transcripts" / "b001-002-hpl.json").unlink()
    said = told(loose)
    assert "transcripts/b001-001-hpl.json was changed" in said
    assert "b001-001-hpl is of another trial than the plan's: point" in said
    assert "transcripts/b001-002-hpl.json was recorded and is lost" in said


def test_another_plan_is_named(packed):
    """Other trials than those that the session ran."""
    plan = json.loads((packed / "trials.json").read_text())
    (packed / "trials.json").write_text(json.dumps({**plan, "digest": "0" * 64}))
    assert "the plan is 0000000000000000" in told(packed)


@pytest.mark.parametrize("name", ["transcripts.tar.xz", "dataset.jsonl.xz", "trials.json"])
def test_what_is_damaged_is_said_in_a_line(packed, name):
    """And the other campaigns are checked all the same."""
    (packed / name).write_bytes((packed / name).read_bytes()[:100])
    other = shutil.copytree(REFERENCE, packed.parent / "other")
    done = run("verify", str(packed), str(other))
    assert done.returncode == 1 and "damaged" in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert "1 of 2 campaigns differ" in done.stderr and f"{other.name}: 3 trials rebuilt" in done.stdout


def test_values_are_compared_one_by_one(packed):
    """A recorded value that is not the transcripts' is named with both; a new variable is one that was not recorded."""
    kept = content.kept(packed)
    kept["hpl_rate"]["values"][0] = 1.25
    del kept["bytes_sent"]
    (packed / manifest.DATASET).write_bytes(lzma.compress(content.text(kept).encode()))
    said = told(packed)
    assert "hpl_rate of b001-001-hpl: 1.25 was recorded" in said
    assert "bytes_sent[0] of b001-001-hpl: nothing was recorded, it is" in said and "values more" in said


def test_the_users_netcdf_is_compared_as_well(loose, tmp_path):
    """A dataset in data/datasets that is not the transcripts' is named by its file."""
    dataset = store.assemble(loose)
    store.save(dataset, tmp_path / "loose.nc")
    assert verify.check(loose, tmp_path).differences == ()
    dataset.hpl_rate[2] = 7.5
    store.save(dataset, tmp_path / "loose.nc")
    (line,) = verify.check(loose, tmp_path).differences
    assert line.startswith("loose.nc: hpl_rate of b001-003-hpl: 7.5 was recorded, it is ")


def test_a_campaign_records_itself(tmp_path, monkeypatch):
    """What a session leaves is ok; a continued one is recorded anew, and one that was never recorded is `unknown`."""
    use_echo(monkeypatch)
    monkeypatch.setattr(store, "runner_named", runners.campaign.runner_named)
    folder = Folder(tmp_path / "small")
    for blocks in (1, 2):
        plan = small_plan(stopping={"blocks": blocks})
        campaign.run(plan, LocalTestbed(), folder)
        assert manifest.differences(folder.path) == []
    first = manifest.read(folder.path)
    pack(folder.path, tmp_path / "packed")
    assert manifest.differences(tmp_path / "packed") == [] and first != manifest.read(tmp_path / "packed")
    manifest.forget(folder.path)
    found = verify.check(folder.path, tmp_path)
    assert found.differences == () and verify.text(found).startswith("unknown ") and len(found.unknown) == 2


def test_content_does_not_depend_on_what_is_nowhere_known(packed):
    """A schema that grows by a variable changes no digest; any value does."""
    dataset = store.assemble(packed)
    digest = content.digest(dataset)
    grown = dataset.assign(new_quantity=("trial", [float("nan")] * 3), new_text=("trial", [""] * 3))
    assert content.digest(grown) == digest
    assert content.digest(dataset.assign(new_quantity=("trial", [1.0, 2.0, 3.0]))) != digest
    assert content.differences(content.of(grown), content.kept(packed)) == []
    dataset.wall_time[0] += 1e-9
    assert content.digest(dataset) != digest


def test_all_references_are_what_they_were():
    """Every stored campaign has its record, and neither differs; else `falloff verify --renew FOLDER` after a review."""
    done = run("verify")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert sum(line.startswith("ok ") and "data/reference/" in line for line in lines) == len(
        verify.folders([paths.REFERENCE])
    )


def test_no_campaign_is_a_mistake(tmp_path):
    """A folder without one is named."""
    with pytest.raises(FalloffError, match="no campaign's folder"):
        verify.folders([tmp_path])


def test_what_cannot_be_read_is_not_recorded_anew(packed, loose):
    """`--renew` says how many it recorded; one whose record is damaged stays as it is, and the exit code says so."""
    (packed / manifest.NAME).write_text("no digest\n", encoding="utf-8")
    done = run("verify", str(packed), str(loose), "--renew")
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "Recorded anew: 1 campaigns"
    assert (packed / manifest.NAME).read_text(encoding="utf-8") == "no digest\n"


def test_a_write_that_is_cut_off_keeps_the_earlier_values(packed, monkeypatch):
    """What a dataset's values were stays readable when the disk gives up, or the process ends, before the new are whole."""
    dataset = store.assemble(packed)
    content.keep(dataset, packed)
    before = content.kept(packed)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: pytest.fail("cut off"))
        with pytest.raises(pytest.fail.Exception):
            content.keep(dataset.isel(trial=slice(1)), packed)
    assert before and content.kept(packed) == before
