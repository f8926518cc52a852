"""The quantities that the HPL paper's claims on the benchmark itself are about, each from the studies there are."""

import numpy as np
import xarray as xr

from analysis import published
from analysis.claims.sample import (
    SIMULATED,
    Estimate,
    Found,
    Printed,
    first_of_each,
    origin,
    sample,
)
from analysis.contrasts import differences
from analysis.experiments import Studies
from analysis.experiments.hpl_messages import Profile
from analysis.hpl_predictors import paper_elasticities
from analysis.statistics import design as designs
from analysis.wire import wire_limit

GB, GIB, MB, MIB = 1e9, 2**30, 1e6, 2**20  # bytes
FAST_WIRE = 10e9  # bit/s
STANDARD, JUMBO = 1500, 9000  # MTUs [B] of the time
CASE = "case"


def latency_elasticity(studies: Studies) -> list[Found]:
    """The part of its rate that HPL loses over the part by which latency grows: -d ln rate / d ln latency."""
    return _elasticities(studies, lambda each: each.sel(parameter="latency"))


def bandwidth_over_latency(studies: Studies) -> list[Found]:
    """What bandwidth does to HPL's rate less what latency does, both as elasticities."""
    return _elasticities(
        studies, lambda each: each.sel(parameter="bandwidth") - each.sel(parameter="latency")
    )


def noise_on_most_nodes(studies: Studies) -> list[Found]:
    """What a daemon on every node leaves of HPL's rate on the most nodes, over what it leaves on the fewest."""
    if studies.hpl_noise is None:
        return []
    study = studies.hpl_noise
    (daemon,) = (daemon for daemon in study.daemons if daemon.name == study.primary)
    baseline = designs.read(study.dataset).baseline_nodes
    of = f"a daemon of {daemon.name}, {study.nodes[-1]} over {baseline} nodes"
    return [sample(study.dataset, np.exp(differences(daemon.log_ratio, baseline)), of)]


def large_over_small_order(studies: Studies) -> list[Found]:
    """HPL's share of the nodes' rate at the largest order of the matrix over that at the least, same nodes, 10GE."""
    study = studies.hpl_size
    if study is None:
        return []
    blocks = study.points.share.sel(interconnect=study.reference).squeeze("nodes")
    of = f"N = {int(blocks.N[-1])} over {int(blocks.N[0])} on {study.nodes} nodes"
    return [sample(study.dataset, blocks.isel(N=-1) / blocks.isel(N=0), of)]


def small_messages(studies: Studies) -> list[Found]:
    """The share of HPL's messages that are small, on the most nodes."""
    return _of_payload(studies, "small_messages")


def bytes_in_small_messages(studies: Studies) -> list[Found]:
    """The share of HPL's bytes that are in small messages, on the most nodes."""
    return _of_payload(studies, "small_bytes")


def largest_memory_share(studies: Studies) -> list[Found]:
    """The largest part of its nodes' memory that the matrix of one of Table 1's cases fills."""
    memory = published.smith()["cluster"]["memory_per_node"]["value"]
    table = published.smith_table1()
    largest = {
        name: published.memory_share(table, memory * unit).max()
        for name, unit in (("GB", GB), ("GiB", GIB))
    }
    return [Printed({f"of {memory} {name} a node": share for name, share in largest.items()})]


def largest_order(studies: Studies) -> list[Found]:
    """The order of the largest case's matrix, as Appendix B has it."""
    order, unit = (
        max(published.smith_deck()["deck"]["N"]),
        published.smith()["table1"]["printed_n_unit"],
    )
    return [
        Printed(
            {"Appendix B's order": order, f"Appendix B's order over {unit}": order / unit},
            rounding=1,
        )
    ]


def bandwidth_over_wire(studies: Studies) -> list[Found]:
    """10GE's printed bandwidth over what 10 Gbit/s carry of TCP's payload."""
    printed = published.smith()["micro_benchmarks"]["10gige"]["bandwidth"]["value"]
    units, mtus = (
        {"10^6 B": MB, "2^20 B": MIB},
        {"frames of 1500 B": STANDARD, "frames of 9000 B": JUMBO},
    )
    shares = {
        f"{name} in {frames}": 8 * printed * unit / wire_limit(FAST_WIRE, mtu)
        for name, unit in units.items()
        for frames, mtu in mtus.items()
    }
    return [Printed(shares)]


def _elasticities(studies: Studies, read) -> list[Found]:
    """What `read` makes of the elasticities, in every case of the paper whose sensitivity was simulated."""
    varied = studies.hpl_paper.sensitivity if studies.hpl_paper else None
    if varied is None:
        return []
    found: xr.DataArray = read(paper_elasticities(varied.dataset))
    of = f"{found.nodes.size} node counts on {found.interconnect.size} networks"
    return [sample(varied.dataset, found, of, CASE)]


def _of_payload(studies: Studies, name: str) -> list[Found]:
    profiles = studies.hpl_messages.profiles if studies.hpl_messages else ()
    return first_of_each(_share(profile, name) for profile in profiles)


def _share(profile: Profile, name: str) -> Found:
    """A count: HPL sends the same messages in every run, so that one run has no scatter to judge by."""
    most = profile.summary.isel(nodes=-1)
    value, of = (
        float(most[name]),
        f"on {int(most.nodes)} nodes, {int(most.P)} x {int(most.Q)} processes",
    )
    if profile.evidence == SIMULATED:
        return sample(profile.dataset, value, of, CASE)
    exactly = (value, value)
    made = origin(profile.dataset)
    return Estimate(
        estimate=value,
        interval_90=exactly,
        interval_95=exactly,
        kind="count",
        n=1,
        n_of="run",
        of=of,
        **made,
    )
