"""How often the very procedure of a campaign is wrong: thousands of synthetic campaigns, `make calibrate`.

A synthetic campaign has a run of every network at every node count in every block, each with normal noise of the same
standard deviation (log scale), and a true fall for each primary statement. It goes through the looks, the fixed
sequence and the negative control as a real one does. What it is judged to be is compared with the truth.
"""

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import paths
from analysis.statistics.design import Design, Statement, of
from analysis.statistics.judgement import (
    DECIDED,
    FALLS_OFF,
    FLAT,
    REFUSED,
    UNDECIDED,
    answers,
    half_width,
)
from analysis.statistics.reproduction import NOT_REPRODUCED, REPRODUCED, reproduction

FOLDER = paths.DATA / "calibration"
AT_MOST = 0.05  # the goal for each wrong claim


@dataclass(frozen=True)
class Judged:
    """What becomes of synthetic campaigns: `answers` (campaigns, statements), after `blocks` (campaigns,).

    `covered` says whether the first statement's last interval holds its true fall, `decided` (campaigns, looks)
    whether all statements were decided by a look.
    """

    answers: np.ndarray
    blocks: np.ndarray
    covered: np.ndarray
    decided: np.ndarray


def draw(
    random: np.random.Generator,
    design: Design,
    falls: Sequence[float],
    run_sd: float,
    campaigns: int,
) -> tuple[np.ndarray, np.ndarray]:
    """D (campaigns, blocks, statements) of synthetic campaigns, and their negative controls of the same shape.

    `falls` are the statements' true falls, `run_sd` a run's standard deviation on the log scale. Without a negative
    control that array has no statements.
    """
    levels = list(dict.fromkeys(level for it in design.primary for level in (it.of, it.against)))
    nodes = sorted(
        {n for it in design.primary for n in (it.start, it.end)}
        | {design.negative_control} - {None}
    )
    noise = random.normal(0, run_sd, (campaigns, max(design.looks), len(levels), len(nodes)))

    def ratio(it: Statement, n: int) -> np.ndarray:
        at = nodes.index(n)
        return noise[..., levels.index(it.of), at] - noise[..., levels.index(it.against), at]

    differences = np.stack(
        [ratio(it, it.end) - ratio(it, it.start) for it in design.primary], axis=-1
    )
    gated = design.primary if design.negative_control is not None else ()
    controls = [ratio(it, design.negative_control) for it in gated]
    empty = np.empty((*noise.shape[:2], 0))
    return differences + np.log1p(-np.array(falls)), np.stack(
        controls, axis=-1
    ) if controls else empty


def judge_all(
    differences: np.ndarray, controls: np.ndarray, design: Design, falls: Sequence[float]
) -> Judged:
    """The procedure of `sequence` on many campaigns at once, with D and controls as `draw` gives them."""
    campaigns, _, statements = differences.shape
    final = np.full((campaigns, statements), UNDECIDED, dtype="U20")
    blocks, running = np.zeros(campaigns, int), np.ones(campaigns, bool)
    covered, decided = np.zeros(campaigns, bool), []
    for look in design.looks:
        mean, half = _interval(differences[:, :look], look, design.one_sided)
        alone = answers(mean, half, design.margin)
        refused = _refused(controls[:, :look], look, design)
        final[running] = _counted(alone, refused, [it.expected for it in design.primary])[running]
        blocks[running] = look
        covered[running] = (np.abs(mean[:, 0] - np.log1p(-falls[0])) <= half[:, 0])[running]
        running = running & ~(np.isin(alone, DECIDED).all(axis=1) & ~refused)
        decided.append(~running)
    return Judged(final, blocks, covered, np.stack(decided, axis=1))


def _interval(values: np.ndarray, blocks: int, one_sided: float) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=1), half_width(values.std(axis=1, ddof=1), blocks, one_sided)


def _refused(controls: np.ndarray, look: int, design: Design) -> np.ndarray:
    mean, half = _interval(controls, look, design.one_sided)
    excluded = (np.abs(mean) > half) & (answers(mean, half, design.margin) != FLAT)
    return excluded.any(axis=1)


def _counted(alone: np.ndarray, refused: np.ndarray, expected: Sequence[str]) -> np.ndarray:
    counted, goes_on = alone.astype("U20"), np.ones(len(alone), bool)
    for number, wanted in enumerate(expected):
        counted[~goes_on, number] = UNDECIDED
        goes_on = goes_on & (
            alone[:, number] == wanted if wanted else np.isin(alone[:, number], DECIDED)
        )
    counted[refused] = REFUSED
    return counted


def error_rates(
    design: Design, falls: Sequence[float], run_sd: float, campaigns: int, seed: Sequence[int]
) -> dict:
    """The rates of one truth: how often any statement is wrongly called falling off (its fall is the margin or less)
    or flat (the margin or more), how often all are decided or refused, and the share of intervals that hold the
    first statement's fall."""
    judged = judge_all(
        *draw(np.random.default_rng(seed), design, falls, run_sd, campaigns), design, falls
    )
    true = np.array(falls)
    return {
        "wrong_falls_off": ((judged.answers == FALLS_OFF) & (true <= design.margin))
        .any(axis=1)
        .mean(),
        "wrong_flat": ((judged.answers == FLAT) & (true >= design.margin)).any(axis=1).mean(),
        "all_decided": np.isin(judged.answers, DECIDED).all(axis=1).mean(),
        "refused": (judged.answers == REFUSED).any(axis=1).mean(),
        "coverage": judged.covered.mean(),
        "mean_blocks": judged.blocks.mean(),
    }


def load() -> dict:
    """What data/calibration/calibration.toml plants, with its `procedures` as designs by name."""
    settings = tomllib.loads((FOLDER / "calibration.toml").read_text(encoding="utf-8"))
    return settings | {
        "procedures": {name: designed(it) for name, it in settings["procedures"].items()}
    }


def designed(procedure: Mapping) -> Design:
    """A procedure as a design, its node counts being those of its statements and its control."""
    nodes = {it[key] for it in procedure["primary"] for key in ("from", "to")}
    nodes |= {procedure["negative_control"]} if "negative_control" in procedure else set()
    return of({"negative_control": None, **procedure, "factors": {"nodes": sorted(nodes)}})


def simulate(settings: Mapping) -> pd.DataFrame:
    """The error rates of every procedure, scatter and combination of true falls: a row each."""
    falls = (0.0, settings["margin"], settings["large_fall"])
    rows = []
    for name, design in settings["procedures"].items():
        for run_sd, true in itertools.product(
            settings["run_sds"], itertools.product(falls, repeat=len(design.primary))
        ):
            seed = [settings["seed"], len(rows)]
            about = {
                "procedure": name,
                "run_sd": run_sd,
                "falls": " ".join(f"{fall:g}" for fall in true),
            }
            rows.append(about | error_rates(design, true, run_sd, settings["campaigns"], seed))
    return pd.DataFrame(rows)


def simulate_reproduction(settings: Mapping) -> pd.DataFrame:
    """How often a run of a few blocks reproduces a reference: by scatter, how much more today scatters, and the true
    difference (0 or the margin)."""
    sizes, rows = settings["reproduction"], []
    true = {"none": 0.0, "margin": np.log1p(-settings["margin"])}
    for run_sd, factor, (name, difference) in itertools.product(
        settings["run_sds"], sizes["today_scatters"], true.items()
    ):
        random = np.random.default_rng([settings["seed"], 1, len(rows)])
        sd = 2 * run_sd  # D holds four runs
        reference = random.normal(0, sd, (sizes["campaigns"], sizes["reference_blocks"]))
        today = random.normal(difference, factor * sd, (sizes["campaigns"], sizes["today_blocks"]))
        kinds = [reproduction("", *both, settings["margin"]).kind for both in zip(reference, today)]
        rows.append(
            {
                "run_sd": run_sd,
                "today_scatter": factor,
                "difference": name,
                "reproduced": kinds.count(REPRODUCED) / len(kinds),
                "not_reproduced": kinds.count(NOT_REPRODUCED) / len(kinds),
            }
        )
    return pd.DataFrame(rows)


def results() -> pd.DataFrame:
    """The stored error rates, as `simulate` returns them."""
    return pd.read_csv(FOLDER / "error_rates.csv")


def summary(rows: pd.DataFrame, settings: Mapping) -> pd.DataFrame:
    """The worst of all truths by procedure and scatter, and what the procedure finds where the truth is as expected.

    `wrong_falls_off`, `wrong_flat` and `coverage` are the worst; `decided` is how often all statements are decided,
    and `blocks` the mean number of blocks, where the first falls by `large_fall` and the others do not.
    """
    worst = rows.groupby(["procedure", "run_sd"], sort=False).agg(
        wrong_falls_off=("wrong_falls_off", "max"),
        wrong_flat=("wrong_flat", "max"),
        coverage=("coverage", "min"),
    )
    expected = rows[
        [
            it.split() == [f"{settings['large_fall']:g}", *["0"] * (len(it.split()) - 1)]
            for it in rows.falls
        ]
    ].set_index(["procedure", "run_sd"])
    return worst.assign(decided=expected.all_decided, blocks=expected.mean_blocks).reset_index()


def main() -> None:
    """Simulate every truth and write both tables to data/calibration."""
    settings = load()
    rows = simulate(settings)
    for name, table in {
        "error_rates": rows,
        "reproduction": simulate_reproduction(settings),
    }.items():
        file = FOLDER / f"{name}.csv"
        part = file.with_name(f"{file.name}.part")
        part.write_text(
            table.to_csv(index=False, float_format="%.4f", lineterminator="\n"), encoding="utf-8"
        )
        part.replace(file)
    print(summary(rows, settings).to_string(index=False, float_format="{:.4f}".format))


if __name__ == "__main__":
    main()
