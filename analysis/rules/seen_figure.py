"""What a drawn figure shows by itself: its axes' units, what joins its points, its bars and bands."""

import re
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

UNIT = re.compile(r"\[([^\]]+)\]")
COUNTS = re.compile(
    r"(nodes|blocks|receivers|senders|pairs|processes|TCP connections|order of the matrix, N)( \(.*\))?"
)
FEWEST = 3  # points: two have nothing between them that a line could claim
GUIDE, UNTOLD = "guide", "untold"


@dataclass(frozen=True)
class Drawn:
    """A figure as the machine sees it.

    `units` are those of its labels; `bare` describes axes with neither a unit nor a count nor named rows. `lines`
    holds what joins points or is a curve: the gid of its artists (`drawing.MODEL` ...), UNTOLD for a curve without
    one, and GUIDE for a line whose vertices are the marks themselves, whatever it calls itself, unless it is one of
    steps. `bars` and `bands` count intervals, `series` the kinds of marks with a bar.
    """

    units: frozenset[str]
    bare: tuple[str, ...]
    lines: frozenset[str]
    bars: int
    bands: int
    marks: int


def look(figure: Figure) -> Drawn:
    """See a figure, without its legends and empty axes."""
    panels = [axes for axes in figure.axes if axes.has_data()]
    labels = [text for axes in panels for text in _labels(axes)] + [figure.get_supxlabel(), figure.get_supylabel()]
    return Drawn(
        units=frozenset(unit for label in labels for unit in UNIT.findall(label)),
        bare=tuple(dict.fromkeys(fault for axes in panels for fault in _bare(axes, panels, figure))),
        lines=frozenset(kind for axes in panels for kind in _lines(axes)),
        bars=sum(isinstance(it, ErrorbarContainer) and _has_bars(it) for axes in panels for it in axes.containers),
        bands=sum(isinstance(it, PolyCollection) for axes in panels for it in axes.collections),
        marks=sum(len(line.get_xdata()) for axes in panels for line in axes.lines if _is_marked(line)),
    )


def _labels(axes: Axes) -> list[str]:
    return [axes.get_xlabel(), axes.get_ylabel(), *(axes.get_title(loc=side) for side in ("left", "center", "right"))]


def _bare(axes: Axes, panels: list[Axes], figure: Figure) -> list[str]:
    """A line for each of its two axes that says no unit, in its own label or its row's, column's or figure's."""
    title = " ".join(axes.get_title(loc=side) for side in ("left", "center", "right"))
    own = {"x": axes.get_xlabel(), "y": axes.get_ylabel()}
    below = [it.get_xlabel() for it in panels if it.get_subplotspec() and it.get_subplotspec().is_last_row()]
    mates = {"x": _beside(axes, panels, "x", "cols") or below, "y": _beside(axes, panels, "y", "rows")}
    whole = {"x": figure.get_supxlabel(), "y": figure.get_supylabel()}
    found = []
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if _is_named(axis):
            continue
        labels = [own[name]] if own[name] else [*filter(None, [*mates[name], whole[name]])]
        if name == "y" and not own[name] and UNIT.search(title):
            labels = [title]
        if not labels:
            found.append(f"a {name} axis has no label")
        elif not any(UNIT.search(label) or COUNTS.fullmatch(label.strip()) for label in labels):
            found.append(f"the {name} axis {' / '.join(dict.fromkeys(labels))!r} has no unit")
    return found


def _beside(axes: Axes, panels: list[Axes], name: str, along: str) -> list[str]:
    """The labels of the panels in the same columns or rows of the grid."""
    own = axes.get_subplotspec()
    if own is None:
        return []
    span = getattr(own, f"{along[:-1]}span")
    others = [it for it in panels if it is not axes and it.get_subplotspec() is not None]
    mates = [it for it in others if set(getattr(it.get_subplotspec(), f"{along[:-1]}span")) & set(span)]
    return [label for it in mates if (label := getattr(it, f"get_{name}label")())]


def _is_named(axis) -> bool:
    """Whether its ticks are names, such as rows of paths, or there are none of its own."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return False
    return not any(re.search(r"^[\d.,\u2212-]+$", label.get_text()) for label in axis.get_ticklabels())


def _lines(axes: Axes) -> set[str]:
    marked = [_vertices(line) for line in axes.lines if _is_marked(line)]
    marks = set().union(*marked) if marked else set()
    return {kind for line in axes.lines if (kind := _kind(line, marks))}


def _kind(line: Line2D, marks: set) -> str:
    """What a line is; empty for marks alone, for a straight line between two points and for a legend's sample."""
    vertices = _vertices(line)
    if line.get_linestyle() in ("None", "", " ") or len(vertices) < FEWEST:
        return ""
    if line.get_drawstyle().startswith("steps"):
        return "steps"
    if _is_marked(line) or vertices <= marks:
        return GUIDE
    return line.get_gid() or UNTOLD


def _vertices(line: Line2D) -> set[tuple[float, float]]:
    places = np.column_stack([np.asarray(values, float) for values in line.get_data(orig=False)])
    return {tuple(place) for place in places[np.isfinite(places).all(axis=1)].round(9).tolist()}


def _is_marked(line: Line2D) -> bool:
    return line.get_marker() not in ("None", None, "", " ")


def _has_bars(container: ErrorbarContainer) -> bool:
    """Whether any bar has a length; a mark without a known interval is drawn as a container, too."""
    segments = [np.asarray(segment, float) for bars in container[2] for segment in bars.get_segments()]
    return any(np.isfinite(it).all() and np.ptp(it, axis=0).max() > 0 for it in segments if len(it))
