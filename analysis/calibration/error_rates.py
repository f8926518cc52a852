"""How often verdicts and intervals are wrong: thousands of synthetic campaigns, `make calibrate`.

Each truth (noise, sigma, fall) has random numbers of its own, so that results depend neither on the
number of workers nor on the other truths. Block counts and stopping rules share a truth's campaigns.
"""

import math
import tomllib
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import pandas as pd

from analysis import paths, store
from analysis.calibration.simulate import Design, Truth, differences, log_rates, run_sds
from analysis.calibration.stopping import RULES, Running, blocks_judged
from analysis.derive import points
from analysis.inference.multiplicity import holm_p
from analysis.inference.verdict import LEVEL, decide, half_width

FOLDER = paths.DATA / "calibration"
COVERAGES = ("coverage_95", "coverage_90")
CLAIMS = ("flat", "falls_off", "wrong_flat", "wrong_falls_off", "wrong_flat_holm", "wrong_falls_off_holm")


@dataclass(frozen=True)
class Calibration:
    """What is simulated: the settings of calibration.toml, the design, and a run's sd at each node count."""

    settings: Mapping
    design: Design
    run_sds: np.ndarray

    @property
    def reference_sigma(self) -> float:
        """A run's sd in the reference campaign, root mean square over the node counts."""
        return float(np.sqrt(np.mean(self.run_sds**2)))

    def truths(self) -> tuple[Truth, ...]:
        """Every combination of noise, sigma and fall; `uneven` noise at the reference's own sigma too."""
        settings = self.settings
        falls = (0.0, self.design.margin, settings["large_fall"])
        levels = [(noise, sigma) for noise in settings["noises"] for sigma in settings["run_sigmas"]]
        levels.append(("uneven", self.reference_sigma))
        return tuple(Truth(*level, fall) for level in levels for fall in falls)


def load() -> Calibration:
    """What data/calibration describes; its run_sds.csv is written by `measure`."""
    settings = _settings()
    campaign = (paths.CAMPAIGNS / f"{settings['campaign']}.toml").read_text(encoding="utf-8")
    sds = pd.read_csv(FOLDER / "run_sds.csv").run_sd.to_numpy()
    return Calibration(settings, Design.of(tomllib.loads(campaign)), sds)


def results() -> pd.DataFrame:
    """The stored error rates as `simulate` returns them, each with its Monte Carlo standard error `_se`."""
    rows = pd.read_csv(FOLDER / "error_rates.csv")
    for names, campaigns in ((COVERAGES, rows.with_interval), (CLAIMS, rows.campaigns)):
        for name in names:
            rows[f"{name}_se"] = np.sqrt(rows[name] * (1 - rows[name]) / campaigns)
    return rows


def simulate(calibration: Calibration, truth: Truth) -> pd.DataFrame:
    """The error rates of one truth: a row for each stopping rule and number of blocks.

    Of the primary contrast: `coverage_95` and `coverage_90` (among the campaigns `with_interval`) and how
    often the verdict is `flat` and `falls_off`. Over all contrasts: how often any is wrongly called flat
    (its fall is the margin or more) or wrongly called falling off (its fall is the margin or less), by
    each verdict alone and, `_holm`, by Holm's correction. `sd` is the standard deviation of the primary D,
    `mean_blocks` the mean number of blocks judged.
    """
    settings, design = calibration.settings, calibration.design
    random = np.random.default_rng([settings["seed"], calibration.truths().index(truth)])
    shape = (settings["campaigns"], 2 * max(settings["blocks"]))
    pattern = calibration.run_sds / calibration.reference_sigma
    drawn = differences(log_rates(random, truth, design, shape, settings, pattern), design)
    valid = random.random(shape) >= settings["invalid_share"]
    running, rows = Running.of(drawn), []
    for rule in RULES:
        for planned in settings["blocks"]:
            judged = blocks_judged(rule, planned, running, valid, settings["precision"], design.limit)
            about = {"rule": rule, "blocks": planned, "mean_blocks": judged.mean(), "sd": drawn[..., 0].std()}
            rates = error_rates(running, judged, design, design.falls(truth.fall))
            rows.append({**asdict(truth), **about, **rates})
    return pd.DataFrame(rows)


def error_rates(running: Running, judged: np.ndarray, design: Design, falls: tuple[float, ...]) -> dict:
    """The rates of `simulate` among campaigns judged after so many blocks, (campaigns,).

    `falls` are the contrasts' true falls.
    """
    several, blocks = judged > 1, np.maximum(judged, 2)
    mean, sd = running.after(blocks)
    decision = decide(mean, sd, blocks[:, np.newaxis], design.limit)
    flat, falls_off = ((decision.kind == kind) & several[:, np.newaxis] for kind in ("flat", "falls off"))
    kept = holm_p(decision.p) <= LEVEL
    wrong_flat = flat & (np.array(falls) >= design.margin)
    wrong_falls_off = falls_off & (np.array(falls) <= design.margin)
    off = np.abs(mean[:, 0] - math.log1p(-falls[0]))
    return {
        "campaigns": len(judged),
        "with_interval": int(several.sum()),
        "coverage_95": np.mean((off <= half_width(sd[:, 0], blocks, 0.95))[several]),
        "coverage_90": np.mean((off <= half_width(sd[:, 0], blocks, 0.90))[several]),
        "flat": flat[:, 0].mean(),
        "falls_off": falls_off[:, 0].mean(),
        "wrong_flat": wrong_flat.any(axis=1).mean(),
        "wrong_falls_off": wrong_falls_off.any(axis=1).mean(),
        "wrong_flat_holm": (wrong_flat & kept).any(axis=1).mean(),
        "wrong_falls_off_holm": (wrong_falls_off & kept).any(axis=1).mean(),
    }


def measure() -> None:
    """Write the scatter of the reference campaign's runs at each node count to run_sds.csv."""
    found = points(store.assemble(paths.REFERENCE / _settings()["reference"]))
    table = pd.DataFrame({"nodes": found.nodes.values, "run_sd": run_sds(found)})
    (FOLDER / "run_sds.csv").write_text(as_csv(table), encoding="utf-8")


def as_csv(table: pd.DataFrame) -> str:
    """A table as text with four decimals: the same numbers give the same bytes."""
    return table.to_csv(index=False, float_format="%.4f", lineterminator="\n")


def main() -> None:
    """Measure the reference's scatter, simulate every truth on all cores and write error_rates.csv."""
    measure()
    calibration = load()
    with ProcessPoolExecutor() as pool:
        rows = pd.concat(pool.map(partial(simulate, calibration), calibration.truths()))
    file = FOLDER / "error_rates.csv"
    part = file.with_name(f"{file.name}.part")
    part.write_text(as_csv(rows), encoding="utf-8")
    part.replace(file)
    print(f"{len(rows)} cells of {calibration.settings['campaigns']} campaigns: {file}")


def _settings() -> dict:
    return tomllib.loads((FOLDER / "calibration.toml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
