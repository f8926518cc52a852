"""What prose may quote of the fan-out: goodputs in bit/s, shares are fractions."""

import json

import numpy as np

from analysis import published
from analysis.bottleneck import CHANGES, LEAST_GROWTH, Bottleneck
from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair
from analysis.fitting.block_fit import BlockFit
from analysis.links import LINK_BOUND
from analysis.models import segmented
from analysis.studies.fan_out import Fan, FanOut
from analysis.studies.scaling import short_names


def collect(study: FanOut) -> dict:
    """All facts of the campaign; what is not known is None."""
    about, names = campaign(study.dataset), short_names(study.dataset)
    source = published.grid5000()
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "names": names,
        "path": names[study.baseline["path"]],
        "blocks": study.points.sizes["block"],
        "settings": json.loads(study.dataset.attrs["settings"]),
        "baseline": {"receivers": study.baseline["receivers"], "streams": study.baseline["streams"]},
        "least_growth": LEAST_GROWTH,
        "link_bound": LINK_BOUND,
        "model": {"equation": segmented.MODEL.equation, "source": segmented.MODEL.source},
        "fans": [_fan(fan) for fan in study.fans],
        "today": _today(study.today) if study.today else None,
        "published": {"source": source["source"], **source["bridge"]},
    }


def _today(study: FanOut) -> dict:
    return {
        "ended": study.dataset.attrs["ended"],
        "fans": [{"direction": fan.direction, "limit": fan.verdict.limit} for fan in study.fans],
    }


def _fan(fan: Fan) -> dict:
    facts = {
        "direction": fan.direction,
        "points": [_point(fan, n) for n in fan.limits],
        "verdict": _verdict(fan.verdict),
        "sender_cpu": known(fan.sender_cpu.mean()) if fan.sender_cpu.size else None,
        "refused": fan.refused,
        "bracket": pair(*fan.bracket),
    }
    if fan.fitted is None:
        return facts
    estimate, low, high = fan.knee
    return facts | {
        "blocks": fan.fitted.blocks,
        "knee": known(estimate),
        "knee_interval": pair(low, high),
        **_growth(fan.fitted),
    }


def _growth(fitted: BlockFit) -> dict:
    """What the aggregate gains with a doubling of the receivers beyond the knee.

    `stops` says whether that is less than counts, an equivalence; None where the interval allows both.
    """
    growth, low, high = (2 ** (1 - s) - 1 for s in (fitted.estimates["s"], *fitted.intervals["s"][::-1]))
    stops = True if max(-low, high) < LEAST_GROWTH else False if low > LEAST_GROWTH else None
    return {"growth": known(growth), "growth_interval": pair(low, high), "stops": stops}


def _point(fan: Fan, receivers: int) -> dict:
    at, fairness = (found.sel(receivers=receivers) for found in (fan.means, fan.fairness))
    limits = fan.limits[receivers]
    share = float(at["mean"]) / min(limits.own, limits.shared)
    return {
        "receivers": receivers,
        "goodput": known(at["mean"]),
        "interval": pair(at.low, at.high),
        "blocks": int(at.blocks),
        "fairness": known(fairness.ratio),
        "fairness_interval": pair(max(float(fairness.low), 1 / receivers), min(float(fairness.high), 1.0)),
        "own_limit": known(limits.own),
        "shared_limit": known(limits.shared),
        "limit_share": known(share),
        "bound": "" if np.isnan(share) else "link" if share >= LINK_BOUND else "host",
    }


def _verdict(found: Bottleneck) -> dict:
    return {
        "limit": found.limit,
        "reason": found.reason,
        "responses": [
            {
                "change": CHANGES[change],
                "ratio": known(response.ratio),
                "interval": pair(response.low, response.high),
                "blocks": response.repeats,
                "says": response.says,
            }
            for change, response in found.responses.items()
        ],
        "untried": [name for change, name in CHANGES.items() if change not in found.responses],
    }
