"""How fast the parts are: `make bench`. Medians of several rounds on this machine, and ratios where they help."""

import statistics
import tempfile
import time
from pathlib import Path

import browser
import campaigns
import synthetic
from local_testbed import LocalTestbed

import experiment
import reporting
import runners.campaign as engine
from analysis import contrasts, derive, experiments, store
from analysis.explorer import server
from analysis.paths import REFERENCE
from runners.journal import Folder
from runners.record import Execution, Transcript

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
    print(
        f"{what:<58} {middle:9.2f} {unit}  ({low:.2f} to {high:.2f}, {ROUNDS} rounds)", flush=True
    )


def engine_overhead() -> None:
    """A campaign of 10 blocks whose tool takes no time: transcript, fsyncs, journal, events."""
    engine.runner_named = lambda name: campaigns.ECHO
    plan = campaigns.small_plan(stopping={"blocks": 10})

    def run():
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            engine.run(plan, InstantTestbed(), Folder(Path(folder)))

    tell("engine's overhead a trial (goal: at most 10 ms)", seconds(run), per=len(plan.trials()))


def analysis() -> None:
    """From stored transcripts to verdicts, and the whole report, once."""
    folder = REFERENCE / "hpl_scaling-scale_model"
    dataset = store.assemble(folder)
    tell("reference transcripts to dataset", seconds(lambda: store.assemble(folder)), unit="s")
    tell(
        "dataset to verdicts",
        seconds(lambda: contrasts.contrasts(derive.points(dataset))),
        unit="s",
    )
    names = [module.__name__.rpartition(".")[2] for module in experiments.modules()]

    def study_all():
        studies = experiment.stored_studies()
        return [getattr(studies, name) for name in names]

    tell("all references to studies", seconds(study_all), unit="s")
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        reporting.make("stored", Path(out))
        print(f"report of the references, all notebooks run {time.perf_counter() - begin:.0f} s")


def explorer() -> None:
    """In a real browser: from the address to a drawn page, and from a click to the frame with the answer."""
    if not browser.CHROMIUM:
        print(f"the explorer is left out: {browser.MISSING}")
        return
    blocks = 834  # of 12 trials
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chromium:
        store.save(synthetic.campaign(blocks=blocks), Path(folder) / "many.nc")
        for what, place in (("reference", None), (f"{12 * blocks} trials", Path(folder))):
            first, answers = [], []
            with server.serve(place) as served:
                for _ in range(ROUNDS):
                    begin = time.perf_counter()
                    page = browser.opened(chromium, served.address)
                    first.append(time.perf_counter() - begin)
                    page.wait_for_timeout(3000)
                    button = page.locator(".compact button").first
                    answers.append(button.evaluate(browser.ANSWER) / 1e3)
                    page.context.close()
            tell(f"explorer, {what}: first plot (goal: 2 s)", first, unit="s")
            tell(f"explorer, {what}: a widget's answer (goal: 100 ms)", answers)


if __name__ == "__main__":
    engine_overhead()
    analysis()
    explorer()
