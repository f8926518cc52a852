"""What the campaigns on paths and on network designs measured of the claims of Nemo and of
Grid'5000.

Paths are emulated and designs are simulated; neither is measured. A property of the source's own
switch has no row.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis import published
from analysis.attributes import short_names
from analysis.claims.judging import Judgement, sample, untestable
from analysis.experiments.fan_out import FanOut
from analysis.experiments.long_path import LongPath
from analysis.experiments.tcp_mtu import TcpMtu
from analysis.experiments.topology import Topology
from analysis.oversubscription import HPL
from analysis.statements import evidence_of
from analysis.statistics.repeats import variation_interval

CABLE, SWITCH, FREE_SWITCH = "crossover", "switch_8996", "switch_unshaped"  # paths like Nemo's
BASIC = 1500  # B; the largest MTU that was run represents the source's jumbo frames
WAYS = {"both": "both ways", "forward": "one way"}
LONG = "asymmetric"  # Grid'5000's path at a tenth of its rates
UNTUNED = 65536  # B: the largest window without scaling (RFC 7323), the initial one in kernels of that time
FEW, MANY = 3, 7  # targets: where the source's goodput stopped growing, and the campaign's most
# Share of the largest goodput of the same transfer; it is the ratio of the source's two maxima.
MUCH_LOWER = 2 / 3


class Place(NamedTuple):
    """A point of tcp_mtu: a `path`, its `mtu` [B] (0: the largest that was run) and the `direction`
    of the transfer."""

    path: str
    mtu: int = 0
    direction: str = "forward"


def _at(
    study: TcpMtu, variable: str, of: Place, against: Place | None = None, times: float = 1.0
) -> Judgement | None:
    """`times` a variable of tcp_mtu's points at a place, or its ratio to the value at another place
    in the same block.

    Besides the points' own variables there are `cost`, the CPU time of both ends for a byte, and
    `megabytes`, the goodput of both ways in the source's megabytes a second.
    """
    megabyte = published.facts("nemo")["totals"]["megabyte"]["value"]
    points, names = study.points, short_names(study.dataset)
    points = points.assign(
        cost=points.cost_local + points.cost_remote, megabytes=points.total / 8 / megabyte
    )
    values, texts, limited = [], [], []
    for place in filter(None, (of, against)):
        level = place._replace(mtu=place.mtu or int(points.mtu.max()))._asdict()
        if not all(value in points[name].values for name, value in level.items()):
            return None
        text = f"the {names[level['path']]} at MTU {level['mtu']} {WAYS[level['direction']]}"
        values.append(points[variable].sel(level))
        texts.append(text)
        limited += [text] if study.stamps.sel(level) == "host-bound" else []
    if limited:
        reason = f"the machine limits {' and '.join(limited)}, not the wire"
        return untestable(study.dataset, reason)
    if not all(np.isfinite(value).any() for value in values):
        reason = "too much CPU time belongs to neither end, such as the shaper's"
        return untestable(study.dataset, reason)
    if against is None:
        return sample(study.dataset, times * values[0], f"{texts[0]}, the sum of both")
    text = f"{' over '.join(texts)}, in the same block"
    return sample(study.dataset, times * values[0] / values[1], text)


def _cost(study: TcpMtu, end: str = "") -> Judgement | None:
    """CPU time for a byte at one end with the largest MTU over that at 1500; or, at 1500, the
    receiving end's over the sending end's. From tcp_cost, which has many blocks."""
    cost = study.cost
    if cost is None or BASIC not in cost.points.mtu:
        return None
    largest = int(cost.points.mtu.max())
    at, basic = cost.points.sel(mtu=largest), cost.points.sel(mtu=BASIC)
    if not end:
        text = "CPU time of the receiving end over the sending end's, in the same transfer"
        return sample(cost.dataset, basic.cost_remote / basic.cost_local, text)
    text = f"CPU time for a byte at MTU {largest} over that at {BASIC}, in the same block"
    return sample(cost.dataset, at[f"cost_{end}"] / basic[f"cost_{end}"], text)


def _slowdown(study: Topology, pattern: str) -> Judgement | None:
    """The slowdown of every simulated run on each of the source's own designs, for neighbours in
    order and shuffled."""
    is_own = study.judged.interconnect.isin(study.proposed)
    own = study.judged[is_own & (study.judged.pattern == pattern)]
    if own.empty:
        return None
    nodes, designs = own.nodes.iloc[0], own.interconnect.unique().tolist()
    text = f"slowdown on {nodes} nodes, the source's own designs, neighbours in order and shuffled"
    if pattern == HPL:
        return sample(study.hpl, own.slowdown.tolist(), text, "run")
    values = study.slowdowns.sel(pattern=pattern, interconnect=designs, nodes=nodes)
    return sample(study.dataset, values, text, "run")


def _untuned_over_tuned(study: LongPath) -> Judgement | None:
    """Goodput with a small buffer over that with the largest one, with the kernel's default
    congestion control.

    In each block it is the geometric mean of both directions, which are not equally wide, here or
    in the source.
    """
    if LONG not in study.goodput.path or UNTUNED not in study.goodput.window_bytes:
        return None
    goodput = np.log(study.goodput.sel(path=LONG, congestion_control=study.control))
    gain = goodput.sel(window_bytes=UNTUNED) - goodput.sel(window_bytes=study.largest_window)
    text = "goodput with 64 KiB over that with the largest buffer, both directions"
    return sample(study.dataset, np.exp(gain.mean("direction", skipna=False)), text)


def _growth(study: FanOut) -> Judgement | None:
    goodput = study.goodput
    if "forward" not in goodput.direction or not {FEW, MANY} <= {
        *goodput.receivers.values.tolist()
    }:
        return None
    outwards = goodput.sel(direction="forward")
    text = f"goodput of all flows to {MANY} targets over that to {FEW}, in the same block"
    ratio = outwards.sel(receivers=MANY) / outwards.sel(receivers=FEW)
    return sample(study.dataset, ratio, text)


def _variation(study: LongPath, direction: str) -> Judgement | None:
    """Coefficient of variation of the goodput of one repeated transfer."""
    judged = study.repeats.judged.get((LONG, study.control, direction)) if study.repeats else None
    if judged is None:
        return None
    return Judgement(
        evidence_of(study.repeats.dataset),
        estimate=judged.variation,
        interval_90=variation_interval(judged.variation, judged.n, 0.90),
        interval_95=variation_interval(judged.variation, judged.n, 0.95),
        kind="modified McKay",
        n=judged.n,
        n_of="transfer",
        of=f"coefficient of variation of goodput, {study.control}",
    )


def _much_slower(study: LongPath) -> Judgement | None:
    """The share of all transfers that are much slower than the fastest of their kind, with its
    exact interval."""
    if study.repeats is None:
        return None
    goodputs = [judged for judged in study.repeats.judged.values() if judged.values]
    slow = sum(int(np.sum(np.array(one.values) < MUCH_LOWER * max(one.values))) for one in goodputs)
    # Clopper and Pearson, Biometrika 26, 1934, 404-413
    test = stats.binomtest(slow, sum(one.n for one in goodputs))
    return Judgement(
        evidence_of(study.repeats.dataset),
        estimate=slow / test.n,
        interval_90=tuple(test.proportion_ci(0.90)),
        interval_95=tuple(test.proportion_ci(0.95)),
        kind="Clopper-Pearson",
        n=test.n,
        n_of="transfer",
        of="share of transfers below two thirds of the fastest of their kind",
    )


def _ratio(variable: str, of: Place, against: Place | None = None, times: float = 1.0) -> list:
    return [("tcp_mtu", partial(_at, variable=variable, of=of, against=against, times=times))]


QUANTITIES = {
    "nemo_jumbo_gain": _ratio("goodput", Place(CABLE), Place(CABLE, BASIC)),
    "nemo_cpu_share_local": _ratio("cpu_local", Place(CABLE), Place(CABLE, BASIC)),
    "nemo_cpu_share_remote": _ratio("cpu_remote", Place(CABLE), Place(CABLE, BASIC)),
    "nemo_cpu_byte_local": [("tcp_mtu", partial(_cost, end="local"))],
    "nemo_cpu_byte_remote": [("tcp_mtu", partial(_cost, end="remote"))],
    "nemo_cpu_byte_switch_local": _ratio(
        "cost_local", Place(FREE_SWITCH), Place(FREE_SWITCH, BASIC)
    ),
    "nemo_cpu_byte_switch_remote": _ratio(
        "cost_remote", Place(FREE_SWITCH), Place(FREE_SWITCH, BASIC)
    ),
    "nemo_receiver_over_sender": [("tcp_mtu", _cost)],
    "nemo_cpu_both_ways": _ratio(
        "cost", Place(FREE_SWITCH, BASIC, "both"), Place(FREE_SWITCH, BASIC)
    ),
    "nemo_both_ways_jumbo": _ratio("total", Place(CABLE, 0, "both"), Place(CABLE), 0.5),
    "nemo_both_ways_1500": _ratio("total", Place(SWITCH, BASIC, "both"), Place(SWITCH, BASIC), 0.5),
    "nemo_8505t_is_cable": _ratio("goodput", Place(SWITCH, BASIC), Place(CABLE, BASIC)),
    "nemo_total_1500": _ratio("megabytes", Place(SWITCH, BASIC, "both")),
    "nemo_free_neighbours": [("topology", partial(_slowdown, pattern="nearest_neighbour"))],
    "nemo_free_permutation": [("topology", partial(_slowdown, pattern="permutation"))],
    "nemo_free_all_to_all": [("topology", partial(_slowdown, pattern="all_to_all"))],
    "nemo_free_many_to_one": [("topology", partial(_slowdown, pattern="many_to_one"))],
    "nemo_free_hpl": [("topology", partial(_slowdown, pattern=HPL))],
    "grid5000_buffers_need_tuning": [("long_path", _untuned_over_tuned)],
    "grid5000_stays_saturated": [("fan_out", _growth)],
    "grid5000_scatter_from_rennes": [("long_path", partial(_variation, direction="forward"))],
    "grid5000_scatter_from_lyon": [("long_path", partial(_variation, direction="reverse"))],
    "grid5000_much_lower": [("long_path", _much_slower)],
}
