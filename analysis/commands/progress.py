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
        self._terminal, self._bar, self._failed = terminal, None, 0
        _Bar.set_lock(RLock())  # tqdm's own lock is also for other processes

    def __call__(self, event: Event) -> None:
        """Show an event of the engine."""
        if event.kind in ("waiting", "message"):
            self._say(event.message)
        elif event.kind == "started":
            self._draw(event)
        elif event.kind == "finished":
            if event.outcome.status != "ok":
                self._failed += 1
                self._say(f"  {outcome(event)}, {event.outcome.reason}")
            self._draw(event)
        elif event.kind == "ended":
            self.close()
            self._say(ended(event, self._failed))
            self._failed = 0

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        self._terminal.write(f"{as_written(line)}\n")
        self._terminal.flush()
        if self._bar is not None:
            self._bar.refresh()

    def _draw(self, event: Event) -> None:
        line = as_written(f"{left(event)}: {words(event.trial, event.varied)}")
        if self._bar is None:
            self._bar = _Bar(
                desc=line,
                initial=event.done,
                total=event.total,
                file=self._terminal,
                leave=False,
                dynamic_ncols=True,
                bar_format="{n_fmt}/{total_fmt} [{bar}] {desc}",
            )
        else:
            self._bar.n = event.done
            self._bar.set_description_str(line)


@contextmanager
def shown() -> Iterator[Listener]:
    """A listener that shows the progress of campaigns on standard output."""
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        # Past the filter of falloff.py, which takes out what moves the cursor; the bar filters its
        # own texts.
        with closing(Bar(sys.__stdout__)) as bar:
            yield bar
    else:
        yield Progress(sys.stdout)
