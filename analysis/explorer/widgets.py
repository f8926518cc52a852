"""The kinds of widgets that the pages are made of, and how they look."""

from base64 import b64encode
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import panel as pn
from bokeh.models import Div

from analysis.explorer.marks import marks, picture
from analysis.explorer.trials import Trials
from analysis.wording import number

STEPS = 121  # of a slider on which equal ways are equal ratios


@cache
def sheet(name: str = "parts.css") -> str:
    """A style sheet of this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def text(html: str = "") -> Div:
    """A piece of text on the page; Bokeh's own model, since Panel's would load MathJax."""
    return Div(text=html, sizing_mode="stretch_width", margin=0, stylesheets=[sheet()], disable_math=True)


def select(label: str) -> pn.widgets.Select:
    """A list of which one is chosen."""
    return pn.widgets.Select(
        label=label, options={}, sizing_mode="stretch_width", margin=(4, 0), stylesheets=[sheet()]
    )


def chips(label: str, *classes: str) -> pn.widgets.CheckButtonGroup:
    """Buttons of which any number are on."""
    return pn.widgets.CheckButtonGroup(
        label=label,
        options={},
        sizing_mode="stretch_width",
        margin=(4, 0),
        stylesheets=[sheet()],
        css_classes=list(classes),
    )


def offer(widget, options: dict[str, Hashable], value) -> None:
    """Set what a widget offers and has, if it differs, at once."""
    if widget.options != options or widget.value != value:
        widget.param.update(options=options, value=value)
    if isinstance(widget, pn.widgets.Select):
        widget.disabled = len(options) < 2


def dress(widget: pn.widgets.Widget, rules: str) -> None:
    """Further rules of style, sent only where they are new: a browser draws such a widget anew."""
    if widget.stylesheets != [sheet(), rules]:
        widget.stylesheets = [sheet(), rules]


def swatches(trials: Trials, factor: str) -> str:
    """Each series' mark before its name: the buttons are the plot's legend."""
    rules = [
        ".bk-btn::before { content: ''; display: inline-block; width: 14px; height: 14px; "
        "margin-right: 6px; vertical-align: -2px; }"
    ]
    for at, mark in enumerate(marks(trials, factor).values(), 1):
        for dark, place in ((False, ":host"), (True, ':host-context(:root[data-theme="dark"])')):
            rules.append(
                f"{place} .bk-btn:nth-child({at})::before {{ "
                f"background: url(data:image/svg+xml;base64,{_encoded(mark, dark)}); }}"
            )
    return "\n".join(rules)


def counting(opened: Mapping[str, Trials]) -> set[int]:
    """The blocks that have a valid trial."""
    return {block for it in opened.values() for block in it.frame.block[it.frame.valid].tolist()}


def not_counted(blocks: list[int], opened: Mapping[str, Trials]) -> str:
    """Blocks that the campaign's own rules leave out are dotted."""
    whole = counting(opened)
    places = [f".bk-btn:nth-child({at})" for at, block in enumerate(blocks, 1) if block not in whole]
    return f"{', '.join(places)} {{ border-style: dotted !important; opacity: .45; }}" if places else ""


def _encoded(mark, dark: bool) -> str:
    return b64encode(picture(mark, dark).encode()).decode()


def words(name: str) -> str:
    """A name of the schema as words."""
    return name.replace("_", " ")


def slider(label: str, low: float, high: float, unit: str, known: Iterable[float]) -> pn.widgets.DiscreteSlider:
    """A slider from low to high in equal ratios, which also stops at the values that are known."""
    values = sorted({*np.geomspace(low, high, STEPS).tolist(), *known})
    options = {f"{number(value)} {unit}": float(value) for value in values}
    return pn.widgets.DiscreteSlider(
        label=label, options=options, sizing_mode="stretch_width", margin=(8, 6), stylesheets=[sheet()]
    )


def price(label: str, value: float) -> pn.widgets.FloatInput:
    """A price in USD."""
    return pn.widgets.FloatInput(
        label=label, value=value, start=0, step=10, sizing_mode="stretch_width", margin=(4, 0), stylesheets=[sheet()]
    )


def nearest(widget: pn.widgets.DiscreteSlider, value: float) -> None:
    """Set a slider to the stop that is nearest by ratio."""
    values = np.array(list(widget.options.values()))
    widget.value = float(values[np.abs(np.log(values / value)).argmin()])
