"""The kinds of widgets that the pages are made of."""

from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path

import panel as pn
from bokeh.models import Div

WIDE = {"sizing_mode": "stretch_width", "margin": 0}


@cache
def sheet(name: str = "parts.css") -> str:
    """A style sheet or script of this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def text(html: str = "") -> Div:
    """A piece of text on the page; Bokeh's own model, since Panel's would load MathJax."""
    return Div(text=html, stylesheets=[sheet()], disable_math=True, **WIDE)


def row(*parts, kind: str) -> pn.Row:
    """Widgets beside each other."""
    return pn.Row(*parts, css_classes=[kind], stylesheets=[sheet()], **WIDE)


def select(label: str, options: Mapping[str, Hashable] | None = None) -> pn.widgets.Select:
    """A list of which one is chosen."""
    looks = {"sizing_mode": "stretch_width", "margin": (4, 0), "stylesheets": [sheet()]}
    return pn.widgets.Select(label=label, options=dict(options or {}), **looks)


def chips(*classes: str) -> pn.widgets.CheckButtonGroup:
    """Buttons of which any number are on."""
    looks = {"margin": (4, 0), "stylesheets": [sheet()], "css_classes": list(classes)}
    return pn.widgets.CheckButtonGroup(options={}, **looks)


def one_of(options: Mapping[str, str], **looks) -> pn.widgets.RadioButtonGroup:
    """Buttons of which one is on, the first at first."""
    looks = {"stylesheets": [sheet()], "margin": (4, 0), **looks}
    return pn.widgets.RadioButtonGroup(
        options=dict(options), value=next(iter(options.values())), **looks
    )


def offer(widget, options: Mapping[str, Hashable], value) -> None:
    """Set what a widget offers and has, if it differs, at once; of many that are on, in the order of the options."""
    if not isinstance(widget, pn.widgets.Select):
        value = [one for one in options.values() if one in value]
    else:
        widget.disabled = len(options) < 2
    if widget.options != options or widget.value != value:
        widget.param.update(options=dict(options), value=value)
