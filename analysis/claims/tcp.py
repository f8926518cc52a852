"""What the campaigns on paths and on network designs have of the claims of Nemo and of Grid'5000."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from scipy import stats

from analysis import published
from analysis.attributes import short_names
from analysis.claims.sample import Estimate, Found, origin, sample, untestable
from analysis.experiments import Studies
from analysis.experiments.topology import HPL
from analysis.statistics.repeats import variation_interval

CABLE, SWITCH, FREE_SWITCH = "crossover", "switch_8996", "switch_unshaped"  # paths like Nemo's
BASIC = 1500  # B; the largest MTU that was run stands for the source's jumbo frames
WAYS = {"both": "both ways", "forward": "one way"}
LONG = "asymmetric"  # Grid'5000's path, a tenth of its rates
UNTUNED = (
    65536  # B: the most of a window without scaling (RFC 7323); kernels of that time began with it
)
FEW, MANY = 3, 7  # targets: where the source's stopped growing, and the most of the campaign's
MUCH_LOWER = 2 / 3  # of the most that the same transfer reached, as the source's two maxima


@dataclass(frozen=True)
class Place:
    """A point of tcp_mtu: a `path`, its `mtu` [B] (0: the largest that was run) and the `direction` of the transfer."""

    path: str
    mtu: int = 0
    direction: str = "forward"


def _at(
    studies: Studies, variable, of: Place, against: Place | None = None, times: float = 1.0
) -> Iterator[Found]:
    """`times` what `variable` makes of tcp_mtu's points at a place, or its ratio to another place's of the same block."""
    study = studies.tcp_mtu
    if study is None:
        return
    points, names, levels = study.points, short_names(study.dataset), []
    for place in filter(None, (of, against)):
        level = {**asdict(place), "mtu": place.mtu or int(points.mtu.max())}
        if not all(value in points[name].values for name, value in level.items()):
            return
        levels.append(level)
    texts = [
        f"the {names[level['path']]} at MTU {level['mtu']} {WAYS[level['direction']]}"
        for level in levels
    ]
    stamped = [
        text for text, level in zip(texts, levels) if study.stamps.sel(level) == "host-bound"
    ]
    if stamped and origin(study.dataset)[0] == "emulated":
        reason = f"the machine limits {' and '.join(stamped)}, not the wire"
        yield untestable(study.dataset, reason)
        return
    values = [times * variable(points.sel(levels[0]))]
    values += [variable(points.sel(level)) for level in levels[1:]]
    if not all(np.isfinite(value).any() for value in values):
        reason = "too much CPU time belongs to neither end, such as the shaper's"
        yield untestable(study.dataset, reason)
    elif against:
        text = f"{' over '.join(texts)}, in the same block"
        yield sample(study.dataset, values[0] / values[1], text)
    else:
        yield sample(study.dataset, values[0], f"{texts[0]}, the sum of both")


def _ratio(variable: str, of: Place, against: Place, times: float = 1.0) -> partial:
    return partial(_at, variable=lambda at: at[variable], of=of, against=against, times=times)


def _megabytes(studies: Studies, mtu: int) -> Iterator[Found]:
    """Both ways' goodput together through the switch, in the source's megabytes a second."""
    megabyte = published.nemo()["totals"]["megabyte"]["value"]
    return _at(studies, lambda at: at.total / 8 / megabyte, Place(SWITCH, mtu, "both"))


def _cost(studies: Studies, end: str) -> Iterator[Found]:
    """CPU time for a byte with the largest MTU over that at 1500: from tcp_cost, whose blocks are many."""
    study = studies.tcp_mtu.cost if studies.tcp_mtu else None
    if study is not None and BASIC in study.points.mtu.values:
        cost, largest = study.points[f"cost_{end}"], int(study.points.mtu.max())
        text = f"CPU time for a byte at MTU {largest} over that at {BASIC}, in the same block"
        yield sample(study.dataset, cost.sel(mtu=largest) / cost.sel(mtu=BASIC), text)


def _receiver_over_sender(studies: Studies) -> Iterator[Found]:
    study = studies.tcp_mtu.cost if studies.tcp_mtu else None
    if study is not None and BASIC in study.points.mtu.values:
        at = study.points.sel(mtu=BASIC)
        text = "CPU time of the receiving end over the sending end's, in the same transfer"
        yield sample(study.dataset, at.cost_remote / at.cost_local, text)


def _delivered(studies: Studies) -> Iterator[Found]:
    """The share that the switch delivers over the cable's, of the packet size that suffers most in each block."""
    sizes = studies.frames.sizes if studies.frames else None
    if sizes is not None:
        delivered = sizes.points.delivered
        shares = delivered.sel(path=sizes.compared) / delivered.sel(path=sizes.reference)
        text = "delivered share of the packet size that suffers most, over the cable's"
        yield sample(sizes.dataset, shares.min("frame_bytes", skipna=False), text)


def _slowdown(studies: Studies, pattern: str) -> Iterator[Found]:
    """The slowdown of every simulated run on each of the source's own designs, neighbours in order and shuffled."""
    study = studies.topology
    if study is None:
        return
    is_own = study.judged.interconnect.isin(study.proposed)
    own = study.judged[is_own & (study.judged.pattern == pattern)]
    if own.empty:
        return
    nodes, designs = own.nodes.iloc[0], own.interconnect.unique().tolist()
    text = f"slowdown on {nodes} nodes, the source's own designs, neighbours in order and shuffled"
    if pattern == HPL:
        yield sample(study.hpl, own.slowdown.tolist(), text, "run")
    else:
        values = study.slowdowns.sel(pattern=pattern, interconnect=designs, nodes=nodes)
        yield sample(study.dataset, values, text, "run")


def _untuned_over_tuned(studies: Studies) -> Iterator[Found]:
    """Goodput with a small buffer over that with the largest one, with the kernel's default congestion control.

    In each block the geometric mean of both directions, which are equally wide neither here nor there.
    """
    study = studies.long_path
    if study is None or LONG not in study.points.path or UNTUNED not in study.points.window_bytes:
        return
    goodput = np.log(study.points.goodput.sel(path=LONG, congestion_control=study.control))
    gain = goodput.sel(window_bytes=UNTUNED) - goodput.sel(window_bytes=study.largest_window)
    text = "goodput with 64 KiB over that with the largest buffer, both directions"
    yield sample(study.dataset, np.exp(gain.mean("direction", skipna=False)), text)


def _growth(studies: Studies) -> Iterator[Found]:
    study = studies.fan_out
    for fan in study.fans if study else ():
        goodput = fan.goodput
        if fan.direction == "forward" and {FEW, MANY} <= set(goodput.receivers.values.tolist()):
            text = f"goodput of all flows to {MANY} targets over that to {FEW}, in the same block"
            ratio = goodput.sel(receivers=MANY) / goodput.sel(receivers=FEW)
            yield sample(study.dataset, ratio, text)


def _variation(studies: Studies, direction: str) -> Iterator[Found]:
    """Coefficient of variation of the same transfer's goodput."""
    study = studies.long_path
    repeats = study.repeats if study else None
    for series in repeats.series if repeats else ():
        place = (series.path, series.congestion_control, series.direction)
        if place == (LONG, study.control, direction):
            found = series.judged.sample
            inner, outer = (variation_interval(found.variation, found.n, p) for p in (0.90, 0.95))
            text = f"coefficient of variation of goodput, {series.congestion_control}"
            yield Estimate(
                *origin(repeats.dataset), found.variation, inner, outer, "modified McKay",
                found.n, text, "transfer",
            )  # fmt: skip


def _much_slower(studies: Studies) -> Iterator[Found]:
    """The share of all transfers that are much slower than the fastest of their kind, with its exact interval."""
    repeats = studies.long_path.repeats if studies.long_path else None
    if repeats is None:
        return
    goodputs = [series.judged.sample for series in repeats.series]
    slow = sum(int(np.sum(np.array(one.values) < MUCH_LOWER * one.maximum)) for one in goodputs)
    # Clopper and Pearson, Biometrika 26, 1934, 404-413
    test = stats.binomtest(slow, sum(one.n for one in goodputs))
    inner, outer = (tuple(test.proportion_ci(confidence)) for confidence in (0.90, 0.95))
    text = "share of transfers below two thirds of the fastest of their kind"
    yield Estimate(
        *origin(repeats.dataset),
        slow / test.n,
        inner,
        outer,
        "Clopper-Pearson",
        test.n,
        text,
        "transfer",
    )


QUANTITIES = {
    "nemo_jumbo_gain": _ratio("goodput", Place(CABLE), Place(CABLE, BASIC)),
    "nemo_cpu_share_local": _ratio("cpu_local", Place(CABLE), Place(CABLE, BASIC)),
    "nemo_cpu_share_remote": _ratio("cpu_remote", Place(CABLE), Place(CABLE, BASIC)),
    "nemo_cpu_byte_local": partial(_cost, end="local"),
    "nemo_cpu_byte_remote": partial(_cost, end="remote"),
    "nemo_cpu_byte_switch_local": _ratio(
        "cost_local", Place(FREE_SWITCH), Place(FREE_SWITCH, BASIC)
    ),
    "nemo_cpu_byte_switch_remote": _ratio(
        "cost_remote", Place(FREE_SWITCH), Place(FREE_SWITCH, BASIC)
    ),
    "nemo_receiver_over_sender": _receiver_over_sender,
    "nemo_cpu_both_ways": partial(
        _at,
        variable=lambda at: at.cost_local + at.cost_remote,
        of=Place(FREE_SWITCH, BASIC, "both"),
        against=Place(FREE_SWITCH, BASIC),
    ),
    "nemo_both_ways_jumbo": _ratio("total", Place(CABLE, 0, "both"), Place(CABLE), 0.5),
    "nemo_both_ways_1500": _ratio("total", Place(SWITCH, BASIC, "both"), Place(SWITCH, BASIC), 0.5),
    "nemo_8505t_is_cable": _ratio("goodput", Place(SWITCH, BASIC), Place(CABLE, BASIC)),
    "nemo_8505t_jumbo": _ratio("goodput", Place(SWITCH), Place(SWITCH, BASIC)),
    "nemo_jumbo_half_duplex": _ratio("total", Place(SWITCH, 0, "both"), Place(SWITCH)),
    "nemo_total_1500": partial(_megabytes, mtu=BASIC),
    "nemo_total_jumbo": partial(_megabytes, mtu=0),
    "nemo_non_blocking": _delivered,
    "nemo_free_neighbours": partial(_slowdown, pattern="nearest_neighbour"),
    "nemo_free_permutation": partial(_slowdown, pattern="permutation"),
    "nemo_free_all_to_all": partial(_slowdown, pattern="all_to_all"),
    "nemo_free_many_to_one": partial(_slowdown, pattern="many_to_one"),
    "nemo_free_hpl": partial(_slowdown, pattern=HPL),
    "grid5000_buffers_need_tuning": _untuned_over_tuned,
    "grid5000_stays_saturated": _growth,
    "grid5000_scatter_from_rennes": partial(_variation, direction="forward"),
    "grid5000_scatter_from_lyon": partial(_variation, direction="reverse"),
    "grid5000_much_lower": _much_slower,
}
