"""The published figure of HPL's messages: their shares by size, for each kind of evidence."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.payload import Payload, Profile
from analysis.wording import byte_size

EVERY = 5  # classes of sizes from one tick to the next: a factor of 32


def draw(study: Payload) -> dict[str, Figure]:
    """The study's figure by name: payload."""
    return {"payload": shares_by_size(study)}


def shares_by_size(study: Payload) -> Figure:
    """Share of messages (above) and of bytes (below) [%] by size; a column for each kind of evidence.

    Few, some and most of each campaign's node counts are shown.
    """
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.4))
        panels = figure.subplots(2, len(study.profiles), sharex=True, sharey="row", squeeze=False)
        for column, profile in zip(panels.T, study.profiles):
            _panel(column[0], profile, profile.messages)
            _panel(column[1], profile, profile.bytes)
            column[0].set_title(f"{profile.evidence}: {profile.dataset.attrs['campaign']}")
            column[0].legend(loc="upper right", handlelength=2.6)
            column[1].set_xlabel("size of a message [B]")
            column[1].tick_params(axis="x", labelsize=8)
        _size_axis(panels[1, 0], study)
        panels[0, 0].set_ylabel("share of messages [%]")
        panels[1, 0].set_ylabel("share of bytes [%]")
        return figure


def _panel(axes: Axes, profile: Profile, counts: xr.DataArray) -> None:
    """A step for each class of sizes, in its place among all classes, for some of the node counts."""
    share = 100 * counts / counts.sum("size")
    shown = _few_some_most(share.nodes.values)
    for position, nodes in enumerate(shown, start=1 + 3 - len(shown)):
        look = style.look(f"nodes {position}")
        axes.stairs(
            share.sel(nodes=nodes).values,
            np.arange(share.sizes["size"] + 1),
            color=look.color,
            linestyle=look.line,
            linewidth=1.5,
            label=f"{nodes} nodes",
        )
    axes.set_ylim(0, None)


def _few_some_most(nodes: np.ndarray) -> list[int]:
    """The least, the middle and the largest node count, as far as they differ."""
    return sorted({int(nodes[0]), int(nodes[len(nodes) // 2]), int(nodes[-1])})


def _size_axis(axes: Axes, study: Payload) -> None:
    """Classes of sizes as far as any campaign has messages of them, named by their least bytes."""
    used = xr.concat([profile.messages.sum("nodes") for profile in study.profiles], "profile").sum("profile")
    first, *_, last = np.flatnonzero(used.values > 0).repeat(2)
    sizes = used["size"].values
    ticks = [place for place in range(len(sizes)) if (place - 1) % EVERY == 0 and first <= place <= last + 1]
    axes.set_xticks(ticks, [byte_size(int(sizes[place])) for place in ticks])
    axes.set_xlim(first - 0.5, last + 1.5)
