"""What prose may quote of the verdict's error rates (stored synthetic campaigns) and of its power."""

import math
from collections.abc import Mapping

import pandas as pd

from analysis.calibration.error_rates import Calibration
from analysis.calibration.goals import AT_MOST, COVERAGE, ERRORS, at_the_goal, missed, worst
from analysis.calibration.stopping import RULES
from analysis.inference import planning, power
from analysis.inference.verdict import Verdict


def collect(calibration: Calibration, results: pd.DataFrame, primary: Verdict | None) -> dict:
    """All facts: `results` is `error_rates.results`, `primary` the verdict of the scaling campaign, if any.

    Without a standard deviation in `primary` (fewer than two blocks) `power` is None.
    """
    return {
        "settings": dict(calibration.settings),
        "margin": calibration.design.margin,
        "reference_sigma": calibration.reference_sigma,
        "truths": len(calibration.truths()),
        "cells": len(results),
        "least_blocks": min(calibration.settings["blocks"]),
        "most_blocks": max(calibration.settings["blocks"]),
        "coverage_goal": COVERAGE,
        "error_goal": AT_MOST,
        "errors": ERRORS,
        "monte_carlo": math.sqrt(AT_MOST * (1 - AT_MOST) / calibration.settings["campaigns"]),
        "rules": {rule: _rule(results[results.rule == rule]) for rule in RULES},
        "power": _power(primary) if primary and primary.sd else None,
    }


def _rule(results: pd.DataFrame) -> dict:
    coverage = results.coverage_95
    measures = ("coverage_95", "flat", "falls_off")
    families = ("wrong_flat", "wrong_falls_off")
    return {
        "coverage": (float(coverage.min()), float(coverage.max())),
        **{measure: _goal(at_the_goal(results, measure), measure) for measure in measures},
        "alone": max(float(at_the_goal(results, name)[name].max()) for name in families),
        "holm": max(float(at_the_goal(results, name)[f"{name}_holm"].max()) for name in families),
    }


def _goal(cells: pd.DataFrame, measure: str) -> dict:
    cell, misses = worst(cells, measure), missed(cells, measure)
    return {
        "rate": float(cell[measure]),
        "error": float(cell[f"{measure}_se"]),
        "noise": str(cell.noise),
        "sigma": float(cell.sigma),
        "fall": float(cell.fall),
        "blocks": int(cell.blocks),
        "cells": len(cells),
        "missed": len(misses),
        "missed_noises": sorted(misses.noise.unique().tolist()),
    }


def _power(primary: Verdict) -> Mapping:
    effort = planning.Effort(block_s=0, survey_s=0, sd=primary.sd, margin=primary.margin)
    return {
        "sd": primary.sd,
        "blocks": primary.blocks,
        "fall": planning.LARGE_FALL,
        "flat": float(power.flat(0.0, primary.sd, primary.blocks, primary.margin)),
        "falls_off": float(power.falls_off(planning.LARGE_FALL, primary.sd, primary.blocks, primary.margin)),
        "needed": [{"claim": n.claim, "power": n.power, "blocks": n.blocks} for n in planning.needed(effort)],
    }
