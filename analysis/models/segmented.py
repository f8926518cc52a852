"""A curve that is flat up to a breakpoint and falls with every doubling beyond it."""

import numpy as np

from analysis.models import Model

STEPS = 12  # breakpoints of a profile between neighbouring x


def segmented(n, c, n0, s):
    """y(n) = c up to n0 and c - s log2(n / n0) beyond it, for n > 0.

    `c` is in the unit of y, the breakpoint `n0` in that of n; `s` is the fall per doubling of n.
    """
    return c - s * np.maximum(np.log2(n / n0), 0.0)


def guess(n, y):
    """The optimum: that of all intervals between neighbouring x, at whose ends or inside of which it is (Hudson 1966).

    At a given breakpoint the model is a straight line, with s >= 0.
    """
    known = np.log2(np.unique(n))
    ends = [np.full(len(y), end) for end in known[:-1]]
    inside = [meeting(np.log2(n), y, *between) for between in zip(known[:-2], known[1:-1])]
    candidates = 2.0 ** np.array([*ends, *inside]).T
    level, slope, sse = lines(n, y, candidates)
    best = np.argmin(sse, axis=1)
    row = np.arange(len(y))
    return {"c": level[row, best], "n0": candidates[row, best], "s": slope[row, best]}


def meeting(log_n, y, low, high):
    """Where the mean of the points up to `low` meets the line through those from `high` on, at most these two.

    log_n of shape (points,) and y (fits, points) give (fits,), in log2 of n; `low` where they never meet.
    """
    before, behind = y[:, log_n <= low].mean(axis=1), y[:, log_n >= high]
    centered = log_n[log_n >= high] - log_n[log_n >= high].mean()
    slope = behind @ centered / (centered**2).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        met = log_n[log_n >= high].mean() + (before - behind.mean(axis=1)) / slope
    return np.clip(np.nan_to_num(met, nan=low), low, high)


def breakpoints(n):
    """Breakpoints to try, from the lowest to the last but one x, in equal ratios between neighbours."""
    known = np.log2(np.unique(n))
    between = known[:-2, None] + np.diff(known)[:-1, None] * np.arange(STEPS) / STEPS
    return 2.0 ** np.append(between, known[-2:-1])


def lines(n, y, grid):
    """The least-squares c and s >= 0 at each breakpoint, and their sums of squares.

    n of shape (points,), y (fits, points) and grid (breakpoints,), or (fits, breakpoints) of each fit's
    own, give three arrays of shape (fits, breakpoints).
    """
    beyond = np.maximum(np.log2(n / grid[..., None]), 0.0)
    centered = beyond - beyond.mean(axis=-1, keepdims=True)
    spread = (centered**2).sum(axis=-1)
    mean = y.mean(axis=1, keepdims=True)
    products = ((y - mean)[:, None] @ centered.swapaxes(-1, -2))[:, 0]
    slope = np.maximum(-products / spread, 0.0)
    sse = ((y - mean) ** 2).sum(axis=1, keepdims=True) - slope**2 * spread
    return mean + slope * beyond.mean(axis=-1), slope, sse


MODEL = Model(
    name="segmented",
    title="segmented",
    equation=r"y(n) = c - s \, \max(0, \log_2(n / n_0))",
    source="D. J. Hudson, Fitting segmented curves whose join points have to be estimated, J. Am. Stat. "
    "Assoc. 61 (1966), p. 1097-1129, https://doi.org/10.1080/01621459.1966.10482198, in log2 n",
    function=segmented,
    bounds={"c": (-np.inf, np.inf), "n0": (0.0, np.inf), "s": (0.0, np.inf)},
    guess=guess,
)
