"""A history as one HTML file for a wall monitor: the answer in its colour, the changes, and every course."""

import html
import io
from datetime import datetime, timezone
from pathlib import Path

import matplotlib.dates as mdates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.history import telling
from analysis.history.judging import LEAST_NODES, NO_CHANGE, Course, Judged
from analysis.quoting import as_written
from analysis.statistics.change import FASTER, SLOWER
from analysis.statistics.judgement import UNDECIDED
from runners.journal import write_whole

_COLORS = {NO_CHANGE: "#007A56", FASTER: "#0067A3", SLOWER: "#B34700", UNDECIDED: "#5A5A5A"}
_REFRESH_S = 300  # the timer replaces the file; the monitor need not be touched
_LEAST_SPAN = 1.0  # percent, so that what hardly scatters looks so
_MOST_COURSES = 6  # panels; those with changes first
_MOST_NODES = 6  # drawn one by one in a panel, those that changed

_STYLE = """
body { margin: 0; font: 20px/1.4 system-ui, sans-serif; color: #1a1a1a; background: #fff }
header { padding: 24px 40px; color: #fff }
header h1 { margin: 0; font-size: 56px; line-height: 1.1 }
header p { margin: 8px 0 0; font-size: 24px }
main { padding: 20px 40px }
ul { list-style: none; margin: 0 0 16px; padding: 0 }
li { margin: 8px 0; padding: 8px 16px; border-left: 8px solid #5a5a5a; background: #f4f4f4 }
li small { display: block; color: #444; font-size: 17px }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(560px, 1fr)); gap: 16px }
.panels svg { width: 100%; height: auto }
footer { padding: 0 40px 24px; color: #555; font-size: 17px }
"""


def write(found: Judged, file: Path) -> None:
    """Write the page; the old one is replaced in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text(found))


def text(found: Judged) -> str:
    """The page, which contains everything that it shows."""
    said, _, span = telling.headline(found).removesuffix(".").partition(" (")
    color, items = _COLORS[found.answer], []
    for change in reversed(found.changes):
        facts = telling.facts_of(change)
        small = f"<small>{_shown(facts)}</small>" if facts else ""
        edge = _COLORS[change.answer]
        items.append(
            f'<li style="border-color: {edge}">{_shown(telling.sentence(found, change))}{small}</li>'
        )
    items += [f"<li>{_shown(line)}</li>" for line in telling.bad_lines(found)]
    changed = {moved.what for change in found.changes for moved in change.moved}
    courses = sorted(found.courses, key=lambda one: one.what not in changed)
    panels = "\n".join(_panel(found, one) for one in courses[:_MOST_COURSES])
    left_out = len(courses) - _MOST_COURSES
    more = f" {left_out} more quantities did not change and are not drawn." if left_out > 0 else ""
    made = f"Made {datetime.now(timezone.utc):%d %B %Y, %H:%M} UTC.{more}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{_REFRESH_S}">
<meta name="viewport" content="width=device-width"><title>{_shown(said)}</title><style>{_STYLE}</style></head>
<body><header style="background: {color}"><h1>{_shown(said)}</h1><p>{_shown(span.removesuffix(")"))}</p></header>
<main><ul>{"".join(items)}</ul><div class="panels">{panels}</div></main>
<footer><p>{_shown(telling.rule(found))}</p><p>{_shown(made)}</p></footer></body></html>
"""


def _shown(text: str) -> str:
    return html.escape(as_written(text))


def _panel(found: Judged, course: Course) -> str:
    """A course over time as SVG: each session, the nodes that changed, the levels' changes and the bad nights."""
    with style.styled():
        figure = Figure(figsize=(6.4, 2.6), layout="constrained")
        axes = figure.subplots()
        _draw(axes, found, course)
        stream = io.StringIO()
        figure.savefig(stream, format="svg")
    return stream.getvalue().partition("?>")[2]


def _draw(axes: Axes, found: Judged, course: Course) -> None:
    times = [session.time for session in found.history.sessions]
    percent = 100 * np.exp(course.values - np.nanmedian(course.values[:20], axis=0))
    changes = [one for one in found.changes if course.what in {moved.what for moved in one.moved}]
    named = dict.fromkeys(node for one in changes for node in one.nodes)
    if len(course.nodes) >= LEAST_NODES:
        with np.errstate(all="ignore"):
            low, middle, high = np.nanquantile(percent, (0.05, 0.5, 0.95), axis=1)
        axes.fill_between(times, low, high, color="#BBBBBB", lw=0, label="90 % of the nodes")
        axes.plot(times, middle, ".", color=style.INK, ms=3, label="median of all nodes")
    else:
        named |= dict.fromkeys(course.nodes)
    colors = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    for color, node in zip(colors, list(named)[:_MOST_NODES]):
        column = percent[:, course.nodes.index(node)] if node in course.nodes else []
        if len(column):
            label = node or "session"
            axes.plot(times, column, ".", color=color if node else style.INK, ms=3, label=label)
    for change in changes:
        shift = change.shift
        axes.axvspan(
            times[shift.low], times[shift.high], color=_COLORS[change.answer], alpha=0.25, lw=0
        )
        axes.axvline(times[shift.first], color=_COLORS[change.answer], lw=1.2)
    bad = [one.session for one in found.bad_nights if course.what in one.whats]
    if bad:
        with np.errstate(all="ignore"):
            off = [np.nanmin(percent[night]) for night in bad]
        axes.plot(
            [times[night] for night in bad], off, "x", color="#B34700", ms=7, label="bad night"
        )
    locator = mdates.AutoDateLocator(maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
    axes.set_title(f"{course.what} ({telling.typical(course, 3)})", loc="left")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 100 - _LEAST_SPAN), max(high, 100 + _LEAST_SPAN))
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_ylabel("speed [%]")
    drawing.legend_below(axes.figure, [axes], 4)
