"""Synthetic campaigns with known falls, judged like real ones, and the tables of how often that is
wrong.

A synthetic campaign has a run of every network at every node count in every block, each with normal
noise of the same standard deviation (log scale), and a true fall for each primary statement. Every
point may also have a part that all blocks of a session share, its day's, with a standard deviation
of its own. It goes through the looks, the fixed sequence and the negative control like a real
campaign. `make calibrate` compares the answers with the truth and writes the tables of
data/calibration.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import paths
from analysis.descriptions.campaigns import for_preset, read
from analysis.descriptions.resolution import design_of
from analysis.statistics.design import Design, PlannedFall, design_from
from analysis.statistics.judgement import DECIDED, FLAT, REFUSED, UNDECIDED, answers, half_width
from runners.records.plan import WITHOUT_MESSAGES

FOLDER = paths.DATA / "calibration"
AT_MOST = 0.05  # the goal for each wrong claim


@dataclass(frozen=True)
class Verdicts:
    """The results of synthetic campaigns: `answers` (campaigns, statements), after `looked` units,
    which are blocks or sessions (campaigns,).

    `covered` says whether the first statement's last interval contains its true fall; `decided`
    (campaigns, looks) whether all statements were decided by a look.
    """

    answers: np.ndarray
    looked: np.ndarray
    covered: np.ndarray
    decided: np.ndarray


def draw(
    random: np.random.Generator,
    design: Design,
    run_sd: float,
    campaigns: int,
    day_sd: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """D (campaigns, blocks, statements) of synthetic campaigns without a true fall, and their
    negative controls in the same shape.

    `run_sd` is a run's standard deviation and `day_sd` that of what a point's runs of one session
    share, on the log scale; blocks without sessions are all of one. Without a negative control that
    array has no statements.
    """
    primary, control = design.primary, design.negative_control
    levels = list(dict.fromkeys(level for fall in primary for level in (fall.of, fall.against)))
    counts = {n for fall in primary for n in (fall.start, fall.end)}
    nodes = sorted(counts if control is None else counts | {control})
    points, of_session = (len(levels), len(nodes)), design.blocks_a_session or max(design.looks)
    sessions = max(design.looks) if design.blocks_a_session else 1
    noise = random.normal(0, run_sd, (campaigns, sessions, of_session, *points))
    if day_sd:
        noise += random.normal(0, day_sd, (campaigns, sessions, 1, *points))
    noise = noise.reshape(campaigns, -1, *points)
    if WITHOUT_MESSAGES in levels:  # no run, but a number of the design
        noise[:, :, levels.index(WITHOUT_MESSAGES)] = 0

    def ratio(fall: PlannedFall, n: int) -> np.ndarray:
        of_nodes = noise[..., nodes.index(n)]
        return of_nodes[..., levels.index(fall.of)] - of_nodes[..., levels.index(fall.against)]

    differences = np.stack(
        [ratio(fall, fall.end) - ratio(fall, fall.start) for fall in primary], axis=-1
    )
    controls = np.empty((*noise.shape[:2], 0))
    if control is not None:
        controls = np.stack([ratio(fall, control) for fall in primary], axis=-1)
    return differences, controls


def judge_all(
    differences: np.ndarray, controls: np.ndarray, design: Design, falls: Sequence[float]
) -> Verdicts:
    """The procedure of `judgement.in_sequence` on many campaigns at once, with D and controls from
    `draw`, to which the true falls are added."""
    assert design.margin is not None  # every design with a primary statement has one
    campaigns, _, statements = differences.shape
    differences = differences + np.log1p(-np.array(falls))
    if design.blocks_a_session:
        differences, controls = (
            values.reshape(campaigns, -1, design.blocks_a_session, values.shape[-1]).mean(axis=2)
            for values in (differences, controls)
        )
    final = np.full((campaigns, statements), UNDECIDED, dtype="U20")
    looked, running = np.zeros(campaigns, int), np.ones(campaigns, bool)
    covered, decided = np.zeros(campaigns, bool), []
    for look in design.looks:
        mean, half = _interval(differences, look, design)
        alone = answers(mean, half, design.margin)
        control, control_half = _interval(controls, look, design)
        refused = (np.abs(control) > control_half) & (
            answers(control, control_half, design.margin) != FLAT
        )
        refused = refused.any(axis=1)
        final[running] = _counted(alone, refused, design)[running]
        looked[running] = look
        covered[running] = (np.abs(mean[:, 0] - np.log1p(-falls[0])) <= half[:, 0])[running]
        running = running & ~(np.isin(alone, DECIDED).all(axis=1) & ~refused)
        decided.append(~running)
    return Verdicts(final, looked, covered, np.stack(decided, axis=1))


def _interval(values: np.ndarray, look: int, design: Design) -> tuple[np.ndarray, np.ndarray]:
    values = values[:, :look]
    return values.mean(axis=1), half_width(values.std(axis=1, ddof=1), look, design.one_sided)


def _counted(alone: np.ndarray, refused: np.ndarray, design: Design) -> np.ndarray:
    counted, goes_on = alone.astype("U20"), np.ones(len(alone), bool)
    for number, statement in enumerate(design.primary):
        counted[~goes_on, number] = UNDECIDED
        goes_on &= np.isin(
            alone[:, number], [statement.expected] if statement.expected else DECIDED
        )
    counted[refused] = REFUSED
    return counted


def load() -> dict:
    """The planted truths of data/calibration/calibration.toml, and as `procedures` the designs of
    hpl_scaling by preset."""
    settings = tomllib.loads((FOLDER / "calibration.toml").read_text(encoding="utf-8"))
    campaign = read("hpl_scaling")
    presets = {name: for_preset(campaign, name) for name in ("full", "quick")}
    designs = {
        name: design_from(design_of(preset, preset.stopping.record()))
        for name, preset in presets.items()
    }
    return settings | {"procedures": designs}


def table(name: str) -> pd.DataFrame:
    """A table of stored error rates; data/calibration/calibration.toml says which there are."""
    return pd.read_csv(FOLDER / f"{name}.csv")
