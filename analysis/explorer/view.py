"""What is looked at: a frozen description, from which everything on the page follows, and its form as a web address."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import pandas as pd

from analysis import experiments
from analysis.explorer.data import SIZE, Trials

MOST_SERIES = 9  # shown at first of a factor with more levels
# Factors that a curve runs over, most typical first; and those that tell curves apart.
ALONG = (
    SIZE, "nodes", "N", "receivers", "window_bytes", "mtu", "frame_bytes", "pairs", "token_bytes",
    "bandwidth", "streams", "processes", "ranks_per_node",
)  # fmt: skip
APART = ("aggregation", "vary", "blas", "daemon", "latency", "interconnect", "path")
LAYERS = {
    "points": "Points",
    "blocks": "Blocks",
    "medians": "Medians",
    "means": "Means, 95 %",
    "model": "Model, 95 %",
    "log": "log scale",
}
AT_FIRST = ("points", "medians", "means", "model")


@dataclass(frozen=True)
class View:
    """What is on the page.

    `sources` are the names of the datasets shown beside each other, `y` a quantity, `x` the factor along the horizontal
    axis and `series` the one whose levels are curves, `shown` those that are. Of each other factor one level is `fixed`;
    imported runs, which have no design, are not. `without_blocks` and `without_levels` (of x) are left out by hand.
    `network` is judged against `reference`, both levels of the series' factor. With `printed` the sources' own numbers
    stand beside the trials. `layers` are drawn; with `log` among them the vertical axis is logarithmic.
    """

    sources: tuple[str, ...]
    y: str = ""
    x: str = ""
    series: str = ""
    shown: tuple[Hashable, ...] = ()
    fixed: tuple[tuple[str, Hashable], ...] = ()
    without_blocks: tuple[int, ...] = ()
    without_levels: tuple[Hashable, ...] = ()
    network: Hashable = None
    reference: Hashable = None
    printed: bool = True
    layers: tuple[str, ...] = AT_FIRST


@cache
def openings() -> dict[str, Mapping]:
    """What the experiments' modules say of the first view of their campaigns, by campaign: parts of a View, and levels."""
    said = [getattr(module, "OPENS", {}) for module in experiments.modules()]
    return {campaign: parts for each in said for campaign, parts in each.items()}


@cache
def named_models() -> dict[str, str]:
    """The model that an experiment's module names for its own campaign, by campaign."""
    named = {module: getattr(module, "MODEL", None) for module in experiments.modules()}
    return {
        next(iter(experiments.campaigns(module)), ""): model
        for module, model in named.items()
        if isinstance(model, str)
    }


@cache
def printed_tables(campaign: str) -> dict[str, Callable[[Mapping], pd.DataFrame]]:
    """What the experiments' modules know that sources printed, by quantity.

    Each takes the campaign's design and gives a row for each printed number: levels, `value` in the unit of the
    campaign's readings, `text`: where it is printed.
    """
    said = [getattr(module, "PRINTED", {}) for module in experiments.modules()]
    return {
        quantity: table for each in said for (of, quantity), table in each.items() if of == campaign
    }


def opening(name: str, trials: Trials) -> View:
    """What a dataset's page begins with: what its experiment says, else its own contrast and foremost quantity."""
    said = openings().get(trials.dataset.attrs["campaign"], {})
    parts = {part: value for part, value in said.items() if part in View.__dataclass_fields__}
    fixed = tuple((factor, level) for factor, level in said.items() if factor not in parts)
    return settled(View((name,), fixed=fixed, **parts), trials)


def settled(view: View, trials: Trials) -> View:
    """The view with all that it leaves open, or that the dataset does not have, as the page would begin with it."""
    y = view.y if view.y in trials.quantities else next(iter(trials.quantities))
    factors = trials.factors_of(y)
    x, series = _axes(view, factors, trials.design)
    levels, known = factors[series], dict(view.fixed)
    others = [name for name in factors if name not in (x, series) and len(factors[name]) > 1]
    fixed = tuple(
        (name, known[name] if known.get(name) in factors[name] else factors[name][0])
        for name in (others if not trials.repeats else ())
    )
    shown = tuple(level for level in levels if level in view.shown) or tuple(levels[:MOST_SERIES])
    network, reference = _pair(view, series, shown, trials.design)
    return replace(
        view,
        y=y,
        x=x,
        series=series,
        shown=shown,
        fixed=fixed,
        without_levels=tuple(level for level in factors[x] if level in view.without_levels),
        network=network,
        reference=reference,
    )


def _axes(view: View, factors: Mapping[str, list], design: Mapping) -> tuple[str, str]:
    """The factor along the horizontal axis, and the one whose levels are curves."""
    compared = design.get("compared", "interconnect" if "primary" in design else "")
    several = [name for name, levels in factors.items() if len(levels) > 1] or list(factors)
    x = view.x
    if x not in factors:
        free = [name for name in (*several, *factors) if name not in (compared, view.series)]
        along = [name for name in ALONG if name in free and name in several]
        x = (along or free or list(factors))[0]
    series = view.series
    if series not in factors or series == x:
        apart = [name for name in (compared, *APART, *several) if name in several and name != x]
        single = [
            name for name in ("interconnect", "path", *factors) if name in factors and name != x
        ]
        series = (apart or single or [x])[0]
    return x, series


def _pair(view: View, series: str, shown: tuple, design: Mapping) -> tuple[Hashable, Hashable]:
    """The two series that are compared: the view's, else the design's contrast, else the first two."""
    if view.network != view.reference and {view.network, view.reference} <= set(shown):
        return view.network, view.reference
    planned = design.get("primary") or ()
    planned = planned[0]["networks"] if planned and isinstance(planned[0], Mapping) else planned
    if design.get("compared", "interconnect") == series and planned and set(planned) <= set(shown):
        return tuple(planned)
    control = design.get("control", design.get("baseline"))
    others = [level for level in shown if level != control]
    if control in shown and others:
        return others[0], control
    return (shown[0], shown[1]) if len(shown) > 1 else (None, None)


def left_out(view: View) -> tuple[str, ...]:
    """What is left out by hand, as in an address."""
    blocks = (f"block:{block}" for block in view.without_blocks)
    return *blocks, *(f"{view.x}:{level}" for level in view.without_levels)


def address(view: View, start: View) -> list[tuple[str, str]]:
    """A view's part of the page's address: names and values of all in which it differs from the first one."""
    said = [("data", name) for name in view.sources if view.sources != start.sources]
    for part in ("y", "x", "series", "network", "reference", "printed"):
        if getattr(view, part) != getattr(start, part):
            said.append((part, str(getattr(view, part))))
    for part in ("shown", "layers"):
        if getattr(view, part) != getattr(start, part):
            said += [(part, str(level)) for level in getattr(view, part) or ("none",)]
    said += [
        ("at", f"{name}:{level}") for name, level in view.fixed if (name, level) not in start.fixed
    ]
    return said + [("without", token) for token in left_out(view)]


def at_address(said: Iterable[tuple[str, str]], start: View, trials: Trials) -> View:
    """The view of an address; what cannot be understood is as in the first view."""
    values: dict[str, list[str]] = {}
    for name, value in said:
        values.setdefault(name, []).append(value)
    one = {name: given[-1] for name, given in values.items()}
    view = replace(start, **{part: one[part] for part in ("y", "x", "series") if part in one})
    view = settled(replace(view, without_levels=()), trials)
    factors = trials.factors_of(view.y)
    called = {name: {str(level): level for level in levels} for name, levels in factors.items()}
    without = [token.partition(":") for token in values.get("without", ())]
    fixed = [token.partition(":") for token in values.get("at", ())]
    series = called[view.series]
    asked = replace(
        view,
        shown=tuple(series[name] for name in values.get("shown", ()) if name in series) or view.shown,
        layers=tuple(name for name in LAYERS if name in values.get("layers", view.layers)),
        network=series.get(one.get("network"), view.network),
        reference=series.get(one.get("reference"), view.reference),
        printed=one.get("printed", "True") == "True",
        fixed=(*view.fixed, *((name, called[name].get(level)) for name, _, level in fixed if name in called)),
        without_blocks=tuple(int(n) for kind, _, n in without if kind == "block" and n.isdecimal()),
        without_levels=tuple(called[view.x].get(level) for name, _, level in without if name == view.x),
    )  # fmt: skip
    return settled(asked, trials)
