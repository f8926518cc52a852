"""What an experiment shows, as text and as marks, for tests."""

import numpy as np
from matplotlib.container import BarContainer


def text(finding, *exhibits):
    """A finding with the Markdown of figures and tables, hard spaces as spaces."""
    parts = [finding, *(exhibit.markdown for exhibit in exhibits)]
    return "\n\n".join(parts).replace("\u00a0", " ")


def heights(exhibit, panel=0):
    """The heights of all marks, or the lengths of all bars, in a panel of a figure."""
    axes = exhibit.figure.axes[panel]
    bars = [
        bar.get_width()
        for bars in axes.containers
        if isinstance(bars, BarContainer)
        for bar in bars
    ]
    return np.concatenate(
        [*(np.ravel(line.get_ydata()).astype(float) for line in axes.lines), bars]
    )
