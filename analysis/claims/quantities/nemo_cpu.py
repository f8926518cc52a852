"""The quantities that the Nemo switch tests' claims on CPU time are about, from the campaigns tcp_cost and tcp_mtu.

A shaper's work is nobody's, so that an end's CPU time can be told on paths without a rate. There throughput is the
machine's own, and the time for a byte is what can be compared.
"""

import numpy as np

from analysis.claims.nemo_tests import (
    BASIC,
    JUMBO,
    SWITCH_JUMBO,
    Place,
    at,
    largest_mtu,
    line,
    ratio,
    total,
)
from analysis.claims.sample import Found, Printed, Sample, Untestable, origin, sample
from analysis.experiments import Studies

CABLE, FREE_SWITCH = "crossover", "switch_unshaped"


def cable_share_local(studies: Studies) -> list[Found]:
    """The sending end's share of its processors with jumbo frames over that at 1500, on the cable."""
    return _share(studies, "local")


def cable_share_remote(studies: Studies) -> list[Found]:
    """As `cable_share_local`, of the receiving end."""
    return _share(studies, "remote")


def cable_cost_local(studies: Studies) -> list[Found]:
    """The sending end's CPU time for a byte with jumbo frames over that at 1500, on the cable."""
    return [_printed_cost("local", "crossover", JUMBO), *_cost_on_cable(studies, "local")]


def cable_cost_remote(studies: Studies) -> list[Found]:
    """As `cable_cost_local`, of the receiving end."""
    return [_printed_cost("remote", "crossover", JUMBO), *_cost_on_cable(studies, "remote")]


def switch_cost_local(studies: Studies) -> list[Found]:
    """As `cable_cost_local`, through the switch."""
    return [
        _printed_cost("local", "smc_8505t", SWITCH_JUMBO),
        *_cost_through_switch(studies, "local"),
    ]


def switch_cost_remote(studies: Studies) -> list[Found]:
    """As `switch_cost_local`, of the receiving end."""
    return [
        _printed_cost("remote", "smc_8505t", SWITCH_JUMBO),
        *_cost_through_switch(studies, "remote"),
    ]


def receiver_over_sender(studies: Studies) -> list[Found]:
    """The receiving end's CPU time over the sending end's, at 1500 one way on the cable."""
    test = line("crossover", BASIC)
    printed = Printed(
        {"remote CPU over local CPU of test 2": test.cpu_remote_percent / test.cpu_local_percent}
    )
    study = studies.tcp_mtu.cost if studies.tcp_mtu else None
    if study is None or BASIC not in study.points.mtu.values:
        return [printed]
    here = study.points.sel(mtu=BASIC)
    text = "CPU time of the receiving end over the sending end's, in the same transfer"
    return [printed, sample(study.dataset, here.cost_remote / here.cost_local, text)]


def both_ways_cost(studies: Studies) -> list[Found]:
    """CPU time of both ends for a byte, both ways at once over one way, at 1500 through the switch."""
    tests = line("smc_8505t", BASIC, "both"), line("smc_8505t", BASIC)
    cpu = [test.cpu_local_percent + test.cpu_remote_percent for test in tests]
    cost = cpu[0] / total("smc_8505t", BASIC), cpu[1] / tests[1].goodput_kib_s
    printed = Printed({"CPU of both ends over goodput, test 4 over test 2": cost[0] / cost[1]})
    ends = [at(studies, Place(FREE_SWITCH, BASIC, way)) for way in ("both", "forward")]
    if any(end is None for end in ends):
        return [printed]
    both, alone = (end.cost_local + end.cost_remote for end in ends)
    text = "CPU time of both ends for a byte, both ways over one way, in the same block"
    return [printed, sample(studies.tcp_mtu.dataset, both / alone, text)]


def _share(studies: Studies, end: str) -> list[Found]:
    above, below = (line("crossover", mtu)[f"cpu_{end}_percent"] for mtu in (JUMBO, BASIC))
    printed = Printed({f"{end} CPU of test 1 over test 2": above / below}, rounding=0.01)
    found = ratio(studies, f"cpu_{end}", Place(CABLE, largest_mtu(studies)), Place(CABLE, BASIC))
    samples = [one for one in found if isinstance(one, Sample)]
    if any(not np.isfinite(one.values).any() for one in samples):
        kind = origin(studies.tcp_mtu.dataset)["evidence"]
        found = [Untestable(kind, "too much CPU time belongs to neither end, such as the shaper's")]
    return [printed, *found]


def _printed_cost(end: str, device: str, jumbo: int) -> Printed:
    tests = [line(device, mtu) for mtu in (jumbo, BASIC)]
    above, below = (test[f"cpu_{end}_percent"] / test.goodput_kib_s for test in tests)
    return Printed({f"{end} CPU over goodput, test 1 over test 2": above / below})


def _cost_on_cable(studies: Studies, end: str) -> list[Found]:
    """From tcp_cost, whose blocks are many, with the largest MTU that was run."""
    study = studies.tcp_mtu.cost if studies.tcp_mtu else None
    if study is None or BASIC not in study.points.mtu.values:
        return []
    cost, largest = study.points[f"cost_{end}"], int(study.points.mtu.max())
    text = f"CPU time for a byte at MTU {largest} over that at {BASIC}, in the same block"
    return [sample(study.dataset, cost.sel(mtu=largest) / cost.sel(mtu=BASIC), text)]


def _cost_through_switch(studies: Studies, end: str) -> list[Found]:
    return ratio(
        studies, f"cost_{end}", Place(FREE_SWITCH, largest_mtu(studies)), Place(FREE_SWITCH, BASIC)
    )
