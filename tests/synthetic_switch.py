"""Synthetic campaigns of the switch tests, from a known truth, on the paths of data/paths.toml."""

from itertools import product

import numpy as np
from synthetic import assembled

import experiment
from analysis import paths
from analysis.wire import packet_limit, tcp_payload, wire_limit, wire_limit_both_ways
from runners.description import for_preset

PATHS = experiment.read_toml(paths.PATHS, "paths")
NODES = 8
TESTBED = {"name": "paths", "kind": "paths", "nodes": NODES}
PER_BYTE = {"local": 0.1e-9, "remote": 0.2e-9}  # s/B
PER_PACKET = {"local": 1e-6, "remote": 2e-6}  # s
UNSHAPED = 4e9  # bit/s


def over_mtu(blocks=3, share=None, unattributed=0.02, failed=()):
    """Campaign tcp_mtu; `share` maps a path to the part of a full wire that it delivers (1 where absent).

    Of the machine's CPU time the part `unattributed` is nobody's; `failed` holds (block, *levels).
    """
    return _tcp("tcp_mtu", blocks, share or {}, unattributed, failed=failed)


def cost(blocks=8, noise=0.02, unattributed=0.02, seed=1, step=1.0, preset="full"):
    """Campaign tcp_cost; packets of more than a page (4096 bytes) cost `step` times as much at both ends.

    `noise` is the log-scale sd of CPU times.
    """
    return _tcp("tcp_cost", blocks, {}, unattributed, noise, seed, step=step, preset=preset)


def frame_limits(blocks=2, limit=8982, varying=False):
    """Campaign frame_limits; packets of more than `limit` bytes vanish on switch_8996.

    When it is `varying`, every second block finds it 4 bytes lower under load.
    """
    described, factors, settings = _campaign("frame_limits")
    found = {
        "crossover": (9000, "local", "local"),
        "switch": (9000, "local", "local"),
        "switch_8996": (limit, "silent", "silent"),
        "router": (9000, "local", "local"),
        "router_1500": (1500, "router", "local"),
    }
    trials = []
    for block, point in _points(blocks, factors):
        mtu, *faults = found[point["path"]]
        mtu -= 4 if varying and point["load"] and block % 2 == 0 else 0
        readings = {}
        for ending, fault in zip(("", "_reverse"), faults):
            sizes = {"payload": mtu - 28, "mtu": mtu, "bytes_largest": mtu + 14, "fault": fault}
            readings |= {f"frame_{name}{ending}": value for name, value in sizes.items()}
        trials.append({**_trial("frame_limit", block, settings, point), **readings})
    return _dataset(described, trials, factors, settings)


def packet_sizes(blocks=4, lost=None, overrun=0.0, noise=0.01, seed=1):
    """Campaign packet_sizes; of frames of a size the part that `lost` maps it to does not leave the switch.

    Of those that arrive, the part `overrun` is lost at the receiver's socket, on every path.
    """
    described, factors, settings = _campaign("packet_sizes")
    chance, trials = np.random.default_rng(seed), []
    for block, point in _points(blocks, factors):
        sent = min(5e4, packet_limit(1e9, point["frame_bytes"])) * np.exp(chance.normal(0, noise))
        gone = (
            (lost or {}).get(point["frame_bytes"], 0.0) if point["path"] == "switch_8996" else 0.0
        )
        frames = sent * settings["duration_s"] * point["frame_bytes"]
        readings = {
            "packets_sent_per_s": sent,
            "packets_received_per_s": sent * (1 - gone) * (1 - overrun),
            "datagram_loss": 1 - (1 - gone) * (1 - overrun),
            "bytes_sent": _nodes([frames, 0]),
            "bytes_received": _nodes([0, frames * (1 - gone)]),
        }
        trials.append({**_trial("udp_sizes", block, settings, point), **readings})
    return _dataset(described, trials, factors, settings)


def _tcp(name, blocks, share, unattributed, noise=0.0, seed=1, failed=(), step=1.0, preset="full"):
    described, factors, settings = _campaign(name, preset)
    chance, trials = np.random.default_rng(seed), []
    for block, point in _points(blocks, factors):
        goodput = share.get(point["path"], 1.0) * _full(point)
        ways = 2 if point["direction"] == "both" else 1
        total = ways * goodput / 8 * (settings["duration_s"] + settings["omit_s"])
        payload = tcp_payload(point["mtu"])
        dearer = step if point["mtu"] > 4096 else 1.0
        ends = [
            (PER_BYTE[end] + dearer * PER_PACKET[end] / payload)
            * total
            * np.exp(chance.normal(0, noise))
            for end in ("local", "remote")
        ]
        readings = {
            "goodput": goodput,
            "goodput_reverse": goodput if ways == 2 else np.nan,
            "cpu_time": _nodes([*ends, 0, 0]),
            "host_cpu_time": sum(ends) / (1 - unattributed),
            "unattributed_cpu_time": sum(ends) * unattributed / (1 - unattributed),
        }
        trial = {**_trial("iperf3", block, settings, point), **readings}
        if (block, *point.values()) in failed:
            trial |= {
                "goodput": np.nan,
                "goodput_reverse": np.nan,
                "status": "failed",
                "reason": "planted fault",
            }
        trials.append(trial)
    return _dataset(described, trials, factors, settings)


def _full(point):
    """A direction's share of a full wire [bit/s]."""
    rate = PATHS[point["path"]].get("rate_bit_s")
    if rate is None:
        return UNSHAPED
    limit = wire_limit_both_ways if point["direction"] == "both" else wire_limit
    return limit(rate, point["mtu"])


def _campaign(name, preset="full"):
    """A shipped campaign with its factors and settings."""
    described = for_preset(
        experiment.read_toml(paths.CAMPAIGNS / f"{name}.toml", "campaign"), preset
    )
    return described, described["factors"], described["settings"]


def _points(blocks, factors):
    for block in range(1, blocks + 1):
        for levels in product(*factors.values()):
            yield block, dict(zip(factors, levels))


def _trial(runner, block, settings, point):
    state = {
        "role": "point",
        "runner": runner,
        "block": block,
        "status": "ok",
        "reason": "",
        "wall_time": 3.0,
    }
    return {**state, **settings, **point}


def _nodes(values):
    return [*values, *[np.nan] * (NODES - len(values))]


def _dataset(described, trials, factors, settings):
    design = {**described["design"], "factors": factors}
    between = {path: PATHS[path] for path in factors["path"]}
    return assembled(described["name"], trials, design, between, TESTBED, settings)
