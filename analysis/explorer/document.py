"""The whole document of one reader: the page's parts in their places, and what runs in the browser alone."""

from collections.abc import Callable
from pathlib import Path

import panel as pn
from bokeh.models import CustomJS

from analysis.explorer import pieces
from analysis.explorer.page import Page
from analysis.explorer.shown import Shown
from analysis.explorer.whatif_page import WhatIf
from analysis.explorer.widgets import sheet, text
from runners.record import FalloffError

TURN = (
    "document.documentElement.dataset.page = cb_obj.active === 1 ? 'what-if' : 'explore'; "
    "dispatchEvent(new Event('resize'))"
)


def _ask(place: pn.Column) -> None:
    """The what-if page, made when somebody asks."""
    try:
        place.append(WhatIf().panel())
    except FalloffError as error:
        place.append(text(pieces.trouble("What if?", str(error))))


def document(folder: Path | None, draw: Callable[[Shown], bytes] | None = None) -> pn.Template:
    """The whole page for one reader; `draw` makes the SVG of what is shown, without it there is none."""
    page = Page(folder, draw)
    here = Path(__file__).parent
    made = pn.Template((here / "page.html").read_text(encoding="utf-8"))
    made.add_variable("css", sheet("page.css"))
    made.add_variable("theme", sheet("theme.js"))
    pages = pn.widgets.RadioButtonGroup(options=["Explore", "What if?"], stylesheets=[sheet()], margin=0)
    pages.jscallback(active=TURN)
    whatif = pn.Column(sizing_mode="stretch_width", margin=0)
    pages.param.watch(lambda event: _ask(whatif) if event.new != "Explore" and not len(whatif) else None, "value")
    bar = pn.FlexBox(page.layers, page.log, page.evidence, gap="0 18px", margin=0, css_classes=["bar"])
    for chips in bar:
        chips.param.update(sizing_mode=None, styles={"max-width": "100%"})
    if pn.state.curdoc:
        pn.state.curdoc.js_on_event("document_ready", CustomJS(code="falloffTheme.ready()"))
    for name, part in {
        "experiment": page.experiment,
        "pages": pages,
        "question": page.question,
        "verdict": page.verdict,
        "plot": pn.Column(bar, page.pane, sizing_mode="stretch_width", margin=0),
        "controls": page.controls.panel(),
        "export": page.export,
        "tables": page.tables,
        "whatif": whatif,
    }.items():
        made.add_panel(name, part)
    return made
