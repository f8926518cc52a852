"""What a byte of TCP costs each end, as a part for the byte and one for its packet: the second half of `tcp_mtu`."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, models, published, style
from analysis.cpu_account import ENDS, MOST_UNATTRIBUTED
from analysis.derive import at_only_level
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.compare import HeldOut, compare
from analysis.statistics.intervals import average, ratios, summary
from analysis.tcp import points
from analysis.wire import tcp_payload
from analysis.wording import UNKNOWN, counted, number, percent, percent_range
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "tcp_cost": ("tcp_cost",),
}

MODEL = models.find("cpu_cost")
CABLE = "crossover"  # the source's device that the campaign's cable is like
MICRO, NANO = 1e-6, 1e-9
APART = 1.4  # ticks closer than this factor would collide


@dataclass(frozen=True)
class End:
    """The cost of a byte at one end: `values` [s/B or 1/B] over (block, mtu), and `means` with 95 % t intervals.

    `fitted` is the cost model over the payload [B] of a packet; None where the data do not allow it, and `refused` says
    why. `followed` says whether it may be drawn through the means. `packet_part` is the packet's share [1] of a byte's
    cost at the least MTU by the model: geometric mean, low and high of the 95 % t interval. `left` has the `ratio` of the
    cost at the largest MTU to that at the least, `low`, `high` and `blocks`. `held_out` is the error of the others'
    prediction of the MTU that was left out; None where there is none, and `held_out_refused` says why.
    """

    name: str
    values: xr.DataArray
    means: xr.Dataset
    fitted: BlockFit | None
    refused: str
    followed: bool
    packet_part: tuple[float, float, float] | None
    left: xr.Dataset
    held_out: HeldOut | None
    held_out_refused: str


@dataclass(frozen=True)
class Cost:
    """The cost of a byte at the `sending` and the `receiving` end, on one path one way; `points` are over (block, mtu).

    It is in instructions if all trials have them (`instructions`), else in seconds of CPU time. `left_out` is the MTU
    [B] that the others predict. `unattributed` counts the trials that say nothing of an end, because too much CPU time is
    nobody's.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    instructions: bool
    left_out: int
    ends: tuple[End, ...]
    unattributed: int

    @property
    def mtus(self) -> tuple[int, int]:
        """The least and the largest MTU [B]."""
        return int(self.points.mtu.min()), int(self.points.mtu.max())

    @property
    def unit(self) -> str:
        """What a cost is counted in, in words."""
        return "instructions" if self.instructions else "CPU time"


def cost_of(dataset: xr.Dataset) -> Cost:
    """Fit the cost model to both ends; the data go from the client to the server.

    Raises FalloffError when there is no iperf3 trial, or there are several paths or directions.
    """
    found = at_only_level(points(dataset), "path", "direction")
    left_out = attributes.design(dataset)["left_out"]
    measured = found.total.notnull()
    known = [found[f"instructions_{end}"].where(measured, 0).notnull().all() for end in ENDS]
    quantity = "instructions" if all(known) and measured.any() else "cost"
    return Cost(
        dataset=dataset,
        points=found,
        instructions=quantity == "instructions",
        left_out=left_out,
        ends=tuple(
            _end(name, found[f"{quantity}_{end}"], left_out)
            for name, end in zip(("sending", "receiving"), ENDS)
        ),
        unattributed=int((np.abs(found.unattributed) > MOST_UNATTRIBUTED).sum()),
    )


def _end(name: str, values: xr.DataArray, left_out: int) -> End:
    values = values.transpose("block", "mtu")
    payload = tcp_payload(values.mtu.values)
    fitted, refused, followed, packet_part = None, "", False, None
    try:
        fitted = fit_blocks(MODEL, payload, values.values)
    except FalloffError as error:
        refused = str(error)
    else:
        followed = follows(values.values, fitted.band(payload, "cost")[0], len(MODEL.parameters))
        packet_part = _packet_part(fitted, payload.min())
    held_out, held_out_refused = _held_out(values, left_out)
    least, largest = (
        values.sel(mtu=mtu, drop=True) for mtu in (values.mtu.min(), values.mtu.max())
    )
    return End(
        name=name,
        values=values,
        means=summary(values),
        fitted=fitted,
        refused=refused,
        followed=followed,
        packet_part=packet_part,
        left=ratios(np.log(largest / least)),
        held_out=held_out,
        held_out_refused=held_out_refused,
    )


def _packet_part(fitted: BlockFit, payload: int) -> tuple[float, float, float]:
    """The packet's part [1] of what a byte costs in packets of that payload [B]."""
    per_byte, per_packet = fitted.by_block.T
    part = per_packet / payload / (per_byte + per_packet / payload)
    return tuple(float(value) for value in average(part, "ratio"))


def _held_out(values: xr.DataArray, left_out: int) -> tuple[HeldOut | None, str]:
    """How the other MTUs predict the one that is left out, or None and the reason."""
    if left_out not in values.mtu:
        return None, f"MTU {left_out} was not run"
    others = [mtu for mtu in values.mtu.values if mtu != left_out]
    ordered = values.sel(mtu=[*others, left_out])
    (found,) = compare([MODEL], tcp_payload(ordered.mtu.values), ordered.values)
    return found.held_out, found.refused or found.held_out_refused


def printed_savings() -> list[float]:
    """What the source's jumbo frames saved of a byte's CPU time [1], at the local and at the remote end of its cable."""
    tests = published.nemo_netperf().query("path == @CABLE and direction == 'forward'")
    tests = tests.sort_values("mtu")
    costs = [(tests[f"cpu_{end}_percent"] / tests.goodput_kib_s).tolist() for end in ENDS]
    return [1 - at_largest / at_least for at_least, *_, at_largest in costs]


def sentences(cost: Cost) -> Iterator[str]:
    """What the largest MTU saves at each end where it can be told from nothing, and the packet's part at the sending end."""
    least, largest = cost.mtus
    told = [end for end in cost.ends if end.left.high < 1]
    what = f" of the {cost.unit} that a byte takes at MTU {least}"
    for end in told:
        yield (
            f"At the {end.name} end, MTU {largest} saves {percent(1 - float(end.left.ratio))}{what if end is told[0] else ''} "
            f"(95 % interval {_saved(end.left)}, {counted(int(end.left.blocks), 'block')})."
        )
    if told and not cost.instructions:
        sending, receiving = (percent(saved) for saved in printed_savings())
        yield f"The source's jumbo frames saved {sending} and {receiving} on its cable (published) [@nemo]."
    sending = cost.ends[0]
    if sending.followed and np.isfinite(sending.packet_part[1]):
        part, *ends = sending.packet_part
        yield (
            f"At MTU {least}, {percent(part, 0)} of the sending end's cost is the packet's and not the byte's, by a model of both [@chase] "
            f"(95 % interval {percent_range(ends, 0)})."
        )


def findings_of(cost: Cost) -> Iterator[Finding]:
    """The parts of the cost at both ends, what the largest MTU leaves of it, and how well the model predicts, as data."""
    source, (least, largest) = origin("tcp_mtu", cost.dataset), cost.mtus
    for end in cost.ends:
        blocks = end.fitted.blocks if end.fitted else 0
        mean, *ends = end.packet_part or (np.nan, np.nan, np.nan)
        said = f"the packet's part of a byte's {cost.unit} at MTU {least}, {end.name} end"
        further = {"n": blocks, "reason": end.refused, "primary": True}
        yield of_estimate(source, said, "share", "1", mean, ends, T_INTERVAL, **further)
        ends = 1 - float(end.left.high), 1 - float(end.left.low)
        said = f"a byte's {cost.unit} falls from MTU {least} to {largest}, {end.name} end"
        further = {"n": int(end.left.blocks)}
        fall = 1 - float(end.left.ratio)
        yield of_estimate(source, said, "fall", "1", fall, ends, T_INTERVAL, **further)
        for name in MODEL.parameters:
            mean, *ends = _parameter(end, name)
            said = f"{cost.unit} {name.replace('_', ' ')}, {end.name} end"
            unit = "1" if cost.instructions else "s"
            unit += "/B" if name == "per_byte" else ""
            further = {"n": blocks, "reason": end.refused}
            yield of_estimate(source, said, "cost", unit, mean, ends, T_INTERVAL, **further)
        if end.held_out is not None:
            said = f"what the other MTUs predict of MTU {cost.left_out}, {end.name} end"
            error, further = end.held_out.error, {"n": end.held_out.blocks}
            ends = end.held_out.interval
            yield of_estimate(source, said, "error", "1", error, ends, T_INTERVAL, **further)


def _parameter(end: End, name: str) -> tuple[float, float, float]:
    return end.fitted.parameter(name, "cost") if end.fitted else (np.nan, np.nan, np.nan)


def exhibit_of(cost: Cost) -> Exhibit:
    """The figure of the cost over the MTU at both ends."""
    curves = "Curves are the cost model with its 95 % band."
    unlike = [end.name for end in cost.ends if end.fitted and not end.followed]
    missed = f"At the {' and '.join(unlike)} end the model misses the means and is not drawn."
    marks = [
        "Small marks are single blocks.",
        curves if any(end.followed for end in cost.ends) else "",
        missed if unlike else "",
        "The grey line is the MTU that the model predicts from the others.",
    ]
    return Exhibit(
        "tcp_cost",
        cost_over_mtu(cost),
        f"{cost.unit[0].upper()}{cost.unit[1:]} per byte over the MTU, one way over a cable without a rate",
        _basis(cost),
        "Cost of a byte at the sending and the receiving end over the MTU",
        " ".join(filter(None, marks)),
        rests_on=FIGURES["tcp_cost"],
    )


def cost_over_mtu(cost: Cost) -> Figure:
    """Cost of a byte [ns, or instructions] over the MTU, a panel an end, with the model's 95 % band where it follows."""
    unit = 1 if cost.instructions else NANO
    mtus = cost.points.mtu.values
    along = np.geomspace(mtus.min(), mtus.max(), 80)
    with style.styled():
        figure, panels = drawing.new_figures(2.4, len(cost.ends))
        for axes, end in zip(panels, cost.ends):
            axes.sharey(panels[0])
            axes.axvline(cost.left_out, color=style.FAINT, linewidth=1, zorder=0)
            drawing.runs(axes, end.name, mtus, end.values / unit, "")
            drawing.intervals(axes, end.name, mtus, end.values / unit, "cost")
            if end.followed:
                parts = (part / unit for part in end.fitted.band(tcp_payload(along), "cost"))
                drawing.band(axes, end.name, along, *parts)
            axes.set_title(f"{end.name} end")
            axes.set_ylim(0, None)
            drawing.doubling_axis(axes, drawing.apart(mtus, APART), "MTU [B]")
        for axes in panels[1:]:
            axes.tick_params(labelleft=False)
        label = "instructions per byte [1/B]" if cost.instructions else "CPU time per byte [ns/B]"
        panels[0].set_ylabel(label)
        return figure


def table_of(cost: Cost) -> Table:
    """The cost model of both ends, what large frames save, and how well the model predicts."""
    least, largest = cost.mtus
    micro, nano = ("", "") if cost.instructions else (" [µs]", " [ns]")
    rows = [
        (f"a byte{nano}", *(_amount(cost, end, "per_byte", NANO) for end in cost.ends)),
        (f"a packet{micro}", *(_amount(cost, end, "per_packet", MICRO) for end in cost.ends)),
        (f"the packet's part of a byte at MTU {least}", *(_part(end) for end in cost.ends)),
        (f"saved by MTU {largest} instead of {least}", *(_saving(end) for end in cost.ends)),
        (
            f"error where the others predict MTU {cost.left_out}",
            *(_error(end) for end in cost.ends),
        ),
        ("complete blocks", *(str(end.fitted.blocks if end.fitted else 0) for end in cost.ends)),
    ]
    if not cost.instructions:
        printed = (percent(saved) for saved in printed_savings())
        rows.insert(4, ("saved on the source's cable (published) [@nemo]", *printed))
    return Table(
        "tcp-cost",
        (
            f"{cost.unit[0].upper()}{cost.unit[1:]} of TCP",
            *(f"{end.name.capitalize()} end" for end in cost.ends),
        ),
        "l" + "r" * len(cost.ends),
        rows,
        _caption(cost),
        _basis(cost),
    )


def _caption(cost: Cost) -> str:
    trials = counted(int(cost.points.total.notnull().sum()), "trial")
    said = [
        "TCP's cost over a cable without a rate, taken apart for the byte and its packet [@chase]"
    ]
    if cost.unattributed and not cost.instructions:
        said.append(
            f"{cost.unattributed} of {trials} say nothing of an end: more than {percent(MOST_UNATTRIBUTED, 0)} of the machine's CPU "
            "time was nobody's"
        )
    said += [
        f"No model at the {end.name} end: {end.refused.rstrip('.')}"
        for end in cost.ends
        if end.refused
    ]
    return ". ".join(said)


def _basis(cost: Cost) -> Basis:
    evidence = cost.dataset.evidence.values.ravel()[0].item()
    return Basis(
        evidence,
        cost.points.sizes["block"],
        "arithmetic means of costs, geometric of ratios, with 95 % t intervals",
    )


def _amount(cost: Cost, end: End, name: str, unit: float) -> str:
    mean, low, high = (
        value / (1 if cost.instructions else unit) for value in _parameter(end, name)
    )
    if np.isnan(mean):
        return UNKNOWN
    return number(mean) + ("" if np.isnan(low) else f" ({number(low)} to {number(high)})")


def _part(end: End) -> str:
    return _fraction(*end.packet_part) if end.packet_part else UNKNOWN


def _saving(end: End) -> str:
    return _fraction(*(1 - float(end.left[name]) for name in ("ratio", "high", "low")))


def _error(end: End) -> str:
    if end.held_out is None:
        return f"{UNKNOWN} ({end.held_out_refused.rstrip('.')})"
    return _fraction(end.held_out.error, *end.held_out.interval)


def _fraction(mean: float, low: float, high: float) -> str:
    """A fraction in percent with its interval, as far as they are known."""
    if np.isnan(mean):
        return UNKNOWN
    return percent(mean) + ("" if np.isnan(low) else f" ({percent_range((low, high))})")


def _saved(left: xr.Dataset) -> str:
    """The interval of what is saved, from that of what is left."""
    return percent_range((1 - float(left.high), 1 - float(left.low)))
