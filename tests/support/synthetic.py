"""Synthetic campaigns in the dataset's own schema: planted truth, block effects, noise, faults."""

import json
import tomllib
from itertools import product

import numpy as np

from analysis.dataset.schema import check
from analysis.dataset.store import laid_out
from analysis.paths import INTERCONNECTS as INTERCONNECTS_FILE
from runners.tools.hpl import operations

KNOWN = tomllib.loads(INTERCONNECTS_FILE.read_text(encoding="utf-8"))
INTERCONNECTS = ("gige", "10gige", "unshaped")
GOODPUT = {"gige": 0.94e9, "10gige": 9.2e9, "unshaped": 13.6e9}  # bit/s
ROUND_TRIP = {"gige": 60e-6, "10gige": 40e-6, "unshaped": 30e-6}  # s
NODE_RATE = 4.35  # Gflop/s at which a node is paced
TAKEN = 0.9  # of what it is asked to take, a daemon takes so much
DAEMONS = {"none": (0.0, 0)} | {
    f"{percent} % at {hz} Hz": (percent / 100, hz)
    for percent, hz in product((1, 2, 5), (10, 100, 1000))
}  # share of a node's computing, and pauses a second of it


def campaign(blocks=12, falls=None, nodes=(1, 2, 4, 8), margin=0.05, **chance):
    """A dataset as `analysis.dataset.store.assemble` makes it, from a known truth.

    `falls` maps an interconnect to its planted relative fall at the largest node count
    against n = 2 (none elsewhere); for the rest see `from_design`.
    """
    falls = {"gige": 0.13} if falls is None else falls
    design = {
        "margin": margin,
        "primary": ["gige", "10gige"],
        "control": "unshaped",
        "baseline_nodes": 2,
        "factors": {"interconnect": list(INTERCONNECTS), "nodes": list(nodes)},
    }

    def rate(point):
        return rate_without_noise(point["interconnect"], point["nodes"], falls, max(nodes))

    return from_design("hpl_scaling", design, rate, blocks, **chance)


PRIMARY = [  # of the scale model's campaign, in this order
    {"networks": ["gige", "10gige"], "from": 2, "to": 8, "expected": "falls off"},
    {"networks": ["10gige", "unshaped"], "from": 2, "to": 8, "expected": "flat"},
    {"networks": ["gige", "10gige"], "from": 8, "to": 16, "expected": "flat"},
]


def sequential_campaign(
    blocks=9, falls=(0.13, 0.0, 0.0), looks=(4, 6, 9), one_sided=0.02, alone=0.0, **chance
):
    """A campaign with the planned looks and the fixed sequence of PRIMARY, whose true falls are
    `falls`.

    `alone` is the true fall of GigE against 10GE on one node, which uses no network.
    """
    nodes = [1, 2, 4, 8, 16]
    design = {
        "margin": 0.05,
        "baseline_nodes": 2,
        "negative_control": 1,
        "primary": PRIMARY,
        "looks": list(looks),
        "one_sided": one_sided,
        "factors": {"interconnect": list(INTERCONNECTS), "nodes": nodes},
    }
    first, second, third = (np.log1p(-fall) for fall in falls)
    of_10gige = {n: second * (n >= 8) for n in nodes}
    lost = {
        "unshaped": dict.fromkeys(nodes, 0.0),
        "10gige": of_10gige,
        "gige": {
            n: of_10gige[n] + first * (n >= 8) + third * (n >= 16) + np.log1p(-alone) * (n == 1)
            for n in nodes
        },
    }

    def rate(point):
        share = 0.98 / (1 + 0.03 * (point["nodes"] - 1))
        return (
            NODE_RATE * point["nodes"] * share * np.exp(lost[point["interconnect"]][point["nodes"]])
        )

    return from_design("hpl_scaling", design, rate, blocks, **chance)


def rate_without_noise(interconnect, n, falls, largest):
    """The planted HPL rate [Gflop/s]: a common share of DGEMM, less this interconnect's loss above
    n = 2.
    """
    share = 0.98 / (1 + 0.03 * (n - 1))
    lost = (1 - falls.get(interconnect, 0.0)) ** max(np.log(n / 2) / np.log(largest / 2), 0.0)
    return NODE_RATE * n * share * lost


def from_design(
    name,
    design,
    rate,
    blocks,
    noise=0.02,
    block_effect=0.005,
    seed=1,
    failed=(),
    surveyed=True,
    **settings,
):
    """Blocks of a design whose points have a `rate` [Gflop/s] without noise.

    `noise` and `block_effect` are log-scale standard deviations of a run and of a block. `failed`
    holds (block, *levels) of HPL runs without a reading. Further settings, such as a grid, are
    those of every point.
    """
    random = np.random.default_rng(seed)
    factors, largest = design["factors"], max(design["factors"]["nodes"])
    levels = list(product(*factors.values()))
    trials = _survey(largest) if surveyed else []
    for block in range(1, blocks + 1):
        effect = np.exp(random.normal(0, block_effect))
        for index in random.permutation(len(levels)):
            point = {**settings, **dict(zip(factors, levels[index]))}
            measured = effect * rate(point) * np.exp(random.normal(0, noise))
            trial = _hpl(block, point, measured, largest)
            trials.append(trial | (NO_READING if (block, *levels[index]) in failed else {}))
    node = {"flop_s": 1e9 * NODE_RATE}
    testbed = {"name": "emulated", "kind": "emulated", "nodes": largest, "node": node}
    return assembled(name, trials, design, KNOWN, testbed, {"NB": 64, "BCAST": 1, "DEPTH": 1})


NO_READING = {"status": "failed", "reason": "planted fault"} | dict.fromkeys(
    ["hpl_rate", "hpl_time", "hpl_residual", "dgemm_rate"]
    + [f"hpl_{phase}_time" for phase in ("rfact", "update", "laswp", "ptrsv")],
    np.nan,
)


def _hpl(block, point, rate, largest):
    n = point["nodes"]
    size = point.get("N", int(48 * np.sqrt(n)) * 64)
    time = operations(size) / rate / 1e9
    sent = _on_nodes(1.1 * 4 * size**2 * (n - 1) / n, n, largest)
    phases = {"rfact": 0.05, "update": 0.9, "laswp": 0.1, "ptrsv": 0.01}
    trial = {"role": "point", "runner": "hpl", "status": "ok", "reason": "", "block": block}
    trial |= {"N": size, "NB": 64, "P": 1, "Q": n, **point}
    trial |= {f"hpl_{phase}_time": part * time for phase, part in phases.items()}
    trial |= {"hpl_rate": rate, "hpl_time": time, "hpl_residual": 0.004, "wall_time": time + 2}
    trial |= {"bytes_sent": sent, "bytes_received": sent}
    trial |= {"cpu_time": _on_nodes(time / 10, n, largest)}
    if "daemon" in point:
        share, frequency = DAEMONS[point["daemon"]]
        charged = _on_nodes(0.9 * time, n, largest)
        paused = TAKEN * share * charged
        trial |= {"noise": share, "noise_hz": frequency}
        trial |= {"pace_charged": charged, "pace_paused": paused}
    return trial


def _survey(largest):
    trials = []
    for interconnect, node in product(INTERCONNECTS, range(1, largest + 1)):
        link = {"interconnect": interconnect, "sender": node, "receiver": node % largest + 1}
        link |= {"role": "survey", "block": 0, "status": "ok", "reason": "", "wall_time": 2.0}
        goodput = {"runner": "iperf3", "goodput": GOODPUT[interconnect], "retransmits": 0}
        waited = {"runner": "ping", "round_trip_time": ROUND_TRIP[interconnect], "ping_loss": 0}
        trials += [link | goodput, link | waited]
    return trials


def _on_nodes(value, n, largest):
    return np.where(np.arange(largest) < n, value, np.nan)


def assembled(name, trials, design, interconnects, testbed, settings):
    """A dataset of `trials` in their order, each a dict by schema name; values of nodes are lists
    or arrays.
    """
    ids = [
        {"trial_id": f"t{order:05d}", "order": order, "start": 1.7e9 + 30 * order}
        for order in range(len(trials))
    ]
    always = {"evidence": "emulated", "testbed": testbed["name"]}
    rows = [{**always, **identity, **trial} for identity, trial in zip(ids, trials)]
    attributes = {
        "campaign": name,
        "title": "Synthetic campaign",
        "campaign_hash": "0" * 64,
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T01:00:00+00:00",
        "stopped_by": "blocks",
        "design": json.dumps(design),
        "interconnects": json.dumps(interconnects),
        "testbed_settings": json.dumps(testbed),
        "settings": json.dumps(settings),
        "provenance": "{}",
    }
    return check(laid_out(rows, testbed["nodes"]).assign_attrs(attributes))


def of_plan(plan, readings):
    """A dataset of the plan's blocks with what `readings` gives for each point and block."""
    trials = [
        {**trial.point, **readings(trial.point, trial.block)}
        | {"role": "point", "runner": trial.runner, "block": trial.block, "status": "ok"}
        for block in plan.blocks
        for trial in block
    ]
    points = [trial.point for trial in plan.blocks[0]]
    settings = {
        key: value
        for key, value in points[0].items()
        if all(point[key] == value for point in points)
    }
    return assembled(plan.name, trials, plan.design, plan.interconnects, plan.testbed, settings)
