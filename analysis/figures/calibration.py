"""Figures of the verdict's error rates in synthetic campaigns, and of its power."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.calibration.goals import AT_MOST, COVERAGE, at_the_goal, worst
from analysis.inference import power
from analysis.style import Look

NOISES = {
    "normal": Look("#222222", "o", "-"),
    "heavy-tailed": Look("#56B4E9", "s", "--"),
    "outliers": Look("#E69F00", "^", "-."),
    "uneven": Look("#009E73", "D", ":"),
}
RULES = ("fixed", "two stages", "precision")
MEASURES = {
    "coverage_95": "coverage of the\n95 % interval [%]",
    "flat": "flat at the\nmargin [%]",
    "falls_off": "falls off without\na fall [%]",
}
LINES = ("-", "--", "-.", (0, (1, 1)))
SDS = (0.02, 0.04, 0.06, 0.10)


def error_rates(results: pd.DataFrame) -> Figure:
    """Coverage and the two error rates [%] over blocks, by stopping rule and noise, with the goals shaded.

    `results` is `error_rates.results`. Each mark is the worst of all sigmas (and, for coverage, falls).
    """
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 5.2))
        grid = figure.subplots(len(MEASURES), len(RULES), sharex=True, sharey="row")
        for row, (measure, title) in zip(grid, MEASURES.items()):
            for axes, rule in zip(row, RULES):
                _goal(axes, measure)
                cells = at_the_goal(results[results.rule == rule], measure)
                for noise, look in NOISES.items():
                    _worst_over_blocks(axes, cells[cells.noise == noise], measure, noise, look)
            row[0].set_ylabel(title)
            if measure != "coverage_95":
                row[0].set_ylim(0, None)
        for axes, rule in zip(grid[0], RULES):
            axes.set_title(rule)
        for axes in grid[-1]:
            axes.set(xlabel="blocks", xticks=(4, 8, 12, 16))
        drawing.legend_below(figure, grid[0, 0], 3)
        return figure


def power_over_blocks(sd: float | None, blocks: int, margin: float, fall: float) -> Figure:
    """P(flat) without a fall and P(falls off) at this fall [%] over blocks, for several sd of D.

    `sd` (log scale; None: not known) and `blocks` are a campaign's own, drawn thick and marked.
    """
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 3.1))
        panels = figure.subplots(1, 2, sharey=True)
        n = np.unique(np.geomspace(2, 100, 60).round().astype(int))
        shades = sns.color_palette("crest", len(SDS))
        claims = (
            (power.flat, 0.0, "flat, without a fall"),
            (power.falls_off, fall, f"falls off, at {100 * fall:g} %"),
        )
        for axes, (claim, true, title) in zip(panels, claims):
            for each, shade, line in zip(SDS, shades, LINES):
                chance = 100 * claim(true, each, n, margin)
                axes.plot(n, chance, linestyle=line, color=shade, label=f"sd {100 * each:g} %", gid=drawing.COMPUTED)
            if sd is not None:
                label = f"scaling campaign, sd {100 * sd:.1f} %"
                chance = 100 * claim(true, sd, n, margin)
                axes.plot(n, chance, color=style.INK, linewidth=2.4, label=label, gid=drawing.COMPUTED)
                own = 100 * claim(true, sd, blocks, margin)
                axes.plot(blocks, own, "o", color=style.INK, markersize=7, mfc="white")
            axes.set_xscale("log")
            drawing.log_ticks(axes.xaxis)
            # A little beyond the last number, so that it does not meet the first one of the next panel.
            axes.set(title=title, xlabel="blocks", xlim=(2, 140), ylim=(0, 102))
        panels[0].set_ylabel("probability [%]")
        drawing.legend_below(figure, panels[0], 3)
        return figure


def _goal(axes: Axes, measure: str) -> None:
    low, high = COVERAGE if measure == "coverage_95" else (0, AT_MOST)
    axes.axhspan(100 * low, 100 * high, color=style.MARGIN, zorder=0, label="goal")


def _worst_over_blocks(axes: Axes, cells: pd.DataFrame, measure: str, noise: str, look: Look) -> None:
    shown = pd.Series({blocks: worst(rows, measure)[measure] for blocks, rows in cells.groupby("blocks")})
    axes.plot(shown.index, 100 * shown, look.marker, color=look.color, markersize=3.5, label=noise)
