"""How fast the parts are: `make bench`. Medians of several rounds on this machine, and ratios where they help."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import campaigns
import runners.campaign as engine
from analysis import contrasts, derive, report, store
from analysis.paths import REFERENCE
from local_testbed import LocalTestbed
from runners import runner_named
from runners.journal import Folder
from runners.record import Execution, Transcript, judge

ROUNDS = 5


class InstantTestbed(LocalTestbed):
    """Returns an output at once, so that what remains is the engine's own time."""

    def run(self, trial, commands):
        execution = Execution("sh", commands[0].argv, "3.5\n", "", 0, time.time(), 0.0)
        return Transcript(trial, self.name, self.evidence, (execution,), {}, {})


def seconds(action) -> list[float]:
    """The wall time of each round."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return times


def tell(what: str, times: list[float], per: int = 1, unit: str = "ms") -> None:
    """One line: the median, with the range, in ms or s."""
    scale = {"ms": 1e3, "s": 1.0}[unit] / per
    low, middle, high = min(times) * scale, statistics.median(times) * scale, max(times) * scale
    print(f"{what:<58} {middle:9.2f} {unit}  ({low:.2f} to {high:.2f}, {ROUNDS} rounds)", flush=True)


def engine_overhead() -> None:
    """A campaign of 10 blocks whose tool takes no time: transcript, fsyncs, journal, events."""
    engine.runner_named = lambda name: campaigns.ECHO
    plan = campaigns.small_plan(stopping={"blocks": 10})

    def run():
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            engine.run(plan, InstantTestbed(), Folder(Path(folder)))

    tell("engine's overhead a trial (goal: at most 10 ms)", seconds(run), per=len(plan.trials()))


def parsing() -> None:
    """Reading every HPL transcript of the reference again."""
    runner = runner_named("hpl")
    kept = [t for t in Folder(REFERENCE / "hpl_scaling-emulated").transcripts() if t.trial.runner == "hpl"]
    tell("parsing and checking one HPL transcript", seconds(lambda: [judge(t, runner.parse) for t in kept]), per=len(kept))


def analysis() -> None:
    """From stored transcripts to verdicts, and the whole report."""
    folder = REFERENCE / "hpl_scaling-emulated"
    dataset = store.assemble(folder)
    tell("reference transcripts to dataset", seconds(lambda: store.assemble(folder)), unit="s")
    tell("dataset to verdicts", seconds(lambda: contrasts.contrasts(derive.points(dataset))), unit="s")
    with tempfile.TemporaryDirectory() as out:
        tell("report (HTML and PDF) from the dataset", seconds(lambda: report.build(dataset, None, Path(out), [])), unit="s")


if __name__ == "__main__":
    engine_overhead()
    parsing()
    analysis()
    sys.exit(0)
