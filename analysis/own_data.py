"""One's own datasets for a notebook: the campaigns in a folder, and a dataset without what is empty."""

from pathlib import Path

import numpy as np
import xarray as xr

from analysis import attributes, exhibit, paths, store
from analysis.attributes import names_by_rate
from analysis.evidence import verify
from analysis.exhibit import Table
from analysis.quoting import quoted
from analysis.schema import settings
from analysis.wording import UNKNOWN, counted, number
from runners.journal import Folder
from runners.record import FalloffError

HPL, MESSAGES, STREAMS = "40_hpl_scaling", "12_ping_pong", "52_parallel_streams"
COLLECTIVES, TWIN = "13_collectives", "55_twin"
# What `falloff twin` simulates: points that were run, and networks that are not there.
HELD_OUT, WHAT_IF = "twin_held_out", "twin_what_if"
_OF_TWIN = ("twin_tokens", "twin_load", "suspects", "twin_hpl")  # of the example
# A dataset with any of these readings has the section of its notebook.
NOTEBOOKS = {
    HPL: ("hpl_rate",),
    MESSAGES: ("message_time", "message_bandwidth"),
    STREAMS: (
        "goodput", "goodput_reverse", "transaction_rate", "round_trip_time", "half_round_trip",
        "ping_pong_latency_mean", "ping_pong_bandwidth_mean",
    ),
    COLLECTIVES: (
        "collective_time", "bus_bandwidth", "reported_rate", "reported_time", "dgemm_star_rate",
        "ptrans_bandwidth", "random_access_rate", "stream_triad_star_bandwidth", "fft_rate", "program_time",
    ),
}  # fmt: skip


def has(dataset: xr.Dataset, notebook: str) -> bool:
    """Whether a dataset has readings that this notebook shows."""
    return any(bool(dataset[name].notnull().any()) for name in NOTEBOOKS[notebook])


def sections(dataset: xr.Dataset) -> list[str]:
    """The notebooks that show a dataset's readings; none where a report has nothing to show of it."""
    return [notebook for notebook in NOTEBOOKS if has(dataset, notebook)]


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


def last_run(folder: Path) -> tuple[float, str]:
    """What orders the runs of one campaign: the time of the last note in the journal [s since 1970], then the name."""
    notes = Folder(folder).notes()
    return (notes[-1]["at"] if notes else 0.0), folder.name


def measured_in(folder: str) -> list[str]:
    """The campaigns that are meant by a folder: itself, or all in it that were not simulated, as what a twin foretold
    before. A name that is no folder stays."""
    place = Path(folder)
    if not place.is_dir() or (place / "trials.json").exists():
        return [folder]
    found = verify.folders([place])
    return [str(one) for one in found if Folder(one).plan().testbed["kind"] != "simulated"]


def twin(data: str) -> tuple[list[xr.Dataset], xr.Dataset, xr.Dataset]:
    """What a twin was fitted to and has to predict, the points that it simulated, and the networks that are not there; all in
    the folder `data`, without it an example. Of several simulations the latest count.

    Raises FalloffError if the folder holds no twin's simulations.
    """
    if not data:
        stored = {
            file.parent.name.split("-")[0]: file.parent
            for file in paths.REFERENCE.glob("*/trials.json")
        }
        held_out, what_if = (store.read(stored[name]) for name in (HELD_OUT, WHAT_IF))
        return [store.read(stored[name]) for name in _OF_TWIN], held_out, what_if
    folder = Path(data) if Path(data).exists() else paths.ROOT / data
    simulated: dict[str, list[xr.Dataset]] = {name: [] for name in (HELD_OUT, WHAT_IF)}
    for one in map(store.read, verify.folders([folder])):
        simulated.get(one.attrs["campaign"], []).append(one)
    if not all(simulated.values()):
        remedy = f"`falloff twin {folder} --name NAME --out {folder}` makes them"
        raise FalloffError(f"{folder} holds no simulations of a twin: {remedy}")
    held_out, what_if = (
        max(found, key=lambda one: one.attrs["started"]) for found in simulated.values()
    )
    return [store.read(Path(one)) for one in measured_in(str(folder))], held_out, what_if


def setting_table(dataset: xr.Dataset) -> Table:
    """What a campaign planned; of imported runs, what they share and what they vary."""
    if "repeats" not in attributes.design(dataset):
        return exhibit.planned(dataset)
    rows = []
    chosen = dataset.isel(
        trial=np.flatnonzero((dataset.role == "point") & (dataset.status == "ok"))
    )
    for name in settings():
        values = chosen[name].values
        known = [each for each in values.tolist() if each == each and each != ""]
        if name == "interconnect":
            known = list(names_by_rate(chosen, known).values())
        if known:
            levels = list(dict.fromkeys(known))
            words = [(each if name == "interconnect" else quoted(each)) if isinstance(each, str) else number(each, 6).rstrip("0").rstrip(".") if each != int(each) else f"{each:.0f}" for each in levels]  # fmt: skip
            more = f" and {len(words) - 8} more" if len(words) > 8 else ""
            rows.append((quoted(name.replace("_", " ")), ", ".join(words[:8]) + more))
    files = len(set(dataset.file.values.tolist()))
    caption = f"The settings of the runs in {counted(files, 'file')}."
    return Table(
        exhibit.label_of("settings", dataset),
        ("Setting", "Values"),
        "ll",
        rows or [(UNKNOWN, UNKNOWN)],
        caption,
    )
