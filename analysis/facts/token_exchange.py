"""What prose may quote of the token exchanges, in B/s, s and B; shares are fractions."""

import json
import math
from dataclasses import asdict

from analysis import published
from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair
from analysis.fitting.compare import Comparison
from analysis.inference.in_range import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.models import find, hockney
from analysis.studies.scaling import short_names
from analysis.studies.token_claims import HOST_BOUND, LITTLE_CARRIED, NEARLY_BUSY, NOT_RUN, Claim
from analysis.studies.token_exchange import Sample, TokenExchange
from analysis.studies.token_latency import Estimate, Latency
from analysis.studies.token_pairs import CONTENTION, DECISIVE, Pairs
from analysis.studies.token_passage import ASTRAY, Passage
from analysis.token_readings import ETHERNET_MTU, readings

SLOW = 0.99  # the quantile of the round trips that is given beside their median


def collect(study: TokenExchange) -> dict:
    """All facts of the campaign; what is not known is None."""
    names, about = short_names(study.dataset), campaign(study.dataset)
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "names": names,
        "blocks": study.points.sizes["block"],
        "runs": study.points.sizes["run"],
        "settings": json.loads(study.dataset.attrs["settings"]),
        "most_pairs": study.most_pairs,
        "largest_token": study.largest_token,
        "least_token": int(study.points.token_bytes.min()),
        "slow": SLOW,
        "mtu": ETHERNET_MTU,
        "excesses": [{**asdict(it), "path": names[it.path]} for it in study.excesses],
        "passage": _passage(study.passage),
        "model": {"equation": hockney.MODEL.equation, "source": hockney.MODEL.source},
        "latencies": [_latency(it, study, names) for it in study.latencies],
        "added": [
            {
                "path": names[it.path],
                "against": names[it.against],
                "blocks": it.blocks,
                **_estimate("alpha", it.alpha),
                **_estimate("beta", it.beta),
            }
            for it in study.added
        ],
        "contention": [_contention(it, names) for it in study.contention],
        "contention_models": [
            {"title": title, "equation": find(name).equation} for name, title in CONTENTION.items()
        ],
        "unranked": sorted({reason for it in study.contention for reason in _unranked(it)}),
        "interval_kinds": sorted({it.best.interval_kind for it in study.contention if it.best}),
        "decisive": DECISIVE,
        "claims": [_claim(it) for it in study.claims],
        "kinds": _kinds(study),
        "host_bound": {"carried": LITTLE_CARRIED, "busy": NEARLY_BUSY},
        "samples": [_sample(it, names) for it in study.samples],
        "readings": [{**asdict(it), "possible": it.possible} for it in readings()],
        "today": _today(study, study.today) if study.today else None,
        "published": _published(),
    }


def _passage(found: Passage) -> dict:
    """What the counters say of all trials; of none, their extremes are None."""
    return {
        "trials": int(found.least.notnull().sum()),
        "least": known(found.least.min().item()),
        "beside": known(found.beside.max().item()),
        "astray": int(found.astray.sum()),
        "limit": ASTRAY,
    }


def _estimate(name: str, estimate: Estimate) -> dict:
    mean, low, high = estimate
    return {name: known(mean), f"{name}_interval": pair(low, high)}


def _latency(found: Latency, study: TokenExchange, names: dict) -> dict:
    """The model of one pair, and quantiles of its round trips of the least token, means over the blocks."""
    round_trip = study.points.round_trip.sel(path=found.place.path).reindex(pairs=[1])
    least = round_trip.isel(pairs=0, token_bytes=0).mean("block")
    facts = {
        "path": names[found.place.path],
        "rate": found.place.rate,
        "median": known(least.sel(quantile=0.5)),
        "slowest": known(least.sel(quantile=SLOW)),
        "refused": found.refused,
    }
    if found.fitted is None:
        return facts
    return facts | {
        "blocks": found.fitted.blocks,
        **_estimate("alpha", found.alpha),
        **_estimate("beta", found.beta),
        **_estimate("half", found.half),
        "misfit": known(found.misfit),
    }


def _contention(found: Pairs, names: dict) -> dict:
    ranked = [it.aicc for it in found.comparisons if it.aicc is not None]
    return {
        "path": names[found.place.path],
        "best": CONTENTION[found.best.model.name] if found.best else None,
        "parameters": _parameters(found.best) if found.best else [],
        "n": max((it.pooled.n for it in found.comparisons if it.pooled), default=0),
        "models": [_compared(it, min(ranked, default=None)) for it in found.comparisons],
    }


def _unranked(found: Pairs) -> list[str]:
    """Why models have no AICc."""
    without = [it for it in found.comparisons if it.aicc is None]
    return [it.pooled.aicc_refused if it.pooled else it.refused for it in without]


def _compared(it: Comparison, lowest: float | None) -> dict:
    """A model beside that of the least AICc, and how it predicts the most pairs from fewer."""
    return {
        "title": CONTENTION[it.model.name],
        "behind": None if it.aicc is None else it.aicc - lowest,
        "error": None if it.held_out is None else known(it.held_out.error),
        "error_interval": None if it.held_out is None else pair(*it.held_out.interval),
    }


def _parameters(it: Comparison) -> list[dict]:
    """A model's parameters: gamma in B/s, the others without unit."""
    unknown = (math.nan, math.nan)
    return [
        {"name": name, "estimate": known(value), "interval": pair(*it.intervals.get(name, unknown))}
        for name, value in it.pooled.estimates.items()
    ]


def _claim(claim: Claim) -> dict:
    return {
        "about": claim.about,
        "rate": claim.rate,
        "range": (claim.at_least, claim.at_most),
        "kind": claim.kind,
        "reason": claim.reason,
        "ratio": known(claim.ratio),
        "interval": pair(*claim.interval_95),
        "of_bests": known(claim.of_bests),
        "of_wires": known(claim.of_wires),
        "blocks": claim.blocks,
    }


def _kinds(study: TokenExchange) -> dict[str, int]:
    """How many claims have each verdict; those that were not run once, the others once at each rate."""
    kinds = [claim.kind for claim in study.claims]
    return {kind: kinds.count(kind) for kind in (SUPPORTED, CONTRADICTED, UNDECIDED, HOST_BOUND, NOT_RUN)}


def _sample(sample: Sample, names: dict) -> dict:
    runs = sample.runs
    return {
        "path": names[sample.place.path],
        "n": runs.n,
        "missing": runs.missing,
        "best": known(runs.maximum),
        "median": known(runs.median),
        "worst": known(runs.minimum),
        "variation": known(runs.variation),
        "limit": sample.limit,
        "share": known(runs.median / sample.limit),
        "busy": known(sample.busy),
        "host_bound": sample.host_bound,
    }


def _today(reference: TokenExchange, today: TokenExchange) -> dict:
    """The claims that today's run could judge, beside the reference's."""
    then = {(claim.about, claim.rate): claim for claim in reference.claims}
    judged = [(it.about, it.rate, it) for it in today.claims if it.kind != NOT_RUN]
    both = [(then[about, rate], now) for about, rate, now in judged if (about, rate) in then]
    return {
        "ended": today.dataset.attrs["ended"],
        "claims": [{"then": _claim(earlier), "now": _claim(now)} for earlier, now in both],
    }


def _published() -> dict:
    source = published.beowulf()
    return {
        "source": source["source"],
        "throughput": source["throughput"]["local_wire"]["value"],
        "original": source["throughput"]["bonded_dual_net"]["value"],
        "token": source["exchange"]["largest_token"]["value"],
        "wires": {name: source["wires"][name]["value"] for name in ("rate", "mesh", "original")},
        "statements": {statement["about"]: statement["quote"] for statement in source["statement"]},
        "lost": source["lost"],
    }
