"""What is looked at: a frozen description, from which everything on the page follows, and the code that makes it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from analysis.explorer.trials import Trials

AT_FIRST = 9  # series shown of a factor with more levels
# Factors that a curve runs over, most typical first; and those that tell curves apart.
ALONG = (
    "nodes",
    "N",
    "receivers",
    "window_bytes",
    "mtu",
    "frame_bytes",
    "token_bytes",
    "pairs",
    "streams",
    "processes",
    "ranks_per_node",
)
APART = ("aggregation", "vary", "blas", "daemon", "interconnect", "path")


@dataclass(frozen=True)
class View:
    """What is on the page.

    `sources` are the names of the datasets shown beside each other, `ordinate` a quantity, `abscissa` the factor
    along the horizontal axis and `series` the one whose levels are curves, `shown` those that are. Of each other
    factor one level is `fixed`; imported runs, which have no design, are not. `without_blocks` and `without_levels` (of the
    abscissa) are left out by hand. `model` is a name in analysis/models, or empty. `network` is judged against
    `reference`, both levels of the series' factor. With `printed` the sources' own numbers stand beside the trials.
    """

    sources: tuple[str, ...]
    ordinate: str
    abscissa: str
    series: str
    shown: tuple[Hashable, ...]
    fixed: tuple[tuple[str, Hashable], ...] = ()
    without_blocks: tuple[int, ...] = ()
    without_levels: tuple[Hashable, ...] = ()
    model: str = ""
    network: Hashable = None
    reference: Hashable = None
    printed: bool = True


def first(names: tuple[str, ...], trials: Trials) -> View:
    """What an experiment's page begins with: the campaign's own contrast and its foremost quantity."""
    several = {name: levels for name, levels in trials.factors.items() if len(levels) > 1}
    planned = "primary" in trials.design
    compared = trials.design.get("compared", "interconnect" if planned else None)
    along = [name for name in ALONG if name in several and name != compared]
    others = [name for name in (*several, *trials.factors) if name != compared]
    abscissa = (along or others or [compared])[0]
    apart = [compared] if compared in several else [name for name in (*APART, *several) if name in several]
    apart = [name for name in apart if name != abscissa]
    single = [
        name for name in ("interconnect", "path", *trials.factors) if name in trials.factors and name != abscissa
    ]
    series = (apart or single or [""])[0]
    view = View(names, next(iter(trials.quantities), ""), abscissa, series, ())
    return compared_in(levelled(view, trials), trials)


def levelled(view: View, trials: Trials) -> View:
    """The view with levels that fit its factors: the series shown, one level of every other factor."""
    levels = trials.factors.get(view.series, [])
    others = [] if trials.repeats else [name for name in trials.factors if name not in (view.abscissa, view.series)]
    known = dict(view.fixed)
    fixed = tuple((name, known.get(name, _common(trials, name))) for name in others if len(trials.factors[name]) > 1)
    # A factor with one level needs no choice.
    shown = tuple(it for it in view.shown if it in levels) or tuple(levels[:AT_FIRST])
    return replace(view, fixed=fixed, shown=shown, without_levels=(), network=None, reference=None)


def compared_in(view: View, trials: Trials) -> View:
    """The view with the design's contrast where its levels are shown, else the first two series."""
    planned = trials.design.get("primary", ())
    pair = planned[0]["networks"] if planned and isinstance(planned[0], Mapping) else planned
    if not pair or not set(pair) <= set(view.shown) or trials.design.get("compared", "interconnect") != view.series:
        control = trials.design.get("control", trials.design.get("baseline"))
        others = [it for it in view.shown if it != control]
        pair = (others[0], control) if control in view.shown and others else view.shown[:2]
    return replace(view, network=pair[0], reference=pair[1]) if len(pair) == 2 else view


def _common(trials: Trials, factor: str) -> Hashable:
    return trials.factors[factor][0]
