"""What a byte of TCP costs each end: the byte itself and its share of the packet, over the MTU."""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import models
from analysis.cpu_account import ENDS, MOST_UNATTRIBUTED
from analysis.derive import at_only_level
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.compare import HeldOut, compare
from analysis.inference.over_blocks import summary
from analysis.tcp import points
from analysis.wire import tcp_payload
from runners.record import FalloffError

COST = models.find("cpu_cost")


@dataclass(frozen=True)
class End:
    """The cost at one end: `values` [1/B or s/B] over (block, mtu), and `means` of them with 95 % t intervals.

    `fitted` is the cost model over the payload [B] of a packet; None where the data do not allow it, and
    `refused` says why. `held_out` is the error of the others' prediction of the MTU that was left out, None
    where there is none, and `held_out_refused` says why.
    """

    name: str
    values: xr.DataArray
    means: xr.Dataset
    fitted: BlockFit | None
    refused: str
    held_out: HeldOut | None
    held_out_refused: str


@dataclass(frozen=True)
class TcpCost:
    """The campaign's dataset, its points over (block, mtu), and the cost at the `sending` and `receiving` end.

    The cost is in instructions if all trials have them (`instructions`), else in seconds of CPU time.
    `unattributed` counts the trials that make no statement of an end, because too much CPU time is nobody's.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    instructions: bool
    left_out: int
    ends: tuple[End, ...]
    unattributed: int


def analyse(dataset: xr.Dataset) -> TcpCost:
    """Fit the cost model to both ends; the data go from the client to the server, on one path.

    Raises FalloffError when there is no iperf3 trial, or there are several paths or directions.
    """
    found = at_only_level(points(dataset), "path", "direction")
    left_out = json.loads(dataset.attrs["design"])["left_out"]
    measured = found.total.notnull()
    counted = all(found[f"instructions_{end}"].where(measured, 0).notnull().all() for end in ENDS)
    quantity = "instructions" if counted and measured.any() else "cost"
    return TcpCost(
        dataset=dataset,
        points=found,
        instructions=quantity == "instructions",
        left_out=left_out,
        ends=tuple(
            _end(name, found[f"{quantity}_{end}"], left_out) for name, end in zip(("sending", "receiving"), ENDS)
        ),
        unattributed=int((np.abs(found.unattributed) > MOST_UNATTRIBUTED).sum()),
    )


def _end(name: str, values: xr.DataArray, left_out: int) -> End:
    values = values.transpose("block", "mtu")
    fitted, refused = None, ""
    try:
        fitted = fit_blocks(COST, tcp_payload(values.mtu.values), values.values)
    except FalloffError as error:
        refused = str(error)
    held_out, reason = _held_out(values, left_out)
    return End(name, values, summary(values), fitted, refused, held_out, reason)


def _held_out(values: xr.DataArray, left_out: int) -> tuple[HeldOut | None, str]:
    """How the other MTUs predict the one that is left out, or None and the reason."""
    if left_out not in values.mtu:
        return None, f"MTU {left_out} was not run"
    others = [mtu for mtu in values.mtu.values if mtu != left_out]
    ordered = values.sel(mtu=[*others, left_out])
    (found,) = compare([COST], tcp_payload(ordered.mtu.values), ordered.values)
    return found.held_out, found.refused or found.held_out_refused
