"""One's own datasets for a notebook: the campaigns in a folder, and a dataset without what is empty."""

from pathlib import Path

import numpy as np
import xarray as xr

from analysis import importing, paths, store
from analysis.evidence import verify
from analysis.exhibit import Table
from analysis.imported_hpl import networks
from analysis.notebooks import OF_OWN_FILES
from analysis.quoting import quoted
from analysis.schema import settings
from analysis.wording import UNKNOWN, counted, number
from runners.record import FalloffError

HPL, MESSAGES, STREAMS = OF_OWN_FILES
# A dataset with any of these readings has the section of its notebook.
NOTEBOOKS = {
    HPL: ("hpl_rate",),
    MESSAGES: ("message_time", "message_bandwidth"),
    STREAMS: (
        "goodput", "goodput_reverse", "transaction_rate", "round_trip_time", "half_round_trip",
        "ping_pong_latency_mean", "ping_pong_bandwidth_mean",
    ),
}  # fmt: skip
# What a notebook shows as long as no data are named: a shipped campaign, and recorded outputs of tools.
EXAMPLES = {
    HPL: paths.REFERENCE / "hpl_scaling-fortinet_model",
    MESSAGES: paths.ROOT / "tests" / "transcripts" / "osu",
    STREAMS: paths.ROOT / "tests" / "transcripts" / "netperf",
}
_NOT_SHOWN = ("start", "wall_time", "in_quota", "dilation")


def has(dataset: xr.Dataset, notebook: str) -> bool:
    """Whether a dataset has readings that this notebook shows."""
    return any(bool(dataset[name].notnull().any()) for name in NOTEBOOKS[notebook])


def opened(data: str, notebook: str) -> xr.Dataset:
    """The dataset that a notebook shows: the only one in the folder `data` with its readings; without
    `data` an example.

    A relative folder is looked for here, then below the repository. Raises FalloffError if there is none, or more than one.
    """
    if not data:
        return _example(notebook)
    folder = Path(data) if Path(data).exists() else paths.ROOT / data
    found = {}
    for one in verify.folders([folder]):
        dataset = store.read(one)
        if has(dataset, notebook):
            found[one] = dataset
    if not found:
        what = ", ".join(NOTEBOOKS[notebook])
        raise FalloffError(f"{folder} holds no campaign with a reading of {what}")
    if len(found) > 1:
        several = ", ".join(map(str, found))
        raise FalloffError(f"{folder} holds several: name one of {several}")
    return next(iter(found.values()))


def campaign(folder: Path) -> Path:
    """The campaign's folder that is meant: itself, or the only one in it; raises FalloffError if
    there are several."""
    if (folder / "trials.json").exists():
        return folder
    found = verify.folders([folder])
    if len(found) > 1:
        raise FalloffError(
            f"{folder} holds several campaigns: name one of {', '.join(map(str, found))}"
        )
    return found[0]


def _example(notebook: str) -> xr.Dataset:
    source = EXAMPLES[notebook]
    if (source / "trials.json").exists():
        return store.read(source)
    found = importing.read(source.name, [source], {"interconnect": "example"})
    return store.read(importing.keep(found, paths.BUILD / "example"))


def tidy(dataset: xr.Dataset) -> xr.Dataset:
    """A dataset by trial without what it does not have: no empty variable, no dim of length 0, no
    setting that is the same everywhere or unknown. Units are in the attributes."""
    kept = dataset.isel(trial=np.flatnonzero(dataset.role.values == "point"))
    names = ["trial_id", "file", "block", "status", *settings()]
    varies = [name for name in names if name in kept.coords and _varies(kept[name])]
    readings = [
        name
        for name, each in kept.data_vars.items()
        if name not in _NOT_SHOWN and each.dtype.kind == "f" and each.notnull().any()
    ]
    found = kept.reset_coords()[[*varies, *readings]]
    return found.set_coords(varies).assign_attrs(
        {name: dataset.attrs[name] for name in ("campaign", "title", "campaign_hash")}
    )


def _varies(array: xr.DataArray) -> bool:
    values = array.values
    known = values[values != ""] if values.dtype.kind in "OUT" else values[np.isfinite(values)]
    return (
        array.name in ("interconnect", "nodes") and bool(len(known)) or len(set(known.tolist())) > 1
    )


def setting_table(dataset: xr.Dataset) -> Table:
    """What all runs of a dataset share, and what they vary."""
    rows = []
    chosen = dataset.isel(
        trial=np.flatnonzero((dataset.role == "point") & (dataset.status == "ok"))
    )
    for name in settings():
        values = chosen[name].values
        known = [each for each in values.tolist() if each == each and each != ""]
        if name == "interconnect":
            known = list(networks(chosen, known).values())
        if known:
            levels = list(dict.fromkeys(known))
            words = [(each if name == "interconnect" else quoted(each)) if isinstance(each, str) else number(each, 6).rstrip("0").rstrip(".") if each != int(each) else f"{each:.0f}" for each in levels]  # fmt: skip
            more = f" and {len(words) - 8} more" if len(words) > 8 else ""
            rows.append((quoted(name.replace("_", " ")), ", ".join(words[:8]) + more))
    files = len(set(dataset.file.values.tolist()))
    caption = f"The settings of the runs in {counted(files, 'file')}."
    label = f"{dataset.attrs['campaign']}_{dataset.attrs['campaign_hash'][:8]}-settings"
    return Table(label, ("Setting", "Values"), "ll", rows or [(UNKNOWN, UNKNOWN)], caption)
