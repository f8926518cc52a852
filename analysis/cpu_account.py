"""Whose the machine's CPU time was: what the emulated nodes' programs and the kernel's work for them take, and what is nobody's."""

import numpy as np
import xarray as xr

# Of the machine's CPU time. Where more of it is nobody's, work of an end may be among it, and nothing is said of
# either end; where as much is missing, what the machine does by itself was overestimated, and so may the rest be.
MOST_UNATTRIBUTED = 0.10

ENDS = {"local": "sender", "remote": "receiver"}  # as netperf calls them: the client's machine and the other


def unattributed(dataset: xr.Dataset) -> xr.DataArray:
    """Share of the machine's CPU time that is nobody's, over (trial); below 0 where more was accounted for."""
    return dataset.unattributed_cpu_time / dataset.host_cpu_time


def of_end(dataset: xr.Dataset, end: str) -> xr.DataArray:
    """CPU time [s] of the node at the `local` or `remote` end over (trial): its programs' and the kernel's that receives for it.

    NaN where it was not counted, and where more than MOST_UNATTRIBUTED of the machine's is unattributed.
    """
    node = dataset[ENDS[end]]
    counted = dataset.cpu_time.where(dataset.node == node).sum("node", min_count=1)
    return counted.where(np.abs(unattributed(dataset)) <= MOST_UNATTRIBUTED)


def instructions_of_end(dataset: xr.Dataset, end: str) -> xr.DataArray:
    """Instructions of the node at the `local` or `remote` end over (trial); NaN where they were not counted."""
    return dataset.instructions.where(dataset.node == dataset[ENDS[end]]).sum("node", min_count=1)


def of_both(dataset: xr.Dataset) -> xr.DataArray:
    """CPU time [s] of both ends' nodes over (trial), with all that is nobody's.

    That is more than theirs where a shaper works; NaN where it was not counted.
    """
    taking_part = (dataset.node == dataset.sender) | (dataset.node == dataset.receiver)
    counted = dataset.cpu_time.where(taking_part).sum("node", min_count=2)
    return counted + dataset.unattributed_cpu_time.clip(min=0)
