"""What prose may quote of TOP500's lists: shares and efficiencies are fractions."""

import math
from datetime import date

from analysis import paths, published
from analysis.facts.plain import known, pair
from analysis.studies.top500 import UNITS, Aggregate, FamilyOfList, OneList, Top500
from analysis.top500.families import families

OWNERS = 30  # rows of a table that stays on a page


def collect(study: Top500) -> dict:
    """All facts of the lists that are there, none of them perhaps, and of what the sources print."""
    printed = published.top500()
    spoken_of = list(dict.fromkeys(it.month for it in study.aggregates))
    return {
        "name": printed["name"],
        "folder": str(paths.TOP500.relative_to(paths.ROOT)),
        "evidence": str(study.dataset.evidence.values),
        "aggregates": [_aggregate(it) for it in study.aggregates],
        "missing": [_month(it) for it in spoken_of if it not in [own.month for own in study.lists]],
        "months": [_month(it.month) for it in study.lists],
        "lists": [_list(it) for it in study.lists],
        "shown": [_list(it) for it in study.shown],
        "systems": printed["systems"]["value"],
        "owners": study.owners[study.owners.above > 0][:OWNERS].to_dict("records"),
        "owners_in_all": len(study.owners),
        "threshold": study.threshold,
        "notes": study.notes,
    }


def _aggregate(it: Aggregate) -> dict:
    sources = {"bonding_blog": published.bonding_blog_facts(), "smith": published.smith()}
    finite = {name: value for name, value in it.readings.items() if math.isfinite(value)}
    nearest = min(finite, key=lambda name: abs(finite[name] - it.printed)) if finite else None
    return {
        "id": it.id,
        "what": it.what,
        "month": _month(it.month),
        "family": it.family,
        "printed": it.printed,
        "unit": it.unit,
        "decimals": max(0, round(-math.log10(it.rounding / UNITS[it.unit]))),
        "source": sources[it.source]["source"]["short"],
        "readings": {name: known(value) for name, value in it.readings.items()},
        "agreeing": list(it.agreeing),
        "nearest": nearest,
        "value": None if nearest is None else known(it.readings[nearest]),
    }


def _list(it: OneList) -> dict:
    titles = families().titles
    return {
        "month": _month(it.month),
        "systems": it.systems,
        "usable": it.usable,
        "above_peak": it.above_peak,
        "families": [_family(own) for own in it.families],
        "contradicted": [
            {"listed": titles[listed], "named": titles[named], "systems": count}
            for listed, named, count in it.contradicted
        ],
        "unknown": [{"name": name, "systems": count} for name, count in it.unknown],
    }


def _family(it: FamilyOfList) -> dict:
    return {
        "family": families().titles[it.family],
        "systems": it.systems,
        "usable": it.usable,
        "share": it.shares["share of systems"],
        "median": known(it.averages["median"]) if it.averages else None,
        "quartiles": pair(*it.quartiles),
        "range": pair(it.lowest, it.highest),
        "averages": {name: known(value) for name, value in it.averages.items()},
    }


def _month(month: str) -> str:
    return f"{date.fromisoformat(f'{month}-01'):%B %Y}"
