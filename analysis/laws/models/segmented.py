"""A curve that is flat up to a breakpoint and falls with every doubling beyond it."""

import numpy as np

from analysis.laws.models import Model, Number, Values

STEPS = 12  # breakpoints of a profile between neighbouring x


def segmented(n: Values, c: Number, n0: Number, s: Number) -> Values:
    """y(n) = c up to n0 and c - s log2(n / n0) beyond it, for n > 0.

    `c` is in the unit of y, the breakpoint `n0` in the unit of n; `s` is the fall per doubling of
    n.
    """
    return c - s * np.maximum(np.log2(n / n0), 0.0)


def guess(n: Values, y: Values) -> dict[str, float]:
    """The optimum: the best of all intervals between neighbouring x, at the ends of one or inside
    it (Hudson 1966).

    At a given breakpoint the model is a straight line, with s >= 0.
    """
    places = np.log2(np.unique(n))
    inside = [meeting(np.log2(n), y, *ends) for ends in zip(places[:-2], places[1:-1])]
    candidates = 2.0 ** np.append(places[:-1], inside)
    level, slope, sse = lines(n, y, candidates)
    best = np.argmin(sse)
    return {"c": level[best], "n0": candidates[best], "s": slope[best]}


def meeting(log_n: Values, y: Values, low: float, high: float) -> float:
    """Where the mean of the points up to `low` meets the line through those from `high` on, in log2
    of n; at most these two, and `low` where they never meet."""
    before, beyond = y[log_n <= low].mean(), log_n >= high
    slope, level = np.polyfit(log_n[beyond], y[beyond], 1)
    return np.clip((before - level) / slope, low, high) if slope else low


def breakpoints(n: Values) -> Values:
    """Breakpoints to try, from the lowest to the second-last x, in equal ratios between
    neighbours."""
    places = np.log2(np.unique(n))
    between = places[:-2, None] + np.diff(places)[:-1, None] * np.arange(STEPS) / STEPS
    return 2.0 ** np.append(between, places[-2:-1])


def lines(n: Values, y: Values, grid: Values) -> tuple[Values, Values, Values]:
    """The least-squares c and s >= 0 at each breakpoint of the grid, and their sums of squares."""
    beyond = np.maximum(np.log2(n / grid[:, None]), 0.0)
    centered = beyond - beyond.mean(axis=1, keepdims=True)
    spread = (centered**2).sum(axis=1)
    slope = np.maximum(-centered @ (y - y.mean()) / spread, 0.0)
    sse = ((y - y.mean()) ** 2).sum() - slope**2 * spread
    return y.mean() + slope * beyond.mean(axis=1), slope, sse


MODEL = Model(
    title="segmented",
    equation=r"y(n) = c - s \, \max(0, \log_2(n / n_0))",
    source="D. J. Hudson, Fitting segmented curves whose join points have to be estimated, J. Am. "
    "Stat. Assoc. 61 (1966), p. 1097-1129, https://doi.org/10.1080/01621459.1966.10482198, in "
    "log2 n",
    function=segmented,
    bounds={"c": (-np.inf, np.inf), "n0": (0.0, np.inf), "s": (0.0, np.inf)},
    guess=guess,
)
