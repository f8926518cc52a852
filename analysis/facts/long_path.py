"""What prose may quote of long paths: buffers in B, goodputs in bit/s, times in s, shares are fractions."""

import json
from dataclasses import asdict

import numpy as np

from analysis import published
from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair, scaled
from analysis.inference.intervals import t_interval
from analysis.models import bandwidth_delay
from analysis.studies.long_path import Curve, LongPath
from analysis.studies.long_repeats import LongRepeats, Series
from analysis.studies.scaling import short_names


def collect(study: LongPath) -> dict:
    """All facts of the campaign; what is not known is None."""
    names = short_names(study.dataset)
    about = campaign(study.dataset)
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "names": names,
        "blocks": study.points.sizes["block"],
        "settings": json.loads(study.dataset.attrs["settings"]),
        "margin": study.margin,
        "control": study.control,
        "windows": [int(window) for window in study.points.window_bytes.values],
        "largest_window": study.largest_window,
        "model": {"equation": bandwidth_delay.MODEL.equation, "source": bandwidth_delay.MODEL.source},
        "curves": [_curve(curve, names) for curve in study.curves],
        "contrasts": [
            {
                "path": names[contrast.path],
                "direction": contrast.direction,
                "congestion_control": contrast.congestion_control,
                **asdict(contrast.agreement),
            }
            for contrast in study.contrasts
        ],
        "repeats": _repeats(study.repeats) if study.repeats else None,
        "today": _today(study, study.today) if study.today else None,
        "published": _published(),
    }


def _curve(curve: Curve, names: dict) -> dict:
    facts = {
        "path": names[curve.path],
        "congestion_control": curve.congestion_control,
        "direction": curve.direction,
        "wire_limit": known(curve.wire_limit),
        "round_trip": curve.round_trip,
        "measured_round_trip": known(curve.measured_round_trip),
        "product": known(curve.product),
        "refused": curve.refused,
        "bracket": pair(*curve.bracket),
    }
    if curve.fitted is None:
        return facts
    estimate, low, high = curve.knee
    limit, *limit_ends = curve.fitted.parameter("limit", "rate")
    return facts | {
        "blocks": curve.fitted.blocks,
        "knee": known(estimate),
        "knee_interval": pair(low, high),
        "knee_to_product": known(estimate / curve.product),
        "knee_to_product_interval": scaled(pair(low, high), 1 / curve.product),
        "limit_share": known(limit / curve.wire_limit),
        "limit_share_interval": scaled(pair(*limit_ends), 1 / curve.wire_limit),
        **_window_share(curve),
    }


def _window_share(curve: Curve) -> dict:
    """The part of the buffer asked for that was under way in a measured round trip, by the slope."""
    rtt = curve.fitted.by_block[:, bandwidth_delay.MODEL.parameters.index("rtt")]
    mean, _, low, high = np.exp(t_interval(np.log(curve.measured_round_trip / rtt)))
    return {"window_share": known(mean), "window_share_interval": pair(low, high)}


def _today(reference: LongPath, today: LongPath) -> dict:
    """The knees of today's run beside the reference's, where both have one."""
    known = {(curve.path, curve.congestion_control, curve.direction): curve for curve in reference.curves}
    names = short_names(today.dataset)
    pairs = [(known.get((it.path, it.congestion_control, it.direction)), it) for it in today.curves if it.fitted]
    return {
        "ended": today.dataset.attrs["ended"],
        "knees": [
            {"path": names[now.path], "direction": now.direction, "now": now.knee[0], "then": then.knee[0]}
            for then, now in pairs
            if then and then.fitted
        ],
    }


def _repeats(study: LongRepeats) -> dict:
    """Every series of repeats, each with its own verdict."""
    names, about = short_names(study.dataset), campaign(study.dataset)
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "blocks": study.blocks,
        "window": json.loads(study.dataset.attrs["settings"])["window_bytes"],
        "margin": study.margin,
        "series": [_series(series, names) for series in study.series],
    }


def _series(series: Series, names: dict) -> dict:
    found, wire_limit = series.judged, series.wire_limit
    low, high = found.interval
    return {
        "path": names[series.path],
        "congestion_control": series.congestion_control,
        "direction": series.direction,
        "kind": found.kind,
        "n": found.sample.n,
        "missing": found.sample.missing,
        "median": known(found.sample.median),
        "median_share": known(found.sample.median / wire_limit),
        "minimum": known(found.sample.minimum),
        "maximum": known(found.sample.maximum),
        "variation": known(found.sample.variation),
        "variation_interval": pair(low, high),
    }


def _published() -> dict:
    """The source's maxima, and the round trip [s] up to which its buffers hold its backbone's product."""
    source = published.grid5000()
    rate, buffers = source["backbone"]["rate"]["value"], source["tcp"]["buffers"]["value"]
    return {
        "source": source["source"],
        "maximum": {way: told["value"] for way, told in source["maximum"].items()},
        "rate": rate,
        "buffers": buffers,
        "largest_round_trip": 8 * buffers / rate,
        "kernel": source["kernel"],
        "statements": {statement["about"]: statement["quote"] for statement in source["statement"]},
        "lost": source["lost"],
    }
