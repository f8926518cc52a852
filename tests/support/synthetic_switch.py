"""Synthetic campaigns of the switch tests from a known truth: the shipped campaigns' own plans with
made-up readings.
"""

import numpy as np
from synthetic import of_plan

from analysis import planning
from analysis.dataset.wire import packet_limit, tcp_payload, wire_limit, wire_limit_both_ways

PER_BYTE = {"local": 0.1e-9, "remote": 0.2e-9}  # s/B
PER_PACKET = {"local": 1e-6, "remote": 2e-6}  # s
UNSHAPED = 4e9  # bit/s


def over_mtu(blocks=3, share=None, unattributed=0.02):
    """Campaign mtu; `share` maps a path to the part of a full wire that it delivers (1 where
    absent).

    Of the machine's CPU time the part `unattributed` is nobody's.
    """
    return _tcp("mtu", blocks, share or {}, unattributed)


def cost(blocks=8, noise=0.02, unattributed=0.02, seed=1, step=1.0):
    """Campaign mtu_cpu; packets of more than a page (4096 bytes) cost `step` times as much at both
    ends.

    `noise` is the log-scale sd of CPU times.
    """
    return _tcp("mtu_cpu", blocks, {}, unattributed, noise, seed, step)


def frame_size_limit(blocks=2, limit=8982, varying=False):
    """Campaign frame_size_limit; packets of more than `limit` bytes vanish on switch_8996.

    When it is `varying`, every second block has it 4 bytes lower under load.
    """
    largest = {"switch_8996": (limit, "silent", "silent"), "router_1500": (1500, "router", "local")}

    def readings(point, block):
        mtu, *faults = largest.get(point["path"], (9000, "local", "local"))
        mtu -= 4 if varying and point["load"] and block % 2 == 0 else 0
        sizes = {"payload": mtu - 28, "mtu": mtu, "bytes_largest": mtu + 14}
        return {
            f"frame_{name}{ending}": value
            for ending, fault in zip(("", "_reverse"), faults)
            for name, value in {**sizes, "fault": fault}.items()
        }

    return of_plan(planning.plan_campaign("frame_size_limit", "paths", "full", blocks), readings)


def frame_size_rate(blocks=4, lost=None, overrun=0.0, noise=0.01, seed=1):
    """Campaign frame_size_rate; of frames of a size the part that `lost` maps it to does not leave
    the switch.

    Of those that arrive, the part `overrun` is lost at the receiver's socket, on every path.
    """
    chance = np.random.default_rng(seed)

    def readings(point, block):
        sent = min(5e4, packet_limit(1e9, point["frame_bytes"])) * np.exp(chance.normal(0, noise))
        is_switch = point["path"] == "switch_8996"
        gone = (lost or {}).get(point["frame_bytes"], 0.0) if is_switch else 0.0
        frames = sent * point["duration_s"] * point["frame_bytes"]
        return {
            "packets_sent_per_s": sent,
            "datagram_loss": 1 - (1 - gone) * (1 - overrun),
            "bytes_sent": _nodes(frames, 0),
            "bytes_received": _nodes(0, frames * (1 - gone)),
        }

    return of_plan(planning.plan_campaign("frame_size_rate", "paths", "full", blocks), readings)


def _tcp(name, blocks, share, unattributed, noise=0.0, seed=1, step=1.0):
    plan, chance = (
        planning.plan_campaign(name, "paths", "full", blocks),
        np.random.default_rng(seed),
    )

    def readings(point, block):
        is_both = point["direction"] == "both"
        limit = wire_limit_both_ways if is_both else wire_limit
        rate = plan.interconnects[point["path"]].get("rate_bit_s")
        full = UNSHAPED if rate is None else limit(rate, point["mtu"])
        goodput = share.get(point["path"], 1.0) * full
        carried = (1 + is_both) * goodput / 8 * (point["duration_s"] + point["omit_s"])
        packets = carried / tcp_payload(point["mtu"]) * (step if point["mtu"] > 4096 else 1.0)
        ends = [
            (PER_BYTE[end] * carried + PER_PACKET[end] * packets) * np.exp(chance.normal(0, noise))
            for end in ("local", "remote")
        ]
        return {
            "goodput": goodput,
            "goodput_reverse": goodput if is_both else np.nan,
            "cpu_time": _nodes(*ends),
            "host_cpu_time": sum(ends) / (1 - unattributed),
            "unattributed_cpu_time": sum(ends) * unattributed / (1 - unattributed),
        }

    return of_plan(plan, readings)


def _nodes(sender, receiver):
    return [sender, receiver, *[np.nan] * 6]
