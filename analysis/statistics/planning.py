"""What a campaign costs until it is decided, and how probable a decision is at each look."""

from dataclasses import dataclass

import numpy as np

from analysis.statistics.calibration import draw, judge_all
from analysis.statistics.design import Design

RUN_SDS = (0.005, 0.01, 0.02, 0.03)  # what is planned with where a run's scatter is not known
RUNS_IN_D = 4  # a block's D is of four runs, so that its standard deviation is twice a run's
CAMPAIGNS, SEED = 20_000, 20261122


@dataclass(frozen=True)
class Effort:
    """What planning starts from; what is not known is None.

    `block_s` is the time of one valid block [s], that of invalid ones included; `survey_s` what precedes the blocks
    [s]; `run_sd` a run's standard deviation (log scale); `source` says what they are from. `falls` are the
    statements' assumed true falls, and `assumed` says of each where it is from.
    """

    block_s: float | None
    survey_s: float
    run_sd: float | None
    source: str
    falls: tuple[float, ...]
    assumed: tuple[str, ...]

    def minutes(self, blocks: int) -> float | None:
        """The time of a campaign of so many valid blocks [min]."""
        return None if self.block_s is None else (self.survey_s + blocks * self.block_s) / 60


def decided(design: Design, effort: Effort, run_sd: float) -> np.ndarray:
    """The probability that all statements are decided by each look, at this scatter of a run."""
    drawn = draw(np.random.default_rng(SEED), design, effort.falls, run_sd, CAMPAIGNS)
    return judge_all(*drawn, design, effort.falls).decided.mean(axis=0)


def run_sd(differences: np.ndarray) -> float | None:
    """A run's standard deviation from D, shape (statements, blocks), pooled; None with fewer than two blocks."""
    whole = differences[:, np.isfinite(differences).all(axis=0)]
    if whole.shape[1] < 2:
        return None
    return float(np.sqrt(whole.var(axis=1, ddof=1).mean() / RUNS_IN_D))


def text(design: Design, effort: Effort) -> str:
    """The plan as a table and sentences for a terminal."""
    assert design.margin is not None  # as of every design with a primary statement
    sds = RUN_SDS if effort.run_sd is None else (effort.run_sd,)
    lines = [
        f"margin {100 * design.margin:g} %, one-sided level of each look {100 * design.one_sided:g} %"
    ]
    for statement, fall, source in zip(design.primary, effort.falls, effort.assumed):
        expected = f", expected: {statement.expected}" if statement.expected else ""
        lines.append(f"{statement}: fall of {100 * fall:.1f} % ({source}){expected}")
    lines += [
        f"from: {effort.source}",
        f"{'blocks':>6} {'minutes':>8}  probability that all are decided, by a run's scatter",
        f"{'':>6} {'':>8}  {'  '.join(f'{100 * sd:5.2f} %' for sd in sds)}",
    ]
    by_sd = [decided(design, effort, sd) for sd in sds]
    minutes = [effort.minutes(look) for look in design.looks]
    for look, cost, probabilities in zip(design.looks, minutes, zip(*by_sd)):
        known = "?" if cost is None else f"{cost:.0f}"
        lines.append(f"{look:>6} {known:>8}  {'  '.join(f'{p:7.3f}' for p in probabilities)}")
    if effort.block_s is None:
        return "\n".join(
            [*lines, "How long a block takes is not known: run one with --repeats 1 first."]
        )
    for sd, decisions in zip(sds, by_sd):
        ends = np.diff([0.0, *decisions[:-1], 1.0])
        mean = f"on average: {ends @ minutes:.0f}"
        lines.append(f"minutes to the end at a scatter of {100 * sd:.2f} %, {mean}")
    return "\n".join(lines)
