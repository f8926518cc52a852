"""Today's run is of today, of this commit and of this machine; another is called old, and is run
again.
"""

import json
from datetime import date, datetime

import pytest
from shown import failed
from synthetic import campaign

from analysis import experiment, paths, running
from analysis.quoting import as_written
from analysis.report import summary
from analysis.report.document import Section
from analysis.statements.statement import without_reading
from analysis.watch import todays_run
from runners.records import provenance
from runners.records.journal import Folder

NOON = datetime(2026, 11, 28, 12).timestamp()
DAY = 86400
HOST = {
    "git_commit": "3dbaedb5109b",
    "git_dirty": False,
    "cpu_model": "Xeon",
    "cpus": 2,
    "kernel": "6.18.1",
    "load": 4.25,
}


@pytest.fixture(autouse=True)
def today(monkeypatch):
    """It is 28 November 2026."""

    class Clock(date):
        @classmethod
        def today(cls):
            return date.fromtimestamp(NOON)

    monkeypatch.setattr(todays_run, "date", Clock)


@pytest.mark.parametrize(
    ("sessions", "is_current"),
    [
        ([(0, {})], True),
        ([(-3600, {}), (0, {"load": 20.0, "hostname": "other"})], True),
        ([], True),  # killed before it began
        ([(-DAY, {})], False),
        ([(30 * DAY, {})], False),
        ([(-DAY, {}), (0, {})], False),
        ([(0, {"git_commit": "4444444"})], False),
        ([(0, {"git_dirty": True})], False),
        ([(0, {"cpu_model": "Epyc"})], False),
        ([(0, {"cpus": 1})], False),
        ([(0, {"kernel": "6.18.2"})], False),
        ([(0, {"kernel": "6.18.2"}), (0, {})], False),
    ],
)
def test_another_day_commit_or_machine_is_not_today(tmp_path, monkeypatch, sessions, is_current):
    """A run of today goes on, whoever killed it; each of its sessions has to be of today."""
    monkeypatch.setattr(provenance, "host", lambda: HOST)
    folder = Folder(tmp_path / "c")
    folder.path.mkdir()
    for later, changes in sessions:
        monkeypatch.setattr("runners.records.journal.time.time", lambda: NOON + later)  # noqa: B023
        folder.note("session", digest="d", testbed="t")
        folder.write_provenance({"host": {**HOST, **changes}})
    assert experiment._is_old(folder) != is_current
    if sessions:  # a record that is lost says nothing of today
        (folder.path / "provenance.json").write_text("{")
        assert experiment._is_old(folder)


@pytest.mark.parametrize("is_old", [False, True])
def test_an_old_run_is_moved_aside_and_run_again(tmp_path, monkeypatch, is_old):
    """Where it is asked for by the preset quick; nothing of it is lost. The preset stored runs
    nothing.
    """
    asked = []

    def run_campaign(plan, fresh=False):
        asked.append(fresh)
        return paths.REFERENCE / "hpl_messages-scale_model"

    monkeypatch.setattr(running, "run_campaign", run_campaign)
    monkeypatch.setattr(experiment, "_is_old", lambda folder: is_old)
    for preset in ("stored", "quick"):
        experiment.run_today(experiment.Parameters(preset, "", 0, str(tmp_path)), "mtu")
    assert asked == [is_old]


def run_of(started: str, **host):
    """A synthetic run that began then, on that host."""
    sessions = {"sessions": [{"host": {**HOST, **host}}]}
    return campaign(blocks=2).assign_attrs(started=started, provenance=json.dumps(sessions))


@pytest.mark.parametrize(
    ("started", "called"),
    [
        ("2026-11-28T12:00:00+00:00", "Today's run"),
        ("2026-10-29T12:00:00+00:00", "The run of 29 October 2026"),
        ("2026-11-27T12:00:00+00:00", "The run of 27 November 2026"),
    ],
)
def test_the_page_says_when_and_where_it_ran(started, called):
    """Date, commit, processor, cores, kernel and load; an old one is called old, in the section and
    on the first page.
    """
    run = failed(run_of(started, git_dirty=True), "machine-busy: it waited")
    facts = ("2026", "commit 3dbaedb with changes", "Xeon", "2 processors", "kernel 6.18.1")
    told = todays_run.TodaysRun(run, (), without_reading(run))
    section = Section("Scaling", {}, (), today=tuple(told.as_data()))
    sections = {"40_scaling": section}
    for text in (told.text, summary.today(sections).text):
        text = as_written(text).replace("\u00a0", " ")
        assert called in text and (called == "Today's run" or "Today's" not in text)
        assert all(fact in text for fact in (*facts, "load 4.2")) and "too busy" in text


def test_what_was_not_recorded_is_left_out():
    """Older runs have no load, others no processor's name."""
    found = todays_run.when_and_where(
        run_of("2026-11-28T12:00:00+00:00", load=None, cpu_model=None)
    )
    assert "load" not in found and "None" not in found and "kernel" in found
