"""What an experiment shows, as text and as marks, for tests."""

import re

import numpy as np
from matplotlib.container import BarContainer


def text(finding, *exhibits):
    """A finding with the Markdown of figures and tables, hard spaces as spaces; no number in it is made up."""
    parts = "\n\n".join([finding, *(exhibit.markdown for exhibit in exhibits)])
    assert not re.search(r"\b(nan|None|inf)\b", parts)
    return parts.replace("\u00a0", " ")


def words(module, study):
    """An experiment's finding, as `text`."""
    return text(module.finding(study))


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
