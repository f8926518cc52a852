"""How often the procedure of a campaign is wrong, from thousands of synthetic campaigns (`make
calibrate`).

A synthetic campaign has a run of every network at every node count in every block, each with normal
noise of the same standard deviation (log scale), and a true fall for each primary statement. It
goes through the looks, the fixed sequence and the negative control like a real campaign. The
answers are compared with the truth.
"""

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import paths
from analysis.descriptions.campaigns import for_preset, read
from analysis.descriptions.resolution import design_of
from analysis.statistics import change, tournament
from analysis.statistics.design import Design, PlannedFall, of
from analysis.statistics.judgement import (
    DECIDED,
    FALLS_OFF,
    FLAT,
    REFUSED,
    UNDECIDED,
    answers,
    half_width,
)
from analysis.statistics.reproduction import NOT_REPRODUCED, REPRODUCED, of_blocks, reproduction
from runners.plan import WITHOUT_MESSAGES

FOLDER = paths.DATA / "calibration"
AT_MOST = 0.05  # the goal for each wrong claim


@dataclass(frozen=True)
class Judged:
    """The results of synthetic campaigns: `answers` (campaigns, statements), after `blocks`
    (campaigns,).

    `covered` says whether the first statement's last interval contains its true fall; `decided`
    (campaigns, looks) whether all statements were decided by a look.
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
    """D (campaigns, blocks, statements) of synthetic campaigns, and their negative controls in the
    same shape.

    `falls` are the statements' true falls, `run_sd` a run's standard deviation on the log scale.
    Without a negative control that array has no statements.
    """
    primary, control = design.primary, design.negative_control
    levels = list(dict.fromkeys(level for one in primary for level in (one.of, one.against)))
    counts = {n for one in primary for n in (one.start, one.end)}
    nodes = sorted(counts if control is None else counts | {control})
    noise = random.normal(0, run_sd, (campaigns, max(design.looks), len(levels), len(nodes)))
    if WITHOUT_MESSAGES in levels:  # no run, but a number of the design
        noise[:, :, levels.index(WITHOUT_MESSAGES)] = 0

    def ratio(one: PlannedFall, n: int) -> np.ndarray:
        of_nodes = noise[..., nodes.index(n)]
        return of_nodes[..., levels.index(one.of)] - of_nodes[..., levels.index(one.against)]

    differences = np.stack(
        [ratio(one, one.end) - ratio(one, one.start) for one in primary], axis=-1
    )
    controls = np.empty((*noise.shape[:2], 0))
    if control is not None:
        controls = np.stack([ratio(one, control) for one in primary], axis=-1)
    return differences + np.log1p(-np.array(falls)), controls


def judge_all(
    differences: np.ndarray, controls: np.ndarray, design: Design, falls: Sequence[float]
) -> Judged:
    """The procedure of `judgement.in_sequence` on many campaigns at once, with D and controls from
    `draw`."""
    assert design.margin is not None  # every design with a primary statement has one
    campaigns, _, statements = differences.shape
    final = np.full((campaigns, statements), UNDECIDED, dtype="U20")
    blocks, running = np.zeros(campaigns, int), np.ones(campaigns, bool)
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
        blocks[running] = look
        covered[running] = (np.abs(mean[:, 0] - np.log1p(-falls[0])) <= half[:, 0])[running]
        running = running & ~(np.isin(alone, DECIDED).all(axis=1) & ~refused)
        decided.append(~running)
    return Judged(final, blocks, covered, np.stack(decided, axis=1))


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


def error_rates(
    design: Design, falls: Sequence[float], run_sd: float, campaigns: int, seed: Sequence[int]
) -> dict[str, float]:
    """The error rates for one truth: how often any statement is wrongly called falling off (its
    fall is the margin or less) or flat (the margin or more), how often all are decided or refused,
    and the share of intervals that contain the first statement's fall."""
    judged = judge_all(
        *draw(np.random.default_rng(seed), design, falls, run_sd, campaigns), design, falls
    )
    true = np.array(falls)
    too_much = (judged.answers == FALLS_OFF) & (true <= design.margin)
    too_little = (judged.answers == FLAT) & (true >= design.margin)
    return {
        "wrong_falls_off": too_much.any(axis=1).mean(),
        "wrong_flat": too_little.any(axis=1).mean(),
        "all_decided": np.isin(judged.answers, DECIDED).all(axis=1).mean(),
        "refused": (judged.answers == REFUSED).any(axis=1).mean(),
        "coverage": judged.covered.mean(),
        "mean_blocks": judged.blocks.mean(),
    }


def load() -> dict:
    """The planted truths of data/calibration/calibration.toml, and as `procedures` the designs of
    hpl_scaling by preset."""
    settings = tomllib.loads((FOLDER / "calibration.toml").read_text(encoding="utf-8"))
    campaign = read("hpl_scaling")
    presets = {name: for_preset(campaign, name) for name in ("full", "quick")}
    designs = {name: of(design_of(one, one.stopping.record())) for name, one in presets.items()}
    return settings | {"procedures": designs}


def simulate(settings: Mapping) -> pd.DataFrame:
    """The error rates of every procedure, scatter and combination of true falls, a row each."""
    falls = (0.0, settings["margin"], settings["large_fall"])
    rows = list[dict]()
    for name, design in settings["procedures"].items():
        truths = itertools.product(falls, repeat=len(design.primary))
        for run_sd, true in itertools.product(settings["run_sds"], truths):
            seed = [settings["seed"], len(rows)]
            truth = {
                "procedure": name,
                "run_sd": run_sd,
                "falls": " ".join(f"{fall:g}" for fall in true),
            }
            rows.append(truth | error_rates(design, true, run_sd, settings["campaigns"], seed))
    return pd.DataFrame(rows)


def simulate_reproduction(settings: Mapping) -> pd.DataFrame:
    """How often a run of a few blocks reproduces a reference, by scatter, today's extra scatter,
    and the true difference (0 or the margin)."""
    sizes, rows = settings["reproduction"], list[dict]()
    true = {"none": 0.0, "margin": np.log1p(-settings["margin"])}
    for run_sd, factor, (name, difference) in itertools.product(
        settings["run_sds"], sizes["today_scatters"], true.items()
    ):
        random = np.random.default_rng([settings["seed"], 1, len(rows)])
        sd = 2 * run_sd  # D combines four runs
        reference = random.normal(0, sd, (sizes["campaigns"], sizes["reference_blocks"]))
        today = random.normal(difference, factor * sd, (sizes["campaigns"], sizes["today_blocks"]))
        kinds = [
            reproduction(of_blocks(then), of_blocks(now), settings["margin"]).kind
            for then, now in zip(reference, today)
        ]
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


def simulate_comparison(settings: Mapping) -> pd.DataFrame:
    """How often `falloff compare` answers wrongly, by number of points, blocks, scatter and truth,
    a row each.

    Truths: `none` changed, `all` points are slower by exactly the margin, or `one` of them, the
    last, by `slower`.
    """
    sizes, rows = settings["comparison"], list[dict]()
    varied = ("points", "blocks", "run_sds", "new_scatters")
    for points, blocks, run_sd, scatter, truth in itertools.product(
        *(sizes[name] for name in varied), ("none", "all", "one")
    ):
        random = np.random.default_rng([settings["seed"], 2, len(rows)])
        true = np.full(points, -change.log_margin(sizes["margin"]) if truth == "all" else 0.0)
        if truth == "one":
            true[-1] = np.log1p(-sizes["slower"])
        old, new = (random.normal(0, run_sd, (sizes["campaigns"], points, n)) for n in blocks)
        row = dict(zip(("old_blocks", "new_blocks"), blocks))
        row |= {"points": points, "run_sd": run_sd, "new_scatter": scatter, "truth": truth}
        rows.append(
            row | comparison_rates(old, true[:, None] + scatter * new, true, sizes["margin"])
        )
    return pd.DataFrame(rows)


def comparison_rates(old, new, true, margin: float) -> dict[str, float]:
    """The error rates for one truth, from log-speeds (campaigns, points, blocks) and the points'
    true changes (points,), log scale.

    `wrongly_changed`: any statement whose truth is 0 is called faster or slower. `wrongly_same`:
    any whose truth is the margin or more is called the same. `found`: the last point is called
    slower.
    """
    true = with_contrasts(true[:, None])[:, 0]
    found = change.differences(with_contrasts(old), with_contrasts(new))
    given = change.decide(found, margin).answer
    is_changed, is_same = np.isin(given, (change.SLOWER, change.FASTER)), given == change.SAME
    is_beyond = np.abs(true) >= change.log_margin(margin) * (1 - 1e-9)
    return {
        "wrongly_changed": (is_changed & (true == 0)).any(axis=1).mean(),
        "wrongly_same": (is_same & is_beyond).any(axis=1).mean(),
        "found": (given[:, old.shape[1] - 1] == change.SLOWER).mean(),
    }


def with_contrasts(points: np.ndarray) -> np.ndarray:
    """Values (..., points, blocks) of two networks, the first half being one's over nodes, followed
    by the contrasts between the two from the fewest nodes to all others. A single point has no
    contrast."""
    half = points.shape[-2] // 2
    ratios = points[..., half : 2 * half, :] - points[..., :half, :]
    return np.concatenate([points, ratios[..., 1:, :] - ratios[..., :1, :]], axis=-2)


def results() -> pd.DataFrame:
    """The stored error rates, in the form that `simulate` returns."""
    return pd.read_csv(FOLDER / "error_rates.csv")


def summary(rows: pd.DataFrame, settings: Mapping) -> pd.DataFrame:
    """The worst case over all truths, by procedure and scatter: `wrong_falls_off`, `wrong_flat`,
    `coverage`.

    `decided` is how often all statements are decided, and `blocks` the mean number of blocks, if
    the first falls by `large_fall` and the others do not fall.
    """
    keys = ["procedure", "run_sd"]
    worst = rows.groupby(keys, sort=False).agg(
        {"wrong_falls_off": "max", "wrong_flat": "max", "coverage": "min"}
    )
    expected = rows[rows.falls.str.fullmatch(f"{settings['large_fall']:g}( 0)*")].set_index(keys)
    return worst.assign(decided=expected.all_decided, blocks=expected.mean_blocks).reset_index()


def main() -> None:
    """Simulate every truth and write all tables to data/calibration."""
    from analysis.history import error_rates  # it imports the statistics

    settings = load()
    rows = simulate(settings)
    for name, table in {
        "error_rates": rows,
        "reproduction": simulate_reproduction(settings),
        "comparison": simulate_comparison(settings),
        "history_alarms": error_rates.simulate_alarms(settings),
        "history_losses": error_rates.simulate_losses(settings),
        "history_intervals": error_rates.simulate_intervals(settings),
        "tournament": tournament.simulate(settings),
    }.items():
        table.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.4f", lineterminator="\n")
    print(summary(rows, settings).to_string(index=False, float_format="{:.4f}".format))


if __name__ == "__main__":
    main()
