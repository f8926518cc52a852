"""The quantities that the Nemo switch tests' claims are about: goodputs, and what a switch passes.

What the source prints comes from data/published/nemo_netperf.csv, the rest from the campaigns tcp_mtu and
packet_sizes.
"""

from analysis import published
from analysis.claims.nemo_tests import (
    BASIC,
    JUMBO,
    SWITCH_JUMBO,
    Place,
    at,
    host_bound,
    in_words,
    largest_mtu,
    line,
    ratio,
    total,
)
from analysis.claims.sample import Found, Printed, sample
from analysis.experiments import Studies
from analysis.wire import ETHERNET_HEADER, wire_limit

CABLE, SWITCH = "crossover", "switch_8996"  # the paths that are like its cable and its switches
PING_HEADERS = 28  # B, of IPv4 and ICMP


def cable_jumbo_gain(studies: Studies) -> list[Found]:
    """Goodput with jumbo frames over that at 1500, one way on the cable."""
    printed = line("crossover", JUMBO).goodput_kib_s / line("crossover", BASIC).goodput_kib_s
    found = ratio(studies, "goodput", Place(CABLE, largest_mtu(studies)), Place(CABLE, BASIC))
    return [Printed({"goodput of test 1 over test 2": printed}), *found]


def cable_both_ways(studies: Studies) -> list[Found]:
    """What each way keeps of one way's goodput when both are used at once, jumbo frames on the cable."""
    alone = line("crossover", JUMBO).goodput_kib_s
    ways = {
        flow: line("crossover", JUMBO, "both", flow).goodput_kib_s
        for flow in ("forward", "reverse")
    }
    printed = Printed(
        {f"the {flow} flow of test 3 over test 1": way / alone for flow, way in ways.items()}
    )
    return [printed, *_kept(studies, CABLE, largest_mtu(studies))]


def switch_both_ways(studies: Studies) -> list[Found]:
    """What each way keeps of one way's goodput when both are used at once, at 1500 through the switch."""
    kept = total("smc_8505t", BASIC) / 2 / line("smc_8505t", BASIC).goodput_kib_s
    return [Printed({"mean flow of test 4 over test 2": kept}), *_kept(studies, SWITCH, BASIC)]


def switch_8505t_at_1500(studies: Studies) -> list[Found]:
    """Goodput through the switch over that on the cable, at 1500 one way."""
    return [
        _against_cable("smc_8505t"),
        *ratio(studies, "goodput", Place(SWITCH, BASIC), Place(CABLE, BASIC)),
    ]


def switch_8508t_at_1500(studies: Studies) -> list[Found]:
    """As `switch_8505t_at_1500`, of the other switch, as printed."""
    return [_against_cable("smc_8508t")]


def switch_8505t_jumbo(studies: Studies) -> list[Found]:
    """Goodput with jumbo frames over that at 1500, one way through the switch."""
    found = ratio(studies, "goodput", Place(SWITCH, largest_mtu(studies)), Place(SWITCH, BASIC))
    return [_jumbo_through("smc_8505t"), *found]


def switch_8508t_jumbo(studies: Studies) -> list[Found]:
    """As `switch_8505t_jumbo`, of the other switch, as printed."""
    return [_jumbo_through("smc_8508t")]


def switch_jumbo_both_ways(studies: Studies) -> list[Found]:
    """Both ways' goodput together over that of one way alone, jumbo frames through the switch."""
    mtu, alone = largest_mtu(studies), line("smc_8505t", SWITCH_JUMBO).goodput_kib_s
    found = ratio(studies, "total", Place(SWITCH, mtu, "both"), Place(SWITCH, mtu))
    return [
        Printed({"sum of test 3's flows over test 1": total("smc_8505t", SWITCH_JUMBO) / alone}),
        *found,
    ]


def total_at_1500(studies: Studies) -> list[Found]:
    """Both ways' goodput together at 1500 through the switch, in the source's megabytes a second."""
    return [_total(BASIC), *_in_megabytes(studies, BASIC)]


def total_of_jumbo(studies: Studies) -> list[Found]:
    """Both ways' goodput together with jumbo frames through the switch, in the source's megabytes a second."""
    return [_total(SWITCH_JUMBO), *_in_megabytes(studies, largest_mtu(studies))]


def frame_limit_8505t(studies: Studies) -> list[Found]:
    """The largest frame that the switch passes, from its largest ping and from the MTU that was set."""
    return [_frame("smc_8505t")]


def frame_limit_8508t(studies: Studies) -> list[Found]:
    """As `frame_limit_8505t`, of the other switch."""
    return [_frame("smc_8508t")]


def frame_of_cable(studies: Studies) -> list[Found]:
    """The largest frame on the cable, from the MTU of its test."""
    return [Printed({"MTU 9000 and Ethernet's header": JUMBO + ETHERNET_HEADER})]


def nine_kilobytes(studies: Studies) -> list[Found]:
    """The switches' frame limit in kilobytes."""
    frame = published.nemo()["frame_limit"]["smc_8505t"]["frame"]["value"]
    return [
        Printed(
            {"frames of 8996 bytes, 1 kB = 1000 B": frame / 1000, "1 kB = 1024 B": frame / 1024},
            rounding=1,
        )
    ]


def delivered_share(studies: Studies) -> list[Found]:
    """The share that the switch delivers over the cable's, of the packet size that suffers most in each block.

    As printed: what jumbo frames reach of what the wire carries at their MTU.
    """
    rate = published.nemo()["netperf"]["line_rate"]["value"]
    share = (
        8 * 1024 * line("smc_8505t", SWITCH_JUMBO).goodput_kib_s / wire_limit(rate, SWITCH_JUMBO)
    )
    printed = Printed({"goodput of test 1 over what the wire carries at MTU 8982": share})
    sizes = studies.frames.sizes if studies.frames else None
    if sizes is None:
        return [printed]
    delivered = sizes.points.delivered
    shares = delivered.sel(path=sizes.compared) / delivered.sel(path=sizes.reference)
    text = "delivered share of the packet size that suffers most, over the cable's"
    return [printed, sample(sizes.dataset, shares.min("frame_bytes", skipna=False), text)]


def _kept(studies: Studies, path: str, mtu: int) -> list[Found]:
    """The mean of both ways' goodputs over that of one way alone."""
    return ratio(studies, "total", Place(path, mtu, "both"), Place(path, mtu), times=0.5)


def _against_cable(device: str) -> Printed:
    readings = line(device, BASIC).goodput_kib_s / line("crossover", BASIC).goodput_kib_s
    return Printed({"goodput of test 2 over the cable's": readings})


def _jumbo_through(device: str) -> Printed:
    readings = line(device, SWITCH_JUMBO).goodput_kib_s / line(device, BASIC).goodput_kib_s
    return Printed({"goodput of test 1 over test 2": readings})


def _frame(device: str) -> Printed:
    limit = published.nemo()["frame_limit"][device]
    readings = {
        "payload of the ping and its headers": limit["payload"]["value"]
        + PING_HEADERS
        + ETHERNET_HEADER,
        "MTU and Ethernet's header": limit["mtu"]["value"] + ETHERNET_HEADER,
    }
    return Printed(readings, rounding=1)


def _total(mtu: int) -> Printed:
    """Both flows' sum in what a megabyte may mean: totals are printed in MB/s, flows in KB/s of 2^10 bytes."""
    both, sizes = (
        total("smc_8505t", mtu),
        {"1000 KB": 1000, "1024 KB": 1024, "10^6 bytes": 1e6 / 1024},
    )
    return Printed(
        {f"sum of both flows, 1 MB = {name}": both / size for name, size in sizes.items()}
    )


def _in_megabytes(studies: Studies, mtu: int) -> list[Found]:
    place = Place(SWITCH, mtu, "both")
    here = at(studies, place)
    if here is None:
        return []
    study, megabyte = studies.tcp_mtu, published.nemo()["totals"]["megabyte"]["value"]
    text = f"{in_words(study, place)}, the sum of both"
    return host_bound(study, place) or [sample(study.dataset, here.total / 8 / megabyte, text)]
