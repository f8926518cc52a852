"""How fast the parts are: `make bench`. Medians of several rounds on this machine."""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import browser
import campaigns
import synthetic
from local_testbed import LocalTestbed

from analysis.dataset import contrasts, derive, store
from analysis.explorer import server
from analysis.paths import REFERENCE
from analysis.report import execution
from runners.engine import campaign as engine
from runners.records.journal import Folder
from runners.records.record import Execution, Transcript

ROUNDS = 5


class InstantTestbed(LocalTestbed):
    """Returns an output at once, so that what remains is the engine's own time."""

    def run(self, trial, commands):
        execution = Execution("sh", commands[0].argv, "3.5\n", "", 0, time.time(), 0.0)
        return Transcript(trial, self.name, self.evidence, (execution,), {}, {})


def tell(what: str, action: Callable[[], object], rounds: int = ROUNDS, per: int = 1) -> list:
    """One line: the median wall time [ms] of an action, or of one `per` that it does, with the
    range; what it returned.
    """
    times, results = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        results.append(action())
        times.append(1e3 * (time.perf_counter() - begin) / per)
    low, middle, high = min(times), statistics.median(times), max(times)
    print(f"{what:<58} {middle:9.1f} ms ({low:.1f} to {high:.1f}, {rounds} rounds)", flush=True)
    return results


def campaign() -> None:
    """A campaign of 10 blocks whose tool takes no time: transcript, fsyncs, journal, events."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        engine.run(PLAN, InstantTestbed(), Folder(Path(folder)))


def report() -> None:
    """All notebooks, and the documents made of them."""
    with tempfile.TemporaryDirectory() as out:
        execution.make("stored", Path(out))


def explorer(what: str, place: Path | None) -> None:
    """In a real browser: from the address to a drawn page, and from a click to the frame with the
    answer.
    """
    with server.serve(place) as served, browser.chromium() as chromium:
        open_page = partial(browser.opened, chromium, served.address)
        *_, page = tell(f"explorer, {what}: first plot (goal: 2 s)", open_page)
        page.wait_for_timeout(3000)
        click = partial(page.locator(".compact button").first.evaluate, browser.ANSWER)
        tell(f"explorer, {what}: a level left out (goal: 150 ms)", click)
        quantity = page.get_by_label("Vertical").evaluate_handle("(one) => one")
        other = quantity.evaluate("(one) => one.options[1].value")
        tell(
            f"explorer, {what}: another quantity",
            partial(quantity.evaluate, browser.ANSWER, other),
            1,
        )


if __name__ == "__main__":
    engine.tool_named = lambda name: campaigns.ECHO
    PLAN = campaigns.small_plan(stopping={"blocks": 10})
    tell("engine's overhead a trial (goal: at most 10 ms)", campaign, per=len(PLAN.trials()))
    folder = REFERENCE / "hpl_scaling-fortinet_model"
    dataset = store.assemble(folder)
    tell("reference transcripts to dataset", partial(store.assemble, folder))
    tell("dataset to verdicts", lambda: contrasts.contrasts(derive.points(dataset)))
    tell("report of the references, all notebooks run", report, rounds=1)
    if browser.CHROMIUM:
        with tempfile.TemporaryDirectory() as many:
            store.save(synthetic.campaign(blocks=834), Path(many) / "many.nc")
            explorer("reference", None)
            explorer("10008 trials", Path(many))
    else:
        print(f"the explorer is left out: {browser.MISSING}")
