"""Show a campaign's progress: one line that is redrawn on a terminal, else a line for each finished
trial."""

import os
import shutil
from typing import IO, List, Sequence

from runners.campaign import Event
from runners.record import Trial
from runners.terminal import Printed

_LONGEST_BAR, _SHORTEST_BAR = 30, 10  # in characters


class Progress:
    """A listener that prints events to a stream; trials without a result stay visible."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = Printed(stream)
        self._redraws = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._failed: List[str] = []

    def __call__(self, event: Event) -> None:
        """Show an event of the engine."""
        if event.kind in ("waiting", "told"):
            self._print(f"{event.message}\n")
        elif event.kind == "started" and self._redraws:
            self._draw(event)
        elif event.kind == "finished":
            status = f"{words(event.trial, event.varied)}: {event.outcome.status}"
            if event.outcome.status != "ok":
                self._failed.append(f"  {status}, {event.outcome.reason}\n")
                if self._redraws:
                    self._print(self._failed[-1])
            if self._redraws:
                self._draw(event)
            else:
                self._print(f"[{event.done}/{event.total}] {status}, {_left(event)}\n")
        elif event.kind == "ended":
            counts = f"{event.done} trials are there, {len(self._failed)} without a result"
            failed = "" if self._redraws else "".join(self._failed)
            self._print(f"Campaign ended by: {event.message}; {counts}\n{failed}")

    def _print(self, text: str) -> None:
        if self._redraws:
            self._stream.clear()
        self._stream.write(text)
        self._stream.flush()

    def _draw(self, event: Event) -> None:
        self._print(line(event, shutil.get_terminal_size().columns - 1))


def line(event: Event, columns: int) -> str:
    """An event in one line of at most `columns` columns: a bar if there is room, the count, the
    time left, the trial."""
    text = f"{event.done}/{event.total}, {_left(event)}: {words(event.trial, event.varied)}"
    room = min(columns - len(text) - 3, _LONGEST_BAR)
    if room < _SHORTEST_BAR:
        return text[:columns]
    full = room * event.done // event.total
    return f"[{'#' * full}{'.' * (room - full)}] {text}"


def words(trial: Trial, varied: Sequence[str] = ()) -> str:
    """A trial's id, by which its transcript can be shown, with its network or path, number of
    nodes, and varied settings."""
    point = trial.point
    count = point.get("nodes")
    nodes = f", {count} node{'s' * (count != 1)}" if count else ""
    others = "".join(f", {name} {point[name]}" for name in varied if name in point)
    return f"{trial.id} on {point.get('interconnect', point.get('path', '?'))}{nodes}{others}"


def _left(event: Event) -> str:
    if event.eta_s is None:
        return "time left unknown"
    minutes = event.eta_s / 60
    return f"about {minutes:.1f} min left" if minutes >= 2 else f"about {event.eta_s:.0f} s left"
