"""Show a campaign's progress: a line for each finished trial."""

from collections.abc import Sequence
from typing import IO

from runners.engine.campaign import Event
from runners.records.record import Trial
from runners.terminal import PrintableStream


class Progress:
    """A listener that prints events to a stream, and at the end once more the trials without a
    result."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = PrintableStream(stream)
        self._failed: list[str] = []

    def __call__(self, event: Event) -> None:
        """Print an event of the engine."""
        if event.kind in ("waiting", "message"):
            self._print(event.message)
        elif event.kind == "finished":
            if event.outcome.status != "ok":
                self._failed.append(f"  {outcome(event)}, {event.outcome.reason}")
            self._print(f"[{event.done}/{event.total}] {outcome(event)}, {left(event)}")
        elif event.kind == "ended":
            self._print("\n".join([ended(event, len(self._failed)), *self._failed]))
            self._failed = []

    def _print(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def outcome(event: Event) -> str:
    """Which trial has finished, and how."""
    return f"{words(event.trial, event.varied)}: {event.outcome.status}"


def ended(event: Event, failed: int) -> str:
    """What ended the campaign, and how many of its trials have no result."""
    counts = f"{event.done} trials are there, {failed} without a result"
    return f"Campaign ended by: {event.message}; {counts}"


def words(trial: Trial, varied: Sequence[str] = ()) -> str:
    """A trial's id, by which its transcript can be shown, with its network or path, number of
    nodes, and varied settings."""
    point = trial.point
    count = point.get("nodes")
    nodes = f", {count} node{'s' * (count != 1)}" if count else ""
    others = "".join(f", {name} {point[name]}" for name in varied if name in point)
    return f"{trial.id} on {point.get('interconnect', point.get('path', '?'))}{nodes}{others}"


def left(event: Event) -> str:
    """The time that a campaign still takes, by its plan and the trials that were run."""
    if event.eta_s is None:
        return "time left unknown"
    minutes = event.eta_s / 60
    return f"about {minutes:.1f} min left" if minutes >= 2 else f"about {event.eta_s:.0f} s left"
