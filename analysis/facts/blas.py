"""What prose may quote of HPL with two BLAS libraries: rates in Gflop/s."""

import xarray as xr

from analysis.facts.common import common
from analysis.facts.plain import known, pair
from analysis.studies.blas import CLAIMED_FACTOR, Blas

ANSWERS = {"falls off": "yes", "flat": "no"}  # of whether the factor is beyond the claimed one


def collect(study: Blas) -> dict:
    """All facts of the campaign; what is not known is None.

    `answer` says whether the fast library gives at least `claimed` times the slow one's rate: `yes`, `no`
    or `undecided`; `bound` is the one-sided 95 % bound on the factor that the answer rests on, the lower
    one unless the answer is `no`, which rests on the upper one.
    """
    return {
        **common(study.dataset, study.points),
        "slow": study.slow,
        "fast": study.fast,
        "claimed": CLAIMED_FACTOR,
        "answer": ANSWERS.get(study.claim.answer, "undecided"),
        "bound": _bound(study),
        "points": [_point(study, N) for N in study.factors.N.values],
    }


def _bound(study: Blas) -> float | None:
    interval = study.claim.interval
    return None if interval is None else 1 / (1 - interval[study.claim.answer == "flat"])


def _point(study: Blas, N: int) -> dict:
    factor = study.factors.sel(N=N)
    return {
        "N": int(N),
        "factor": known(factor.ratio),
        "interval": pair(factor.low, factor.high),
        "blocks": int(factor.blocks),
        **{blas: _rate(study.rates.sel(N=N, blas=blas)) for blas in (study.fast, study.slow)},
    }


def _rate(found: xr.Dataset) -> dict:
    return {"estimate": known(found["mean"]), "interval": pair(found.low, found.high)}
