"""How often verdicts, reproductions and comparisons are wrong, from synthetic campaigns with a
planted truth.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.statistics import same
from analysis.statistics.calibration import draw, judge_all
from analysis.statistics.design import Design
from analysis.statistics.intervals import welch
from analysis.statistics.judgement import DECIDED, FALLS_OFF, FLAT, REFUSED
from analysis.watch.reproducing import Estimate


def error_rates(
    differences: np.ndarray, controls: np.ndarray, design: Design, falls: Sequence[float]
) -> dict[str, float]:
    """The error rates for one truth, with D and controls from `draw`: how often any statement is
    wrongly called falling off (its fall is the margin or less) or flat (the margin or more), how
    often all are decided or refused, and the share of intervals that contain the first statement's
    fall."""
    judged = judge_all(differences, controls, design, falls)
    true = np.array(falls)
    too_much = (judged.answers == FALLS_OFF) & (true <= design.margin)
    too_little = (judged.answers == FLAT) & (true >= design.margin)
    return {
        "wrong_falls_off": too_much.any(axis=1).mean(),
        "wrong_flat": too_little.any(axis=1).mean(),
        "all_decided": np.isin(judged.answers, DECIDED).all(axis=1).mean(),
        "refused": (judged.answers == REFUSED).any(axis=1).mean(),
        "coverage": judged.covered.mean(),
        "mean_looked": judged.looked.mean(),
    }


def simulate(settings: Mapping) -> pd.DataFrame:
    """The error rates of every procedure, scatter, day's part and combination of true falls, a row
    each. Days are planted where looks count sessions; else they are in no interval."""
    falls = (0.0, settings["margin"], settings["large_fall"])
    rows = list[dict]()
    for name, design in settings["procedures"].items():
        days = settings["days"] if design.blocks_a_session else [0.0]
        for run_sd, day in itertools.product(settings["run_sds"], days):
            random = np.random.default_rng([settings["seed"], len(rows)])
            drawn = draw(random, design, run_sd, settings["campaigns"], day * run_sd)
            for true in itertools.product(falls, repeat=len(design.primary)):
                truth = {"procedure": name, "run_sd": run_sd, "day": day}
                truth["falls"] = " ".join(f"{fall:g}" for fall in true)
                rows.append(truth | error_rates(*drawn, design, true))
    return pd.DataFrame(rows)


def of_blocks(values, exact: bool = False) -> Estimate:
    """The estimate from log values of shape (blocks,); NaN is left out. `exact` values do not
    scatter, as in a simulation."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    n = len(values)
    scatter = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return Estimate(float(values.mean()) if n else math.nan, 0.0 if exact and n else scatter, n)


def simulate_reproduction(settings: Mapping) -> pd.DataFrame:
    """How often a run of a few blocks reproduces a reference, by the number of statements judged
    together, scatter, today's extra scatter, and the true difference: `none`, all by the `margin`,
    or `one`, the last, by `slower`.

    `reproduced`, `not_reproduced`: the last statement. `any_not`: any statement is not reproduced.
    """
    sizes, rows = settings["reproduction"], list[dict]()
    varied = [settings["run_sds"], *(sizes[name] for name in ("today_scatters", "statements"))]
    for run_sd, factor, number, truth in itertools.product(*varied, ("none", "margin", "one")):
        random = np.random.default_rng([settings["seed"], 1, len(rows)])
        true = np.full(number, np.log1p(-settings["margin"]) if truth == "margin" else 0.0)
        if truth == "one":
            true[-1] = np.log1p(-sizes["slower"])
        shape, sd = (sizes["campaigns"], number), 2 * run_sd  # D combines four runs
        reference = random.normal(0, sd, (*shape, sizes["reference_blocks"]))
        today = random.normal(true[:, None], factor * sd, (*shape, sizes["today_blocks"]))
        answers = reproduced(reference, today, settings["margin"])
        is_not = np.isin(answers, (same.SLOWER, same.FASTER))
        rows.append(
            {
                "statements": number,
                "run_sd": run_sd,
                "today_scatter": factor,
                "difference": truth,
                "reproduced": (answers[:, -1] == same.SAME).mean(),
                "not_reproduced": is_not[:, -1].mean(),
                "any_not": is_not.any(axis=1).mean(),
            }
        )
    return pd.DataFrame(rows)


def reproduced(reference: np.ndarray, today: np.ndarray, margin: float) -> np.ndarray:
    """The answers of `reproducing.judged` on blocks of log values, shape (..., statements,
    blocks)."""
    sides = reference, today
    squares = np.array([side.var(axis=-1, ddof=1) / side.shape[-1] for side in sides])
    counts = np.array([side.shape[-1] for side in sides]).reshape(2, *(1,) * (today.ndim - 1))
    means = today.mean(axis=-1) - reference.mean(axis=-1)
    differences = same.Differences(means, *welch(squares, counts))
    return same.decide(differences, margin, margin, each_alone=True).answer


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
        true = np.full(points, -same.log_margin(sizes["margin"]) if truth == "all" else 0.0)
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
    found = same.differences(with_contrasts(old), with_contrasts(new))
    given = same.decide(found, margin).answer
    is_changed, is_same = np.isin(given, (same.SLOWER, same.FASTER)), given == same.SAME
    is_beyond = np.abs(true) >= same.log_margin(margin) * (1 - 1e-9)
    return {
        "wrongly_changed": (is_changed & (true == 0)).any(axis=1).mean(),
        "wrongly_same": (is_same & is_beyond).any(axis=1).mean(),
        "found": (given[:, old.shape[1] - 1] == same.SLOWER).mean(),
    }


def with_contrasts(points: np.ndarray) -> np.ndarray:
    """Values (..., points, blocks) of two networks, the first half being one's over nodes, followed
    by the contrasts between the two from the fewest nodes to all others. A single point has no
    contrast."""
    half = points.shape[-2] // 2
    ratios = points[..., half : 2 * half, :] - points[..., :half, :]
    return np.concatenate([points, ratios[..., 1:, :] - ratios[..., :1, :]], axis=-2)
