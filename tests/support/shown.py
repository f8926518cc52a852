"""What an experiment shows, as text and as marks, for tests."""

import re

import numpy as np
import xarray as xr
from matplotlib.container import BarContainer


def text(finding, *exhibits):
    """A finding with the Markdown of figures and tables, hard spaces as spaces; no number in it is
    made up.
    """
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


def failed(dataset, reason, but=0):
    """A dataset of a campaign of which all trials but so many failed for this reason."""
    number = np.arange(dataset.sizes["trial"])
    has_failed = xr.DataArray(number >= but, dims="trial")
    values = {
        name: values.where(~has_failed)
        for name, values in dataset.data_vars.items()
        if "trial" in values.dims and values.dtype.kind == "f"
    }
    told = {"status": "failed", "reason": reason}
    values |= {name: dataset[name].where(~has_failed, text) for name, text in told.items()}
    return dataset.assign(values)
