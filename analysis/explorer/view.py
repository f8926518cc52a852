"""What is looked at: a frozen description, from which everything on the page follows, and its form as a web address."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
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
    layers: tuple[str, ...] = ("points", "medians", "means", "model")


@cache
def said_by_experiments() -> tuple[dict[str, str], dict[str, Mapping], dict[str, Mapping]]:
    """What the experiments' modules say to the explorer, by campaign: MODEL, OPENS and PRINTED."""
    named, opens, printed = {}, {}, {}
    for module in experiments.modules():
        if isinstance(getattr(module, "MODEL", None), str):
            named[next(iter(experiments.campaigns(module)))] = module.MODEL
        opens |= getattr(module, "OPENS", {})
        printed |= getattr(module, "PRINTED", {})
    return named, opens, printed


def opening(name: str, trials: Trials) -> View:
    """What a dataset's page begins with: what its experiment says, else its own contrast and foremost quantity."""
    said = said_by_experiments()[1].get(trials.campaign, {})
    parts = {part: value for part, value in said.items() if part in View.__dataclass_fields__}
    fixed = tuple((factor, level) for factor, level in said.items() if factor not in parts)
    return settled(View((name,), fixed=fixed, **parts), trials)


def model_of(view: View, trials: Trials) -> str:
    """The model that the experiment names, which is of what its page opens with; an empty text for all else."""
    model = said_by_experiments()[0].get(trials.campaign, "")
    start = opening("", trials) if model else view
    return model if (start.y, start.x) == (view.y, view.x) else ""


def printed(quantity: str, trials: Trials) -> pd.DataFrame:
    """All that sources printed of a quantity, but for levels by name that the campaign does not have.

    Columns are levels, `value` in the shown unit, and `text`: where it is printed.
    """
    table: Callable | None = said_by_experiments()[2].get((trials.campaign, quantity))
    if table is None or quantity not in trials.quantities:
        return pd.DataFrame({"value": [], "text": []})
    rows = table(trials.design)
    for name in set(rows) & set(trials.factors):
        if rows[name].dtype.kind not in "iuf":
            rows = rows[rows[name].isin(trials.factors[name])]
    return rows.assign(value=rows.value * trials.quantities[quantity].scale)


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
        view, y=y, x=x, series=series, shown=shown, fixed=fixed, network=network, reference=reference,
        without_levels=tuple(level for level in factors[x] if level in view.without_levels),
        without_blocks=tuple(sorted(n for n in view.without_blocks if isinstance(n, int))),
        layers=tuple(name for name in LAYERS if name in view.layers),
    )  # fmt: skip


def _axes(view: View, factors: Mapping[str, list], design: Mapping) -> tuple[str, str]:
    """The factor along the horizontal axis, and the one whose levels are curves."""
    compared = design.get("compared", "interconnect" if "primary" in design else "")
    several = [name for name, levels in factors.items() if len(levels) > 1] or list(factors)
    x, series = view.x, view.series
    if x not in factors:
        free = [name for name in (*several, *factors) if name not in (compared, series)]
        along = [name for name in ALONG if name in free and name in several]
        x = (along or free or list(factors))[0]
    if series not in factors or series == x:
        apart = [name for name in (compared, *APART, *several) if name in several and name != x]
        single = [name for name in ("interconnect", "path", *factors) if name in factors]
        series = (apart or [name for name in single if name != x] or [x])[0]
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


def address(view: View, start: View) -> list[tuple[str, str]]:
    """A view's part of the page's address: names and values of all in which it differs from the first one."""
    changed = {name: value for name, value in vars(view).items() if value != getattr(start, name)}
    return [(name, json.dumps(value, separators=(",", ":"))) for name, value in changed.items()]


def at_address(said: Iterable[tuple[str, str]], start: View, trials: Trials) -> View:
    """The view of an address; what cannot be understood is as in the first view."""
    asked = {}
    for name, text in said:
        with suppress(ValueError):
            value = _frozen(json.loads(text))
            if name in vars(start) and isinstance(value, tuple) == isinstance(
                getattr(start, name), tuple
            ):
                asked[name] = value
    with suppress(TypeError, ValueError):  # of the right kind, and yet no view
        return settled(replace(start, **asked), trials)
    return start


def _frozen(value):
    """What JSON gives, as a view has it."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
