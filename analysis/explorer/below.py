"""What is below the plot: the buttons that take a view away, and the tables of which one is seen."""

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import panel as pn
from bokeh.models import ColumnDataSource, DataTable, TableColumn

from analysis.explorer.widgets import sheet

COLUMNS = {  # of the table of trials: title and width in pixels
    "trial": ("trial", 110),
    "series": ("series", 110),
    "level": ("at", 80),
    "block": ("block", 50),
    "order": ("order", 50),
    "value": ("value", 90),
    "settings": ("settings", 240),
    "note": ("note", 300),
}


def tables(parts: Mapping[str, Any]) -> pn.Column:
    """The parts by name, of which one is seen, the first at first."""
    shown = pn.Column(next(iter(parts.values())), sizing_mode="stretch_width", margin=0)
    which = pn.widgets.RadioButtonGroup(options=list(parts), stylesheets=[sheet()], margin=(8, 0))

    def turn(event) -> None:
        shown[:] = [parts[event.new]]

    which.param.watch(turn, "value")
    return pn.Column(which, shown, sizing_mode="stretch_width", margin=0)


def trial_table(source: ColumnDataSource) -> DataTable:
    """The plot's own trials as a table: what is selected in one is selected in the other."""
    columns = [TableColumn(field=name, title=title, width=width) for name, (title, width) in COLUMNS.items()]
    looks = {
        "height": 330,
        "index_position": None,
        "sizing_mode": "stretch_width",
        "stylesheets": [sheet("table.css")],
    }
    return DataTable(source=source, columns=columns, **looks)


def download(label: str, ending: str, make: Callable[[], str | bytes]) -> pn.widgets.FileDownload:
    """A button whose file is made when somebody asks for it."""

    def made() -> BytesIO:
        content = make()
        return BytesIO(content.encode() if isinstance(content, str) else content)

    looks = {"css_classes": ["action"], "stylesheets": [sheet()], "margin": (4, 3), "color": "default"}
    return pn.widgets.FileDownload(callback=made, filename=f"view.{ending}", label=label, **looks)
