"""What the appendix on the twelve rules says: how each exhibit meets them, and which values were tested."""

import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources

import numpy as np
import xarray as xr

from analysis.facts.plain import known
from analysis.inference.averages import NAMES, Kind
from analysis.inference.normality import LEVEL, check
from analysis.rules.check import Judged, Known
from analysis.rules.rules import RULES
from analysis.studies.together import Studies
from analysis.studies.topology import in_words

SOURCE = {
    "author": "T. Hoefler, R. Belli",
    "title": "Scientific Benchmarking of Parallel Computing Systems",
    "kind": "Proceedings of the conference on High Performance Computing, Networking, Storage and Analysis",
    "year": 2015,
    "short": "Hoefler and Belli 2015",
}


def known_of(studies: Studies) -> Known:
    """What the rules ask of the data: the campaigns' runners, those that were tested, and how tools are timed."""
    # What repeats itself exactly has no distribution that could be normal or not.
    simulated = frozenset(name for name, it in studies.datasets.items() if set(it.evidence.values) == {"simulated"})
    return Known(
        runners={name: frozenset(np.unique(it.runner.values).tolist()) for name, it in studies.datasets.items()},
        checked=frozenset(name for name, *_ in averaged(studies)) | simulated,
        timed=frozenset(timing()),
    )


def timing() -> dict[str, str]:
    """How each tool takes the time, synchronises its processes and sums up over them, by the runner's name."""
    return tomllib.loads(resources.files("analysis.rules").joinpath("timing.toml").read_text(encoding="utf-8"))


def collect(judged: Sequence[Judged], studies: Studies, tested: bool = True) -> dict:
    """All facts of the appendix; of a test without points the p is None. Nothing is `tested` where it is not shown."""
    used = {runner for runners in known_of(studies).runners.values() for runner in runners}
    return {
        "source": SOURCE,
        "numbers": list(RULES),
        "figures": [_row(it) for it in judged if it.label.startswith("fig:")],
        "tables": [_row(it) for it in judged if it.label.startswith("tbl:")],
        "timing": {runner: words for runner, words in timing().items() if runner in used},
        "level": LEVEL,
        "normality": [_normality(*it) for it in averaged(studies)] if tested else [],
    }


def averaged(studies: Studies) -> Iterator[tuple[str, str, xr.DataArray, Kind]]:
    """What the report averages with a t interval: campaign, quantity, values over (block, ...), and their kind."""
    if studies.scaling:
        yield "hpl_scaling", "HPL rate", studies.scaling.points.rate, "rate"
        yield "hpl_scaling", "share of the nodes' known rate", studies.scaling.points.share, "ratio"
    if studies.table1:
        yield "hpl_table1", "share of F", studies.table1.points.share, "ratio"
    if studies.invariance:
        yield "hpl_invariance", "share of F", studies.invariance.points.share, "ratio"
    if studies.size:
        yield "hpl_size", "share of the nodes' known rate", studies.size.points.share, "ratio"
    if studies.noise:
        logs = xr.concat([daemon.log_ratio for daemon in studies.noise.daemons], "daemon")
        yield "hpl_noise", "rate with over without the daemon", np.exp(logs), "ratio"
    if studies.blas:
        yield "hpl_blas", "HPL rate", studies.blas.points.rate, "rate"
    if studies.switch:
        yield "tcp_mtu", "goodput", studies.switch.mtu.points.total, "rate"
        yield "tcp_mtu", "CPU of both machines", studies.switch.mtu.points.cpu_mean, "cost"
    if studies.switch and studies.switch.cost:
        costs = xr.concat([end.values for end in studies.switch.cost.ends], "end")
        yield "tcp_cost", "cost of a byte", costs, "cost"
    if studies.switch and studies.switch.sizes:
        yield "packet_sizes", "packets received", studies.switch.sizes.points.received, "rate"
    if studies.long_path:
        yield "long_path", "goodput", studies.long_path.points.goodput, "rate"
    if studies.long_path and studies.long_path.repeats:
        values = [np.array(it.judged.sample.values) for it in studies.long_path.repeats.series]
        longest = max(map(len, values))
        padded = [np.pad(it.astype(float), (0, longest - len(it)), constant_values=np.nan) for it in values]
        yield "long_repeats", "goodput, for its variation", xr.DataArray(padded, dims=("series", "block")), "cost"
    if studies.fan_out:
        yield "fan_out", "goodput of all flows", studies.fan_out.points.goodput, "rate"
    if studies.token_exchange:
        yield "token_exchange", "throughput of all pairs", studies.token_exchange.points.throughput, "rate"
    if studies.link_bonding:
        yield "link_hpl", "share of the nodes' known rate", studies.link_bonding.hpl.points.share, "ratio"
    if studies.link_bonding and studies.link_bonding.micro:
        yield "link_micro", "goodput", studies.link_bonding.micro.points.goodput, "rate"
    for it in studies.topology.growth if studies.topology else ():
        if it.residuals.size:
            about = xr.DataArray(np.exp(it.residuals), dims="block")
            yield "topology", f"CPU time over its law, {in_words(it.pattern)}", about, "ratio"


def _row(it: Judged) -> dict:
    return {"label": it.label, "kinds": [finding.kind for finding in it.findings.values()]}


def _normality(campaign: str, quantity: str, values: xr.DataArray, kind: Kind) -> dict:
    found = check(values, kind)
    return {
        "campaign": campaign,
        "quantity": quantity,
        "mean": NAMES[kind],
        "tested": found.tested,
        "blocks": (found.least_blocks, found.most_blocks),
        "below": found.below,
        "p_holm": known(found.p_holm),
        "departs": found.departs,
    }
