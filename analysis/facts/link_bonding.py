"""What prose may quote of HPL and TCP over two links: gains and shares are fractions, goodputs in bit/s."""

import json

import xarray as xr

from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair, scaled
from analysis.facts.published import published_sources
from analysis.rails import NAMES
from analysis.statistics.judgement import Control, Judgement
from analysis.studies.link_bonding import Candidate, Hpl, LinkBonding, Micro, Way

GROWTH = {"falls off": "grows", "falls, size open": "grows, size open", "flat": "does not grow", "rises": "shrinks"}


def collect(study: LinkBonding) -> dict:
    """All facts of both campaigns; what is not known is None.

    `best` is the way with the largest gain on the most nodes. `communication` of a gain is the part of the time
    over one link that has to be communication for two links to give that gain; None where there is no gain.
    """
    hpl = study.hpl
    about, published = campaign(hpl.dataset), _published(hpl)
    ways = [_way(way) for way in hpl.ways]
    told = [way for way in ways if way["points"][-1]["gain"] is not None]
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "blocks": hpl.points.sizes["block"],
        "settings": json.loads(hpl.dataset.attrs["settings"]),
        "share_of": hpl.points.share.attrs["of"],
        "baseline": NAMES[hpl.baseline],
        "margin": hpl.margin,
        "least_share": hpl.least_share,
        "nodes": hpl.points.nodes.values.tolist(),
        "ranks_per_node": hpl.points.ranks_per_node.values.tolist(),
        "fewest": hpl.fewest,
        "shares": [_shares(hpl, ranks) for ranks in hpl.points.ranks_per_node.values.tolist()],
        "ways": ways,
        "best": max(told, key=lambda way: way["points"][-1]["gain"]) if told else None,
        "candidates": [_candidate(candidate, published["fewest_gain"]) for candidate in hpl.candidates],
        "by_connection": [
            {"ranks_per_node": ranks, **_gain_of(found)} for ranks, found in hpl.by_connection.items()
        ],
        "micro": _micro(study.micro) if study.micro else None,
        "today": _today(study, study.today) if study.today else None,
        "published": published,
    }


def communication(ratio: float) -> float:
    """The part of the time over one link that two links have halved at this ratio of rates.

    Amdahl's law with two links for the part f: ratio = 1 / (1 - f / 2), so that f = 2 (1 - 1 / ratio); below 0
    where two links are slower.
    """
    return 2 * (1 - 1 / ratio)


def _today(reference: LinkBonding, today: LinkBonding) -> dict:
    """Today's gains [1], and goodputs [links] where there are any, beside the reference's at the same points."""
    gains, links = _mean_gains(reference.hpl), _links(reference.micro)
    return {
        "ended": today.hpl.dataset.attrs["ended"],
        "gains": [
            {"name": NAMES[way], "ranks_per_node": ranks, "nodes": nodes, "now": now, "then": gains[way, ranks, nodes]}
            for (way, ranks, nodes), now in _mean_gains(today.hpl).items()
        ],
        "links": [
            {"name": NAMES[way], "streams": streams, "now": now, "then": links[way, streams]}
            for (way, streams), now in _links(today.micro).items()
        ]
        if reference.micro
        else [],
    }


def _mean_gains(hpl: Hpl) -> dict[tuple[str, int, int], float | None]:
    """By way, processes a node, and nodes of which there are several."""
    ratios = {
        (way.aggregation, way.ranks_per_node, nodes): known(way.gains.ratio.sel(nodes=nodes))
        for way in hpl.ways
        for nodes in way.gains.nodes.values.tolist()
        if nodes > 1
    }
    return {key: None if ratio is None else ratio - 1 for key, ratio in ratios.items()}


def _links(micro: Micro | None) -> dict[tuple[str, int], float | None]:
    """Goodputs in links by way and number of connections; none without data."""
    ways = _micro(micro)["ways"] if micro else []
    return {(way["key"], point["streams"]): point["links"] for way in ways for point in way["points"]}


def _shares(hpl: Hpl, ranks: int) -> dict:
    """The share over one link, over nodes."""
    found = hpl.shares.ratio.sel(aggregation=hpl.baseline, ranks_per_node=ranks)
    return {"ranks_per_node": ranks, "shares": [known(share) for share in found]}


def _way(way: Way) -> dict:
    nodes = way.gains.nodes.values.tolist()
    return {
        "key": way.aggregation,
        "name": NAMES[way.aggregation],
        "ranks_per_node": way.ranks_per_node,
        "points": [_point(way.gains.sel(nodes=n), way.lesser.sel(nodes=n), n) for n in nodes],
        "growth": None if way.growth is None else _growth(way.growth),
        "control": None if way.control is None else _gain_of(way.control),
    }


def _point(gain: xr.Dataset, lesser: xr.Dataset, nodes: int) -> dict:
    ratio, interval = known(gain.ratio), pair(gain.low, gain.high)
    is_gain = ratio is not None and ratio > 1
    parts = tuple(max(communication(end), 0.0) for end in interval or ())
    return {
        "nodes": nodes,
        "gain": None if ratio is None else ratio - 1,
        "interval": _gains(interval),
        "blocks": int(gain.blocks),
        "communication": communication(ratio) if is_gain else None,
        "communication_interval": parts if is_gain and parts else None,
        **_lesser(lesser),
    }


def _lesser(lesser: xr.Dataset) -> dict:
    """The share of the lesser link: its median and range over the runs, and how many of these used one link."""
    return {
        "lesser": known(lesser.median_share),
        "lesser_range": pair(lesser.smallest, lesser.largest),
        "runs": int(lesser.runs),
        "on_one": int(lesser.on_one),
    }


def _growth(verdict: Judgement) -> dict:
    """By which part the gain on the most nodes is larger than on the fewest; a fall of the reverse ratio."""

    def rise(fall: float) -> float:
        return 1 / (1 - fall) - 1

    interval = verdict.interval
    return {
        "kind": GROWTH.get(verdict.answer, verdict.answer),
        "by": None if verdict.fall is None else rise(verdict.fall),
        "interval": interval and tuple(map(rise, interval)),
        "blocks": verdict.blocks,
        "confidence": verdict.confidence,
        "p_holm": verdict.p_holm,
    }


def _gain_of(found: Control) -> dict:
    """A control as a gain: `kind` is `none`, `some` or `undecided` at the margin."""
    kind = {"holds": "none", "violated": "some", "undecided": "undecided"}[found.kind]
    gain = None if found.ratio is None else found.ratio - 1
    interval = _gains(found.interval)
    return {"kind": kind, "gain": gain, "interval": interval, "confidence": found.confidence, "blocks": found.blocks}


def _candidate(candidate: Candidate, published: float | None) -> dict:
    """Whether the mean gain (`gives`) and a single pair of runs (`reaches`) may be the published gain.

    By their intervals; None where these are not known.
    """
    found, one_pair = _gain_of(candidate.none), _gains(candidate.one_pair)
    return {
        "key": candidate.aggregation,
        "name": NAMES[candidate.aggregation],
        "ranks_per_node": candidate.ranks_per_node,
        **found,
        "one_pair": one_pair,
        "gives": _holds(found["interval"], published),
        "reaches": _holds(one_pair, published),
    }


def _holds(interval: tuple[float, float] | None, value: float | None) -> bool | None:
    return None if None in (interval, value) else interval[0] <= value <= interval[1]


def _micro(micro: Micro) -> dict:
    about = campaign(micro.dataset)
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "blocks": micro.points.sizes["block"],
        "settings": json.loads(micro.dataset.attrs["settings"]),
        "wire_limit": micro.wire_limit,
        "streams": micro.points.streams.values.tolist(),
        "ways": [_connections(micro, way) for way in micro.points.aggregation.values.tolist()],
    }


def _connections(micro: Micro, aggregation: str) -> dict:
    goodputs, lesser = micro.goodputs.sel(aggregation=aggregation), micro.lesser.sel(aggregation=aggregation)
    points = []
    for streams in micro.points.streams.values.tolist():
        found = goodputs.sel(streams=streams)
        interval = pair(found.low, found.high)
        points.append(
            {
                "streams": streams,
                "goodput": known(found["mean"]),
                "links": known(found["mean"] / micro.wire_limit),
                "links_interval": scaled(interval, 1 / micro.wire_limit),
                **_lesser(lesser.sel(streams=streams)),
            }
        )
    return {"key": aggregation, "name": NAMES[aggregation], "points": points}


def _published(hpl: Hpl) -> dict:
    """The blog's gains, that on the fewest nodes (None: not printed), and by which part they grow."""
    sources = published_sources()
    gains = {row["nodes"]: row["gain"] for row in sources["blog_gains"]}
    least, most = min(gains), max(gains)
    return {
        "source": sources["blog"]["source"],
        "bonding": sources["blog"]["cluster"]["bonding"],
        "gains": sources["blog_gains"],
        "fewest_gain": gains.get(hpl.fewest),
        "growth": (1 + gains[most]) / (1 + gains[least]) - 1,
    }


def _gains(ratios: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if ratios is None else (ratios[0] - 1, ratios[1] - 1)
