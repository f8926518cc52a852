"""Show a campaign's progress: a bar on a terminal, elsewhere a line for each finished trial."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import RLock
from typing import IO

from tqdm import tqdm

from analysis.quoting import as_written
from runners.engine.campaign import Event, Listener
from runners.engine.progress import Progress, ended, left, outcome, words


class _Bar(tqdm):
    monitor_interval = 0  # no thread beside the campaign: each event redraws the bar


class Bar:
    """A listener that draws a bar on a terminal; trials without a result stay visible above it."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal, self._failed = terminal, 0
        self._bar: _Bar | None = None
        _Bar.set_lock(RLock())  # tqdm's own lock is also for other processes

    def __call__(self, event: Event) -> None:
        """Show an event of the engine."""
        if event.outcome and event.outcome.status != "ok":
            self._failed += 1
            self._say(f"  {outcome(event)}, {event.outcome.reason}")
        if event.trial:
            self._draw(event, words(event.trial, event.varied))
        elif event.kind == "ended":
            self.close()
            self._say(ended(event, self._failed))
            self._failed = 0
        else:
            self._say(event.message)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _say(self, line: str) -> None:
        _Bar.write(as_written(line), self._terminal)
        self._terminal.flush()

    def _draw(self, event: Event, trial: str) -> None:
        if self._bar is None:
            self._bar = _Bar(
                total=event.total,
                file=self._terminal,
                leave=False,
                dynamic_ncols=True,
                bar_format="{n_fmt}/{total_fmt} [{bar}] {desc}",
            )
        self._bar.n = event.done
        self._bar.set_description_str(as_written(f"{left(event)}: {trial}"))


@contextmanager
def shown() -> Iterator[Listener]:
    """A listener that shows the progress of campaigns on standard output."""
    if sys.stdout.isatty() and sys.__stdout__ and os.environ.get("TERM", "dumb") != "dumb":
        # Past the filter of falloff.py, which takes out what moves the cursor; the bar filters its
        # own texts.
        with closing(Bar(sys.__stdout__)) as bar:
            yield bar
    else:
        yield Progress(sys.stdout)
