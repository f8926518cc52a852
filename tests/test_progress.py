"""A campaign's progress: on a terminal one line that fits and is redrawn, elsewhere a line for each trial."""

import re
from io import StringIO

from campaigns import small_plan, use_echo
from local_testbed import LocalTestbed

import runners.campaign as engine
from runners import progress
from runners.campaign import Event
from runners.journal import Folder
from runners.record import Outcome


def event(done, kind="finished", eta_s=95.0):
    """So many of 19 trials are done."""
    trial = small_plan().trials()[done - 1]
    return Event(kind, trial, Outcome("ok", ""), done, 19, eta_s)


def test_the_line_fits_and_has_a_bar():
    """One description, and a bar as long as what is done; none on a narrow terminal."""
    for done in (1, 10, 19):
        line = progress.line(event(done), 79)
        assert len(line) <= 79 and line.count(event(done).trial.id) == 1
        bar = re.match(r"\[(#*)(\.*)\] ", line)
        whole = len(bar[1]) + len(bar[2])
        assert whole >= 10 and abs(len(bar[1]) / whole - done / 19) < 0.11
    narrow = progress.line(event(3, eta_s=None), 39)
    assert narrow.startswith("3/19, time left unknown: b001") and len(narrow) <= 39


class Terminal(StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True

    def seen(self):
        """The lines on the screen, as a terminal that knows CR and EL shows them."""
        return [line.rpartition("\r\x1b[K")[2] for line in self.getvalue().split("\n")]


def test_on_a_terminal_only_failures_and_the_end_stay(tmp_path, monkeypatch):
    """A campaign of which every trial of one kind fails: each stays with its reason, the bar leaves nothing."""
    use_echo(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    settings = {"say": "three and a half", "seconds": "0"}
    plan, terminal = small_plan(settings=settings, stopping={"blocks": 1}), Terminal()
    engine.run(plan, LocalTestbed(), Folder(tmp_path / "small"), progress.Progress(terminal))
    *failed, end, rest = terminal.seen()
    assert len(failed) == len(plan.trials()) and all("unreadable, " in line for line in failed)
    assert end == "Campaign ended by: blocks; 7 trials are there, 7 without a result"
    assert rest == ""


def test_elsewhere_every_trial_has_a_line(tmp_path, monkeypatch):
    """In a notebook or a file: no codes of a terminal, and who waits says so."""
    use_echo(monkeypatch)
    stream, plan = StringIO(), small_plan(stopping={"blocks": 1})
    shown = progress.Progress(stream)
    shown(Event("waiting", None, None, 0, 7, None, "campaign other is at work here"))
    engine.run(plan, LocalTestbed(), Folder(tmp_path / "small"), shown)
    first, *lines, end = stream.getvalue().splitlines()
    assert first == "campaign other is at work here" and "\x1b" not in stream.getvalue()
    assert [line.split()[1] for line in lines] == [trial.id for trial in plan.trials()]
    assert end.startswith("Campaign ended by: blocks; 7 trials are there, 0 without")
