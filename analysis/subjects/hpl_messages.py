"""The messages that HPL sends: their number by size, over the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import style
from analysis.derive import at_only_level, points
from analysis.statements import NO_INTERVAL, Statement, estimated, evidence_of, origin
from analysis.wording import byte_size, counted, number, percent

# B: smaller messages are called small; this must be the least size of a class. A GigE link transfers about this much in
# the latency of a message.
SMALL = 4096
EVERY = 5  # size classes between ticks: a factor of 32


@dataclass(frozen=True)
class Profile:
    """What all ranks sent in a campaign's `run` on its first network and the most nodes with
    counts.

    The run's `payload_messages` [1] and `payload_bytes` [B] are over (size), the least size [B] of
    each class. A class reaches up to the next one.
    """

    dataset: xr.Dataset
    run: xr.Dataset

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return evidence_of(self.dataset)

    @property
    def nodes(self) -> int:
        """The number of nodes of the run."""
        return int(self.run.nodes)

    @property
    def small_messages(self) -> float:
        """The share of messages below SMALL [1]."""
        return _share_of_small(self.run.payload_messages)

    @property
    def small_bytes(self) -> float:
        """The share of all bytes that small messages carry [1]."""
        return _share_of_small(self.run.payload_bytes)

    @property
    def half_bytes_size(self) -> int:
        """The least size [B] of the class in which the sum of bytes, from the smallest messages up,
        reaches half."""
        held = self.run.payload_bytes
        return int(held["size"][(held.cumsum("size") >= held.sum() / 2).argmax("size")])


def profiles(*datasets: xr.Dataset | None) -> tuple[Profile, ...]:
    """The profile of each dataset that has one, of one block each; None is left out.

    Raises FalloffError when a dataset holds no HPL trial or has several blocks.
    """
    found = [_profile(dataset) for dataset in datasets if dataset is not None]
    return tuple(filter(None, found))


def _profile(dataset: xr.Dataset) -> Profile | None:
    planned = at_only_level(points(dataset), "block")
    is_run = (dataset.runner == "hpl") & (dataset.interconnect == planned.interconnect[0].item())
    is_counted = is_run & dataset.payload_messages.notnull().any("size")
    runs = dataset.reset_coords().isel(trial=np.flatnonzero(is_counted))
    return (
        Profile(dataset, runs.isel(trial=runs.nodes.argmax("trial")))
        if runs.sizes["trial"]
        else None
    )


def _share_of_small(counts: xr.DataArray) -> float:
    return float(counts.where(counts["size"] < SMALL).sum() / counts.sum())


def most_are_small(profile: Profile) -> tuple[Statement, Statement]:
    """Are most of HPL's messages smaller than SMALL? And are most of its bytes in such messages? HPL sends the same messages
    in every run, so that neither has an interval."""
    source, statements = origin(profile.dataset), []
    where = f"below {byte_size(SMALL)} ({counted(profile.nodes, 'node')})"
    for subject, share, is_planned in (
        (f"Most of HPL's messages are {where}", profile.small_messages, True),
        (f"Most of HPL's bytes are in messages {where}", profile.small_bytes, False),
    ):
        about = {"words": "yes" if share > 0.5 else "no", "n_of": "run", "primary": is_planned}
        statements.append(estimated(source, subject, "share", (share, *NO_INTERVAL), 1, **about))
    return statements[0], statements[1]


def small(profile: Profile) -> list[Statement]:
    """The shares of small messages and of their bytes, as quantities; HPL sends the same in every run, so they have no
    scatter."""
    text = f"on {counted(profile.nodes, 'node')}, {int(profile.run.P)} x {int(profile.run.Q)} processes"
    n_of = "case" if profile.evidence == "simulated" else "run"
    return [
        estimated(
            origin(profile.dataset),
            f"share of {what} {text}",
            "share",
            (share, share, share),
            1,
            kind="count",
            n_of=n_of,
            name=name,
            values=(share,) if n_of == "case" else (),
        )
        for what, name, share in (
            (f"messages below {byte_size(SMALL)}", "small_messages", profile.small_messages),
            (f"bytes in messages below {byte_size(SMALL)}", "small_bytes", profile.small_bytes),
        )
    ]


def in_words(profile: Profile) -> str:
    """How many messages are small, and which carry the bytes (Markdown)."""
    run, n, little = profile.run, profile.nodes, profile.small_bytes
    small = "less than 0.01 %" if 0 < little < 1e-4 else percent(little, 2)
    sent, volume = (float(run[name].sum()) / n for name in ("payload_messages", "payload_bytes"))
    return (
        f"**On {n} {profile.evidence} nodes {percent(profile.small_messages)} of HPL's messages are below "
        f"{byte_size(SMALL)} and hold {small} of the bytes.** At least half of the bytes are in messages of "
        f"{byte_size(profile.half_bytes_size)} or more (1 run, counted; {int(run.P)} × {int(run.Q)}, "
        f"N = {int(run.N)}). A node sends {number(sent)} messages and {byte_size(volume)}."
    )


def by_size(profiles: Sequence[Profile]) -> Figure:
    """Share of messages (above) and of bytes (below) [%] by size on the most nodes, one column for each profile."""
    sizes = profiles[0].run["size"].values
    used = np.flatnonzero(sum(profile.run.payload_messages.values for profile in profiles))
    ticks = [at for at in range(1, len(sizes), EVERY) if used[0] <= at <= used[-1] + 1]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.0))
        panels = figure.subplots(2, len(profiles), sharex=True, sharey="row", squeeze=False)
        for column, profile in zip(panels.T, profiles):
            for axes, name in zip(column, ("payload_messages", "payload_bytes")):
                share = 100 * profile.run[name] / profile.run[name].sum()
                axes.stairs(share.values, np.arange(len(sizes) + 1), color=style.INK, linewidth=1.5)
            column[0].set_title(f"{profile.evidence}, {profile.nodes} nodes")
            column[1].set_xlabel("size of a message [B]")
            column[1].tick_params(axis="x", labelsize=8)
        panels[1, 0].set_xticks(ticks, [byte_size(int(sizes[at])) for at in ticks])
        panels[1, 0].set_xlim(used[0] - 0.5, used[-1] + 1.5)
        for axes in panels[:, 0]:
            axes.set_ylim(0, None)
        panels[0, 0].set_ylabel("share of messages [%]")
        panels[1, 0].set_ylabel("share of bytes [%]")
    return figure
