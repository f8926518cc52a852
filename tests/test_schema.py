"""One schema: what a campaign's transcripts become, and every fault of a dataset named at once."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from campaigns import small_plan, use_echo
from cf_units import Unit
from local_testbed import LocalTestbed
from synthetic import campaign

from analysis import paths
from analysis.dataset import schema, store
from analysis.dataset.derive import by_trial
from analysis.explorer import data
from runners.engine import campaign as engine
from runners.records.journal import Folder
from runners.records.manifest import pack
from runners.records.record import FalloffError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A finished small campaign on disk."""
    use_echo(monkeypatch)
    monkeypatch.setattr(store, "tool_named", engine.tool_named)
    folder = Folder(tmp_path / "small")
    engine.run(small_plan(), LocalTestbed(), folder)
    return folder


def test_transcripts_become_a_dataset_that_survives_its_file(folder, tmp_path):
    """Every trial is a row in the order of the run; packed, or as netCDF-4 and back, it is the
    same.
    """
    dataset = store.assemble(folder.path)
    assert schema.faults(dataset) == []
    assert dataset.trial_id.values.tolist() == [trial.id for trial in small_plan().trials()]
    assert (dataset.status == "ok").all() and dataset.attrs["stopped_by"] == "blocks"
    assert set(dataset.hpl_rate.where(dataset.role == "point", drop=True).values) == {3.5}
    assert dataset.hpl_rate.attrs["units"] == "Gflop/s"
    table = by_trial(dataset)
    assert table.trial_id.tolist() == dataset.trial_id.values.tolist() and table.trial_id.is_unique
    assert table.hpl_rate.tolist() == dataset.hpl_rate.values.tolist()
    of_trials = {name for name in dataset.data_vars if dataset[name].dims == ("trial",)}
    assert of_trials <= {*table} and "node" not in table
    pack(folder.path, tmp_path / "packed")
    assert store.assemble(tmp_path / "packed").identical(dataset)
    store.save(dataset, tmp_path / "small.nc")
    assert store.load(tmp_path / "small.nc").identical(dataset)
    assert not list(tmp_path.glob("*.part"))


def test_a_damaged_file_is_listed_with_its_fault(tmp_path):
    """Wherever its bytes are changed, the explorer lists it, with what is wrong if it cannot be
    read.
    """
    store.save(campaign(blocks=2), tmp_path / "whole.nc")
    raw, random = (tmp_path / "whole.nc").read_bytes(), np.random.default_rng(1)
    faults = 0
    for number in range(120):
        damaged = np.frombuffer(raw, np.uint8).copy()
        near = min(len(raw), 2000) if number % 2 else len(raw)
        damaged[random.integers(near, size=40)] = random.integers(256, size=40)
        file = tmp_path / f"{number}.nc"
        file.write_bytes(damaged.tobytes())
        faults += bool(data.source(file).fault)
    assert faults > 40


def test_files_keep_the_cf_conventions(tmp_path):
    """UDUNITS parses every unit, a byte is a byte and no bel, a time has its epoch; read back,
    units are as they are shown.
    """
    dataset = campaign(blocks=2)
    store.save(dataset, tmp_path / "own.nc")
    with netCDF4.Dataset(tmp_path / "own.nc") as raw:
        units = {
            name: Unit(one.units) for name, one in raw.variables.items() if "units" in one.ncattrs()
        }
        numbers = {name for name, one in raw.variables.items() if one.dtype not in (str, "S1")}
        assert raw.Conventions.startswith("CF-") and units.keys() == numbers >= {
            "hpl_rate",
            "nodes",
        }
    assert units["start"].is_time_reference() and units["bytes_sent"].convert(1, "bit") == 8
    assert units["hpl_rate"].convert(1, "s-1") == 1e9
    of_all = {
        row.get("units")
        for kind in ("coordinates", "variables")
        for row in schema.schema()[kind].values()
    }
    assert not [unit for unit in of_all if unit and not Unit(store.UDUNITS.get(unit, unit))]
    assert store.load(tmp_path / "own.nc").identical(dataset)


def test_a_campaign_is_read_once_until_one_of_its_files_changes(folder, monkeypatch):
    """A caller that changes its copy changes no other's; a transcript that changed is read anew."""
    assembled, assemble = [], store.assemble
    monkeypatch.setattr(store, "assemble", lambda path: assembled.append(path) or assemble(path))
    first = store.read(folder.path)
    first["hpl_rate"][:], first.attrs["campaign"] = 0, "mine"
    assert store.read(folder.path).identical(assemble(folder.path)) and len(assembled) == 1
    file = sorted((folder.path / "transcripts").iterdir())[0]
    before = os.stat(file)
    file.write_text(file.read_text().replace("3.5", "4.5"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert 4.5 in store.read(folder.path).hpl_rate.values and len(assembled) == 2


def test_a_failed_trial_is_a_row_with_a_reason(folder):
    """A transcript that a (stricter) parser refuses becomes NaN with a reason; no row is
    dropped.
    """
    victim = small_plan().blocks[1][5].id
    file = folder.path / "transcripts" / f"{victim}.json"
    file.write_text(file.read_text().replace('"3.5\\n"', '"three\\n"'))
    dataset = store.assemble(folder.path)
    row = dataset.isel(trial=dataset.trial_id.values.tolist().index(victim))
    assert row.status == "unreadable" and "three" in row.reason.item() and row.hpl_rate.isnull()
    assert dataset.sizes["trial"] == len(small_plan().trials())


def test_each_trial_has_as_many_intervals_as_it_measured(folder, monkeypatch):
    """The dimension has the length of the longest measurement; the rest of a shorter one is NaN."""

    def parse(transcript):
        return {"goodput_interval": [1e9] * (transcript.trial.order % 3)}

    def tool_named(name):
        return replace(engine.tool_named(name), parse_trial=parse)

    monkeypatch.setattr(store, "tool_named", tool_named)
    dataset = store.assemble(folder.path)
    assert dataset.interval.values.tolist() == [1, 2]
    assert (dataset.goodput_interval.notnull().sum("interval") == dataset.order % 3).all()


def test_threads_write_and_read_datasets_side_by_side(folder, tmp_path):
    """The explorer's server is a thread beside the notebook's; netCDF's library by itself dies of
    that.
    """
    store.save(store.assemble(folder.path), tmp_path / "read.nc")
    script = (
        "import sys, xarray; from pathlib import Path\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from analysis.dataset import store\n"
        "place = Path(sys.argv[1]); dataset = store.load(place / 'read.nc')\n"
        "write = lambda name: [store.save(dataset, place / name) for _ in range(3)]\n"
        "read = lambda name: [store.load(place / name).identical(dataset) for _ in range(3)]\n"
        "jobs = [(write, '1.nc'), (read, 'read.nc'), (write, '2.nc'), (read, 'read.nc')]\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    done = list(pool.map(lambda job: job[0](job[1]), jobs))\n"
        "sys.exit(not all(done[1] + done[3]))\n"
    )
    command = [sys.executable, "-c", script, tmp_path]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_all_faults_of_a_dataset_are_named_at_once():
    """Wrong units, a missing variable, a stranger and a strange value: four faults, four
    sentences.
    """
    dataset = campaign(blocks=2).drop_vars("goodput")
    dataset["hpl_rate"].attrs["units"] = "Mflop/s"
    dataset["colour"] = ("trial", [1.0] * dataset.sizes["trial"])
    dataset["status"][0] = "no"
    faults = " ".join(schema.faults(dataset))
    assert all(word in faults for word in ("goodput", "Mflop/s", "colour", "'no'"))
    with pytest.raises(FalloffError, match="colour"):
        schema.check(dataset)


def test_what_is_no_dataset_or_campaign_is_refused(tmp_path):
    """By its name, not with a traceback of the library."""
    broken = tmp_path / "broken.nc"
    broken.write_bytes(b"\x89HDF nonsense")
    for file in (broken, tmp_path / "absent.nc"):
        with pytest.raises(FalloffError, match=file.name):
            store.load(file)
    with pytest.raises(FalloffError, match="/proc/x.nc cannot be written"):
        store.save(campaign(blocks=1), Path("/proc/x.nc"))
    with pytest.raises(FalloffError, match="not a campaign"):
        store.assemble(tmp_path)
    Folder(tmp_path / "c").create_or_check(small_plan())
    with pytest.raises(FalloffError, match="no finished trial"):
        store.assemble(tmp_path / "c")


@pytest.mark.parametrize(
    "level", ["*x*", "_y_", "a _b_", "[z](u)", "<b>", "a -- b", "-a", "# h", "$x$", "a`b", "1. x\n"]
)
def test_levels_are_words(level):
    """They stand in sentences as they are; networks and paths, which are called by their short
    names, may say anything.
    """
    dataset = campaign(blocks=2)
    for name in ("program", "interconnect"):
        held = dataset[name].copy(data=np.full(dataset.sizes["trial"], level))
        found = schema.faults(dataset.assign_coords({name: held}))
        assert len(found) == (name == "program") and all("no word" in fault for fault in found)


def test_attributes_are_tables_and_factors_settings():
    """What is no JSON, or varies what no trial has, is named and no traceback."""
    dataset = campaign(blocks=2)
    for design, fault in (
        ("{", "no table"),
        ("[]", "no table"),
        ('{"factors": {"x": [1]}}', "'x'"),
    ):
        (found,) = schema.faults(dataset.assign_attrs(design=design))
        assert fault in found
    (found,) = schema.faults(dataset.assign_attrs(title=5))
    assert "no text" in found
