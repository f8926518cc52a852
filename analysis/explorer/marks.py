"""How a series looks in the explorer: as in the report's figures, and lighter where the page is dark."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from matplotlib.colors import to_hex, to_rgb

from analysis import style
from analysis.explorer.trials import Trials

# What Bokeh calls matplotlib's markers.
MARKERS = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "v": "inverted_triangle",
    "D": "diamond",
    "P": "plus",
    "X": "square_pin",
    "*": "star",
    "p": "hex",
}
# Looks for levels without one of their own, told apart from each other.
SPARE = ("gige", "10gige", "100gige", "gige_bonded", "ddr_infiniband", "25gige", "unshaped", "scenario 3", "noise 2")
DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashdot"}
DIM = 0.55  # relative luminance below which a colour is too dark for a dark page
MARK = 14  # pixels of a mark in a legend


@dataclass(frozen=True)
class Mark:
    """A series' name, its colour on a light and on a dark page, Bokeh's marker and the dash pattern of the line."""

    series: str
    color: str
    dark: str
    marker: str
    dash: str | list[int]


def looks(levels: Sequence[Hashable]) -> dict[Hashable, style.Look]:
    """A look for each level of a series: its own in the report's figures, else one that no other level has."""
    own = {level: style.LOOKS[level] for level in levels if level in style.LOOKS}
    taken = {it.color for it in own.values()}
    spare = [style.LOOKS[name] for name in SPARE if style.LOOKS[name].color not in taken] or [
        style.LOOKS[name] for name in SPARE
    ]
    without = [level for level in levels if level not in own]
    found = own | {level: spare[at % len(spare)] for at, level in enumerate(without)}
    return {level: found[level] for level in levels}


def marks(trials: Trials, factor: str) -> dict[Hashable, Mark]:
    """The mark of each level of a factor."""
    return {
        level: mark(look, trials.placed(factor, level))
        for level, look in looks(trials.factors.get(factor, [])).items()
    }


def mark(look: style.Look, series: str) -> Mark:
    """A look as Bokeh and a dark page need it."""
    dash = DASHES[look.line] if isinstance(look.line, str) else [2 * int(length) for length in look.line[1]]
    return Mark(series, look.color, lightened(look.color), MARKERS[look.marker], dash)


def lightened(color: str) -> str:
    """The colour mixed with as much white as makes it legible on a dark page."""
    rgb = to_rgb(color)
    luminance = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
    white = max(0.0, (DIM - luminance) / (1 - luminance)) if luminance < DIM else 0.0
    return to_hex([(1 - white) * part + white for part in rgb])


def picture(mark: Mark, dark: bool) -> str:
    """The mark as an SVG of MARK pixels, for a legend."""
    shapes = {
        "circle": '<circle cx="7" cy="7" r="5"/>',
        "square": '<rect x="2.5" y="2.5" width="9" height="9"/>',
        "triangle": '<path d="M7 1.5 12.8 12H1.2z"/>',
        "inverted_triangle": '<path d="M7 12.5 12.8 2H1.2z"/>',
        "diamond": '<path d="M7 .8 12 7 7 13.2 2 7z"/>',
        "plus": '<path d="M5 1.5h4V5h3.5v4H9v3.5H5V9H1.5V5H5z"/>',
        "square_pin": '<path d="M2 2q5 2.4 10 0q-2.4 5 0 10q-5-2.4-10 0q2.4-5 0-10z"/>',
        "star": '<path d="M7 .8l1.7 4.2 4.5.3-3.5 2.9 1.1 4.4L7 10.2l-3.8 2.4 1.1-4.4L.8 5.3l4.5-.3z"/>',
        "hex": '<path d="M7 1 12.2 4v6L7 13 1.8 10V4z"/>',
    }
    color = mark.dark if dark else mark.color
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{MARK}" height="{MARK}" fill="{color}">'
    return f"{head}{shapes[mark.marker]}</svg>"
