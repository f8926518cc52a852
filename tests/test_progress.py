"""A campaign's progress: on a terminal one line that fits and is redrawn, elsewhere a line for each
trial.
"""

import os
import pty
import re
import termios
from dataclasses import replace
from io import StringIO

import pytest
from campaigns import small_plan, use_echo
from local_testbed import LocalTestbed

from analysis.commands.progress import Bar
from runners.engine import campaign as engine
from runners.engine.campaign import Event
from runners.engine.progress import Progress
from runners.records.journal import Folder
from runners.records.record import Outcome


def event(done, kind="finished", eta_s=95.0):
    """So many of 19 trials are done."""
    trial = small_plan().trials()[done - 1]
    return Event(kind, trial, Outcome("ok", ""), done, 19, eta_s)


class Terminal(StringIO):
    """A stream of a terminal's width."""

    def __init__(self, pseudo):
        super().__init__()
        self.fileno = lambda: pseudo

    def is_wide(self, columns):
        """Make it so wide."""
        termios.tcsetwinsize(self.fileno(), (24, columns))

    def seen(self):
        """The lines on the screen, as a terminal that knows CR shows them."""
        return [overwritten(line.split("\r")) for line in self.getvalue().split("\n")]


def overwritten(parts):
    """What is left of texts that begin in the same column, one after the other."""
    line = ""
    for part in parts:
        line = part + line[len(part) :]
    return line.rstrip()


@pytest.fixture
def terminal():
    """A terminal of 80 columns."""
    ends = pty.openpty()
    terminal = Terminal(ends[1])
    terminal.is_wide(80)
    yield terminal
    for end in ends:
        os.close(end)


def test_the_line_fits_and_has_a_bar(terminal):
    """One description, and a bar as long as what is done; on a narrow terminal the description is
    cut off.
    """
    show = Bar(terminal)
    for done in (1, 10, 19):
        show(event(done))
        line = terminal.seen()[-1]
        assert len(line) <= 79 and line.count(event(done).trial.id) == 1
        count, bar = re.match(r"(\d+)/19 \[([#0-9 ]+)\] about 95 s left: ", line).groups()
        assert int(count) == done and len(bar) >= 10
        assert abs(bar.count("#") / len(bar) - done / 19) <= 1 / len(bar)
    terminal.is_wide(40)
    show(event(3, eta_s=None))
    narrow = terminal.seen()[-1]
    assert re.match(r"3/19 \[.\] time left unknown: b001", narrow) and len(narrow) <= 39


def test_the_bar_shows_text_and_leaves_nothing(terminal):
    """Controls in a network's name or a message do not arrive; a closed bar is gone, as after
    Ctrl+C.
    """
    show = Bar(terminal)
    plain = event(3)
    point = {**plain.trial.point, "interconnect": "\x1b]0;title\x07\x9b2J\rgige\u202e"}
    show(replace(plain, trial=replace(plain.trial, point=point)))
    show(Event("message", None, None, 3, 19, None, "\r\x1b[Ka\x1b[31mb"))
    assert terminal.seen()[0] == "ab" and "on gige, " in terminal.seen()[1]
    assert not set(terminal.getvalue()) & set("\x1b\x07\x9b\u202e")
    show.close()
    assert terminal.seen() == ["ab", ""]


def test_on_a_terminal_only_failures_and_the_end_stay(terminal, tmp_path, monkeypatch):
    """A campaign of which every trial of one kind fails: each stays with its reason, the bar leaves
    nothing.
    """
    use_echo(monkeypatch)
    settings = {"say": "three and a half", "seconds": "0"}
    plan = small_plan(settings=settings, stopping={"blocks": 1})
    engine.run(plan, LocalTestbed(), Folder(tmp_path / "small"), Bar(terminal))
    *failed, end, rest = terminal.seen()
    assert len(failed) == len(plan.trials()) and all("unreadable, " in line for line in failed)
    assert end == "Campaign ended by: blocks; 7 trials are there, 7 without a result"
    assert rest == ""


def test_elsewhere_every_trial_has_a_line(tmp_path, monkeypatch):
    """In a notebook or a file: no codes of a terminal, and who waits says so."""
    use_echo(monkeypatch)
    stream, plan = StringIO(), small_plan(stopping={"blocks": 1})
    shown = Progress(stream)
    shown(Event("waiting", None, None, 0, 7, None, "campaign other is at work here"))
    engine.run(plan, LocalTestbed(), Folder(tmp_path / "small"), shown)
    first, *lines, end = stream.getvalue().splitlines()
    assert first == "campaign other is at work here" and "\x1b" not in stream.getvalue()
    assert [line.split()[1] for line in lines] == [trial.id for trial in plan.trials()]
    assert end.startswith("Campaign ended by: blocks; 7 trials are there, 0 without")
