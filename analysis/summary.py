"""Every finding as data, for `summary.json` beside the report: what each study says, with estimate and interval."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr

from analysis.experiments.hpl_agreement import Agreement
from analysis.experiments.hpl_invariance import Invariance
from analysis.experiments.hpl_noise import Noise
from analysis.experiments.hpl_table1 import Table1
from analysis.statistics.judgement import Control, Judgement, judge
from analysis.statistics.reproduction import Reproduction, reproduction
from analysis.studies.link_bonding import Hpl, LinkBonding
from analysis.studies.long_path import LongPath
from analysis.studies.paper import Paper
from analysis.studies.scaling import Scaling, short_names
from analysis.studies.together import Studies

VERSION = 1
T_INTERVAL = "95 % t interval over the blocks"
PERCENTILE = "95 % percentile interval over draws"
CONTROL_ANSWERS = {"holds": "the same", "violated": "different", "undecided": "undecided"}


@dataclass(frozen=True)
class Finding:
    """One statement, with what it rests on; what is not known is None or empty.

    `estimate` and `interval` are of `quantity` in `unit`; falls, gains and shares are fractions. `interval_kind` says
    level and method, `n` counts `n_of`. `primary` statements are those that a campaign was planned for. `campaign`
    and `digest` name the trials, `today` says of a shorter run whether it reproduces this.
    """

    experiment: str
    statement: str
    answer: str
    quantity: str
    unit: str
    estimate: float | None
    interval: tuple[float, float] | None
    interval_kind: str
    n: int
    n_of: str
    evidence: str
    campaign: str
    digest: str
    primary: bool = False
    reason: str = ""
    today: dict | None = None


def findings(studies: Studies) -> list[Finding]:
    """What all studies found, in the report's order."""
    sources = {
        "scaling": _of_scaling,
        "table1": _of_table1,
        "agreement": _of_agreement,
        "invariance": _of_invariance,
        "size": _of_size,
        "noise": _of_noise,
        "blas": _of_blas,
        "link_bonding": _of_link_bonding,
        "paper": _of_paper,
        "long_path": _of_long_path,
        "fan_out": _of_fan_out,
        "token_exchange": _of_token_exchange,
        "prediction": _of_prediction,
        "payoff": _of_payoff,
    }
    return [
        found
        for name, source in sources.items()
        if getattr(studies, name) is not None
        for found in source(getattr(studies, name))
    ]


def text(studies: Studies) -> str:
    """The findings as the text of `summary.json`."""
    found = [asdict(finding) for finding in findings(studies)]
    return json.dumps({"version": VERSION, "findings": found}, indent=1, allow_nan=False) + "\n"


def _about(experiment: str, dataset: xr.Dataset) -> dict:
    """Where the trials are from: what every finding of a dataset has in common."""
    return {
        "experiment": experiment,
        "evidence": dataset.evidence.values.ravel()[0].item(),
        "campaign": dataset.attrs["campaign"],
        "digest": dataset.attrs["campaign_hash"],
    }


def _of_fall(about: dict, statement: str, found: Judgement, **further) -> Finding:
    """A judged fall."""
    kind = "" if found.interval is None else f"{100 * found.confidence:g} % t interval over the blocks"
    values = {"estimate": _known(found.fall), "interval": found.interval, "interval_kind": kind}
    judged = {"answer": found.answer, "reason": found.reason, "n": found.blocks, "n_of": "block"}
    return Finding(**about, **values, **judged, statement=statement, quantity="fall", unit="1", **further)


def _of_control(about: dict, statement: str, found: Control) -> Finding:
    """A ratio that is judged to be 1 or not."""
    kind = "" if found.interval is None else f"{100 * found.confidence:g} % t interval over the blocks"
    values = {"estimate": _known(found.ratio), "interval": found.interval, "interval_kind": kind}
    answer = CONTROL_ANSWERS[found.kind]
    return Finding(
        **about, **values, statement=statement, answer=answer, quantity="ratio", unit="1", n=found.blocks, n_of="block"
    )


def _of_estimate(about: dict, statement: str, quantity: str, unit: str, estimate, interval, kind: str, **further):
    """An estimate with an interval of that kind."""
    ends = (_known(interval[0]), _known(interval[1]))
    known = None not in ends
    return Finding(
        **about,
        statement=statement,
        quantity=quantity,
        unit=unit,
        estimate=_known(estimate),
        interval=ends if known else None,
        interval_kind=kind if known else "",
        **{"answer": "", "n_of": "block", **further},
    )


def _of_scaling(study: Scaling) -> Iterator[Finding]:
    about, names = _about("hpl_scaling", study.dataset), short_names(study.dataset)
    again = {found.what: found for found in study.today}
    for it in study.contrasts:
        statement = f"{names[it.network]} falls against {names[it.reference]} from {it.start} to {it.end} nodes"
        today = _today(again.get(it.what), study.today_run)
        yield _of_fall(about, statement, it.verdict, primary=it.primary, today=today)
    for it in study.contrasts:
        if it.primary and it.control is not None:
            statement = f"{names[it.network]} is as fast as {names[it.reference]} without a network"
            yield _of_control(about, statement, it.control)


def _of_table1(study: Table1) -> Iterator[Finding]:
    about, names = _about("hpl_table1", study.dataset), short_names(study.dataset)
    first, last = int(study.ratios.nodes.min()), study.end or int(study.cases.max(initial=0))
    end = f"its fall ends at {study.end} nodes" if study.end else "where its fall ends is open"
    statement = f"{names[study.network]} falls against {names[study.reference]} from {first} to {last} nodes; {end}"
    yield _of_fall(about, statement, study.fall, primary=True)


def _of_agreement(study: Agreement) -> Iterator[Finding]:
    about, names = _about("hpl_agreement", study.dataset), short_names(study.dataset)
    for name in study.shares.interconnect.values.tolist():
        for nodes in study.shares.nodes.values.tolist():
            at = study.shares.sel(interconnect=name, nodes=nodes)
            said = f"emulated over simulated rate of HPL on {names[name]}, {nodes} nodes, within {100 * float(at.goal):g} %"
            ends, further = (float(at.ratio_low), float(at.ratio_high)), {"n": int(at.blocks), "answer": at.answer.item()}
            yield _of_estimate(about, said, "ratio", "1", float(at.ratio), ends, T_INTERVAL, **further)


def _of_invariance(study: Invariance) -> Iterator[Finding]:
    about, names = _about("hpl_invariance", study.dataset), short_names(study.dataset)
    for name in study.compared.interconnect.values.tolist():
        for nodes in study.compared.nodes.values.tolist():
            for dilation in study.compared.dilation.values.tolist():
                at = study.compared.sel(interconnect=name, nodes=nodes, dilation=dilation)
                said = f"HPL's share of F on {names[name]}, {nodes} nodes, at dilation {dilation:g} over that at {study.reference:g}"
                ends, further = (float(at.low), float(at.high)), {"n": int(at.blocks), "answer": at.answer.item()}
                kind = "90 % t interval over the blocks"
                yield _of_estimate(about, said, "ratio", "1", float(at.ratio), ends, kind, **further)


def _of_size(study) -> Iterator[Finding]:
    names = short_names(study.dataset)
    statement = f"HPL's limit on {names[study.network]} over that on {names[study.reference]}, {study.nodes} nodes"
    yield _of_control(_about("hpl_size", study.dataset), statement, study.agreement)


def _of_noise(study: Noise) -> Iterator[Finding]:
    about, nodes = _about("hpl_noise", study.dataset), study.nodes
    for daemon in study.daemons:
        statement = f"the rate with a daemon of {daemon.name} falls from {nodes[0]} to {nodes[-1]} nodes"
        yield _of_fall(about, statement, daemon.growth, primary=daemon.name == study.primary)
        most = daemon.losses.sel(nodes=nodes[-1])
        ends = 1 - float(most.high), 1 - float(most.low)
        said = f"what a daemon of {daemon.name} costs HPL on {nodes[-1]} nodes"
        yield _of_estimate(about, said, "loss", "1", 1 - float(most.ratio), ends, T_INTERVAL, n=int(most.blocks))


def _of_blas(study) -> Iterator[Finding]:
    about, most = _about("hpl_blas", study.dataset), study.factors.sel(N=study.factors.N.max())
    yield _of_fall(about, f"HPL's rate with {study.slow} BLAS is less than half of that with {study.fast}", study.claim)
    ends = float(most.low), float(most.high)
    said = f"HPL's rate with {study.fast} over that with {study.slow} BLAS, N = {int(most.N)}"
    yield _of_estimate(about, said, "ratio", "1", float(most.ratio), ends, T_INTERVAL, n=int(most.blocks))


def _of_link_bonding(study: LinkBonding) -> Iterator[Finding]:
    about = _about("link_hpl", study.hpl.dataset)
    again = _log_gains(study.today.hpl) if study.today else {}
    for way in study.hpl.ways:
        each = f"{way.aggregation}, {way.ranks_per_node} processes a node"
        for nodes in way.gains.nodes.values.tolist():
            gain, key = way.gains.sel(nodes=nodes), (way.aggregation, way.ranks_per_node, nodes)
            today = None
            if key in again:
                then = way.log_gain.sel(nodes=nodes).values
                today = _today(reproduction("", then, again[key], study.hpl.margin), study.today.hpl.dataset)
            yield _of_estimate(
                about,
                f"what two links gain over one: {each}, {nodes} nodes",
                "gain",
                "1",
                float(gain.ratio) - 1,
                (float(gain.low) - 1, float(gain.high) - 1),
                T_INTERVAL,
                n=int(gain.blocks),
                today=today,
            )
        if way.growth is not None:
            most = int(way.log_gain.nodes.max())
            statement = f"one link falls against two from {study.hpl.fewest} to {most} nodes: {each}"
            yield _of_fall(about, statement, way.growth)


def _log_gains(hpl: Hpl) -> dict[tuple[str, int, int], np.ndarray]:
    """By way, processes a node and nodes."""
    return {
        (way.aggregation, way.ranks_per_node, nodes): way.log_gain.sel(nodes=nodes).values
        for way in hpl.ways
        for nodes in way.log_gain.nodes.values.tolist()
    }


def _of_paper(study: Paper) -> Iterator[Finding]:
    """The fall of the paper's contrast, and each network's own, over its cases; they are simulated once."""
    about, names = _about("hpl_paper", study.dataset), short_names(study.dataset)
    margin, nodes = study.margin, study.efficiency.nodes.values
    span = f"from {nodes.min()} to {nodes.max()} nodes"
    pair = f"{names[study.network]} falls against {names[study.reference]} {span}"
    fall = math.log1p(-float(study.relative_fall))
    yield _of_fall(about, pair, judge([fall], margin, about["evidence"]), primary=True, today=_paper_today(study))
    for network in study.efficiency.interconnect.values.tolist():
        reached = np.log(study.efficiency.sel(interconnect=network))
        alone = judge([float(reached[-1] - reached[0])], margin, about["evidence"])
        yield _of_fall(about, f"the efficiency on {names[network]} falls {span}", alone)


def _paper_today(study: Paper) -> dict | None:
    """Whether the ratios of the cases that were simulated again are the stored ones."""
    if study.today_run is None:
        return None
    again, stored = study.today_ratios, study.ratios
    both = np.intersect1d(again.nodes, stored.nodes)
    worst = max(both, key=lambda n: abs(float(np.log(again.sel(nodes=n) / stored.sel(nodes=n)))), default=None)
    if worst is None:
        return None
    values = (np.log([float(it.sel(nodes=worst))]) for it in (stored, again))
    return _today(reproduction("", *values, study.margin, exact=True), study.today_run)


def _of_long_path(study: LongPath) -> Iterator[Finding]:
    about = _about("long_path", study.dataset)
    for it in study.curves:
        blocks = 0 if it.fitted is None else it.fitted.blocks
        said = f"the buffer that fills {it.path} {it.direction} with {it.congestion_control}"
        yield _of_estimate(about, said, "buffer", "B", it.knee[0], it.knee[1:], T_INTERVAL, n=blocks, reason=it.refused)
    for it in study.contrasts:
        said = f"goodput with {it.congestion_control} over that with {study.control}: {it.path} {it.direction}"
        yield _of_control(about, said, it.agreement)


def _of_fan_out(study) -> Iterator[Finding]:
    about = _about("fan_out", study.dataset)
    for it in study.fans:
        blocks = 0 if it.fitted is None else it.fitted.blocks
        said = f"what limits the flows, {it.direction}, and from how many on"
        further = {"n": blocks, "answer": it.verdict.limit, "reason": it.refused}
        yield _of_estimate(about, said, "receivers", "1", it.knee[0], it.knee[1:], T_INTERVAL, **further)


def _of_token_exchange(study) -> Iterator[Finding]:
    about = _about("token_exchange", study.dataset)
    for it in study.claims:
        at = "" if it.rate is None else f" at {it.rate / 1e6:g} Mbit/s"
        further = {"n": it.blocks, "answer": it.kind, "reason": it.reason}
        yield _of_estimate(about, f"{it.about}{at}", "ratio", "1", it.ratio, it.interval_95, T_INTERVAL, **further)


def _of_prediction(study) -> Iterator[Finding]:
    about = _about("hpl_prediction", study.tokens)
    blocks = study.emulated_points.sizes["block"]
    for predictor in study.errors.predictor.values.tolist():
        for network in study.errors.interconnect.values.tolist():
            for nodes in study.errors.nodes.values.tolist():
                at = {"predictor": predictor, "interconnect": network, "nodes": nodes}
                error = study.errors.sel(at)
                further = {"n": blocks, "answer": study.kinds.sel(at).item()}
                said = f"the {predictor} prediction of HPL's rate on {network}, {nodes} nodes"
                ends = float(error.low), float(error.high)
                yield _of_estimate(about, said, "error", "1", float(error.value), ends, PERCENTILE, **further)


def _of_payoff(study) -> Iterator[Finding]:
    about = _about("payoff", study.gains.dataset)
    both = study.from_nodes.sel(uncertain="both")
    said = f"from how many nodes on {study.gains.reference} gives cheaper HPL than {study.gains.network}"
    ends = float(both.low), float(both.high)
    draws = study.gains.drawn.sizes["draw"]
    yield _of_estimate(about, said, "nodes", "1", float(both.value), ends, PERCENTILE, n=draws, n_of="draw")


def _today(found: Reproduction | None, run: xr.Dataset | None) -> dict | None:
    """Whether a run of today reproduces a finding: ratios of both, of falls what is left."""
    if found is None or run is None:
        return None
    return {
        "answer": found.kind,
        "reason": found.reason,
        "judged_as": found.answers[1],
        "ratio": found.today,
        "reference_ratio": found.reference,
        "interval_of_their_ratio": found.interval,
        "interval_kind": f"{100 * found.confidence:g} % t interval over the blocks",
        "n": found.blocks,
        "digest": run.attrs["campaign_hash"],
    }


def _known(value) -> float | None:
    """A finite number, else None."""
    return None if value is None or not math.isfinite(value) else float(value)
