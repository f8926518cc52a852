"""Models beside each other: support by the data, prediction of the largest configuration, intervals."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import xarray as xr
from scipy import stats

from analysis import models
from analysis.fitting.adequacy import follows
from analysis.fitting.batch import jacobian, refit
from analysis.fitting.fit import Fit, fit
from analysis.models import Model
from analysis.statistics.intervals import average
from runners.record import FalloffError

RESAMPLES = 1999  # of so many, the 2.5 % quantiles are order statistics: the 50th from either end
SEED = 20070601
FEWEST_BLOCKS = 4  # of three, every ninth resample repeats a single block and has no spread
MOST_LOST = 0.01  # part of the resamples that may not converge before the bootstrap is given up

# What each law describes. A law of scalability is of a rate: n times the share is the rate in units of one node's known
# rate, so that its parameters compare between machines. HPL's own model is not among them: with N proportional to sqrt(n)
# its messages and its operations grow alike.
LAWS = {
    "share": ("constant", "power_law", "segmented"),
    "n × share": ("amdahl", "universal_scalability"),
}

Intervals = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class HeldOut:
    """How well the smaller configurations predict the largest.

    `error` is the geometric mean over the blocks of predicted / measured, less one, `interval` its 95 % t
    interval (NaN from one block); `blocks` counts the blocks that it rests on.
    """

    error: float
    interval: tuple[float, float]
    blocks: int


@dataclass(frozen=True)
class Comparison:
    """One model beside others on the same data; what it was refused is None or empty, with the reason.

    `pooled` is the fit to all points, with its AICc. `intervals` (95 %, by parameter) rest on whole
    blocks, as `interval_kind` says. `refused` is not empty where the data cannot carry the model at all.
    """

    model: Model
    pooled: Fit | None = None
    intervals: Intervals = field(default_factory=dict)
    interval_kind: str = ""
    held_out: HeldOut | None = None
    held_out_refused: str = ""
    refused: str = ""

    @property
    def aicc(self) -> float | None:
        """The pooled fit's AICc; the reason why there is none is in `refused` or the fit's `aicc_refused`."""
        return self.pooled.aicc if self.pooled else None

    def as_json(self) -> dict:
        """Plain JSON data; what was refused is None, with the reason beside it."""
        return {
            "model": self.model.name,
            "refused": self.refused,
            "pooled": self.pooled and self.pooled.as_json(),
            "intervals_95": {name: list(ends) for name, ends in self.intervals.items()},
            "interval_kind": self.interval_kind,
            "held_out": self.held_out and asdict(self.held_out),
            "held_out_refused": self.held_out_refused,
        }


@dataclass(frozen=True)
class Law:
    """A model of one network's share over nodes, fitted to what `response` names.

    `miss` is the largest distance of its curve from the mean of a node count [1, of that mean], NaN without a fit, and
    `follows` whether the curve may be drawn through the points.
    """

    interconnect: str
    response: str
    comparison: Comparison
    miss: float
    follows: bool


def compare(curves: Iterable[Model], x, table) -> tuple[Comparison, ...]:
    """Compare models of `table`, shape (block, points), whose last column is the largest configuration.

    x has shape (points,), or (quantities, points) for models of several quantities. The best AICc comes
    first; models without one follow, and those that the data cannot carry are last. Missing values are
    NaN: the pooled fit uses every known point, the rest only blocks without a missing one.
    """
    x, table = np.asarray(x, float), np.asarray(table, float)
    return tuple(sorted((_comparison(model, x, table) for model in curves), key=_rank))


def _rank(comparison):
    return comparison.pooled is None, comparison.aicc is None, comparison.aicc or 0.0


def _comparison(model, x, table):
    known = np.isfinite(table)
    whole = table[known.all(axis=1)]
    try:
        all_x = np.tile(x, len(table))[..., known.ravel()]
        pooled = fit(model, all_x, table[known], profile=False)
    except FalloffError as refusal:
        return Comparison(model, refused=str(refusal))
    if not len(whole):
        reason = "none: no block is complete"
        return Comparison(model, pooled, interval_kind=reason, held_out_refused=reason)
    held_out, reason = _held_out(model, x, whole)
    return Comparison(model, pooled, *block_intervals(model, x, whole), held_out, reason)


def _held_out(model, x, table):
    """The prediction of the last column from the others and an empty text, or None and the reason."""
    smaller, largest = x[..., :-1], x[..., -1:]
    try:
        fit(model, smaller, table[:, :-1].mean(axis=0), profile=False)
    except FalloffError as refusal:
        return None, str(refusal)
    estimates = refit(model, smaller, table[:, :-1]).estimates
    with np.errstate(all="ignore"):
        factors = model.function(largest, *estimates.T[:, :, None])[:, 0] / table[:, -1]
    factors = factors[np.isfinite(factors)]
    if not len(factors):
        return None, "The smaller configurations give no finite error of the largest."
    impossible = int((factors <= 0).sum())
    if impossible:
        return (
            None,
            f"The smaller configurations predict nothing above 0 of the largest in {impossible} blocks.",
        )
    mean, low, high = (float(factor) - 1 for factor in average(factors, "ratio"))
    return HeldOut(mean, (low, high), len(factors)), ""


def laws(points: xr.Dataset) -> Iterator[Law]:
    """Every model of every network of `derive.points`, network by network, the best AICc of a response first."""
    nodes = points.nodes.values.astype(float)
    for interconnect in points.interconnect.values.tolist():
        share = points.share.sel(interconnect=interconnect).transpose("block", "nodes").values
        for response, names in LAWS.items():
            scale = nodes if response == "n × share" else np.ones_like(nodes)
            for comparison in compare(map(models.find, names), nodes, scale * share):
                yield Law(
                    interconnect, response, comparison, *_miss(comparison, nodes, scale, share)
                )


def _miss(comparison, nodes, scale, share) -> tuple[float, bool]:
    if comparison.pooled is None:
        return np.nan, False
    curve = comparison.pooled.predict(nodes) / scale
    known = np.isfinite(share).any(axis=0)
    means = np.nanmean(share[:, known], axis=0)
    miss = float(np.abs(curve[known] / means - 1).max())
    return miss, follows(share, curve, len(comparison.model.parameters))


def block_intervals(
    model: Model, x, table, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[Intervals, str]:
    """95 % intervals of the parameters of the blocks' mean curve, and their kind in words.

    `table` has shape (block, points) without a missing value; x is as the model takes it. Bootstrap-t:
    blocks are drawn whole, across all x, and each resample's estimate is studentised with the standard
    error that is robust to dependence within blocks (B. Efron and R. J. Tibshirani, An Introduction to the
    Bootstrap, 1993, section 12.5). With fewer than FEWEST_BLOCKS, or where too many resamples cannot be
    fitted: Student's t with that standard error. With one block, and where a parameter has no effect: NaN.

    Estimates may cross the model's bounds here, because resampling fails for an estimate on a bound (D. W. K.
    Andrews, Econometrica 68, 2000, p. 399-405), and the intervals end at the bound. A parameter whose
    interval lies wholly beyond a bound is held on it, for the intervals of the others too.
    """
    table = np.asarray(table, float)
    blocks = len(table)
    if blocks < 2:
        return dict.fromkeys(model.parameters, (np.nan, np.nan)), "none: a single block"
    resamples = resamples if blocks >= FEWEST_BLOCKS else 0
    drawn = np.random.default_rng(seed).multinomial(blocks, np.full(blocks, 1 / blocks), resamples)
    counts = np.vstack([np.ones(blocks), drawn])
    free = dict.fromkeys(model.parameters, (-np.inf, np.inf))
    while True:
        ends, kind = _free_intervals(replace(model, bounds=free), x, table, counts)
        beyond = {
            name: float(np.clip(low, *model.bounds[name]))
            for name, (low, high) in ends.items()
            if high < model.bounds[name][0] or low > model.bounds[name][1]
        }
        if not beyond:
            break
        free.update((name, (bound, bound)) for name, bound in beyond.items())
    return {
        name: tuple(np.clip(pair, *model.bounds[name]).tolist()) for name, pair in ends.items()
    }, kind


def _free_intervals(model, x, table, counts):
    """The intervals as estimated, and their kind; the first row of `counts` is the data themselves."""
    blocks = len(table)
    estimates = refit(model, x, counts @ table / blocks).estimates
    with np.errstate(all="ignore"):
        errors = _standard_errors(model, x, table, counts, estimates)
        studentised = (estimates[1:] - estimates[0]) / errors[1:]
    converged = np.isfinite(estimates[1:]).all(axis=1)
    if len(converged) and converged.mean() >= 1 - MOST_LOST:
        ranked = np.sort(np.where(np.isnan(studentised), 0, studentised)[converged], axis=0)
        tail = int(0.025 * (len(ranked) + 1))
        low, high = ranked[tail - 1], ranked[-tail]
        kind = f"bootstrap-t, {len(ranked)} resamples of {blocks} blocks"
    else:
        high = np.full(len(model.parameters), stats.t.ppf(0.975, blocks - 1))
        low = -high
        kind = f"t interval over {blocks} blocks"
    ends = np.array([estimates[0] - high * errors[0], estimates[0] - low * errors[0]])
    return dict(zip(model.parameters, ends.T.tolist())), kind


def _standard_errors(model, x, table, counts, estimates):
    """The sandwich over blocks for curves fitted to the means of resamples, shape (fits, parameters).

    `counts`, shape (fits, blocks), says how often each block was drawn. A block's score is the shift of
    the estimate by the block's deviation from the mean, to first order. NaN where a parameter that may
    move does not move the curve.
    """
    slopes = jacobian(model, x, estimates)
    norms = np.linalg.norm(slopes, axis=2)
    held = np.array([low == high for low, high in model.bounds.values()])
    scale = np.where(norms > 0, norms, np.where(held[:, None], 1, np.nan))
    slopes = slopes / np.where(norms > 0, norms, 1)[:, :, None]
    normal = np.einsum("kfp,lfp->fkl", slopes, slopes)
    shifts = np.einsum("fkl,lfp->fkp", np.linalg.pinv(normal, hermitian=True), slopes)
    blocks = len(table)
    scores = shifts @ table.T - np.einsum("fkp,fp->fk", shifts, counts @ table / blocks)[:, :, None]
    variance = np.einsum("fb,fkb->fk", counts, scores**2) / (blocks * (blocks - 1))
    return np.sqrt(variance) / scale.T
