"""The look of figures: one colour, marker and line per series, distinguishable in black and white,
too."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from analysis.quoting import as_written
from runners.records.journal import write_whole

# As matplotlib names what is used several times: behind id=", href="# or url(#.
_HASHED = re.compile(r'(?<=["(#])[a-zA-Z]\w*[0-9a-f]{10}(?=[")])')


@dataclass(frozen=True)
class Look:
    """Colour (from Okabe and Ito's colour-blind safe palette), marker and line style of one
    series."""

    color: str
    marker: str
    line: str | tuple


# Lines by their dashes and gaps.
LONG_DASHES, SHORT_DASHES, DASH_DOTS = (0, (8, 2)), (0, (2, 1)), (0, (6, 1, 1, 1, 1, 1))

LOOKS = {
    "gige": Look("#D55E00", "o", "-"),
    "10gige": Look("#0072B2", "s", "--"),
    "unshaped": Look("#6E6E6E", "^", ":"),
    "gige_bonded": Look("#E69F00", "v", "-."),
    "25gige": Look("#56B4E9", "P", DASH_DOTS),
    "100gige": Look("#009E73", "X", LONG_DASHES),
    "ddr_infiniband": Look("#CC79A7", "D", SHORT_DASHES),
    "openblas": Look("#009E73", "D", "-"),
    "reference": Look("#E69F00", "v", "--"),
    # Levels of noise in ascending order, in one hue: more noise is darker.
    "noise 1": Look("#8C96C6", "v", ":"),
    "noise 2": Look("#88419D", "D", "--"),
    "noise 3": Look("#4D004B", "o", "-"),
    # Ways of using two links.
    "one_link": Look("#6E6E6E", "^", ":"),
    "ecmp_layer2": Look("#E69F00", "v", "-."),
    "ecmp_layer34": Look("#D55E00", "o", "-"),
    "mptcp": Look("#0072B2", "s", "--"),
    "mpi_striping": Look("#009E73", "D", "-"),
    "bond_balance_rr": Look("#CC79A7", "X", LONG_DASHES),
    "cubic": Look("#0072B2", "s", "-"),
    "reno": Look("#D55E00", "o", "--"),
    "forward": Look("#009E73", "D", "-"),
    "reverse": Look("#CC79A7", "v", "--"),
    "both": Look("#0072B2", "o", ":"),
    "sending": Look("#0072B2", "s", "-"),
    "receiving": Look("#D55E00", "o", "--"),
    "crossover": Look("#6E6E6E", "^", ":"),
    "switch_8996": Look("#009E73", "s", "-"),
    # Long paths, by their one-way delay.
    "long_05ms": Look("#56B4E9", "v", ":"),
    "long_2ms": Look("#0072B2", "s", "--"),
    "long_5ms": Look("#009E73", "D", "-."),
    "long_20ms": Look("#222222", "o", "-"),
    "asymmetric": Look("#D55E00", "^", SHORT_DASHES),
    # Topologies of the token exchanges.
    "shared_wire": Look("#D55E00", "o", "-"),
    "local_wire": Look("#009E73", "D", "-"),
    "local_router": Look("#000000", "*", SHORT_DASHES),
    "remote_switch": Look("#0072B2", "s", "--"),
    "remote_router": Look("#56B4E9", "P", "-."),
    "bonded": Look("#E69F00", "v", DASH_DOTS),
    "bonded_switch": Look("#CC79A7", "^", ":"),
    "bonded_shared": Look("#6E6E6E", "X", LONG_DASHES),
    # Patterns of traffic.
    "nearest_neighbour": Look("#009E73", "D", "-"),
    "permutation": Look("#0072B2", "s", "--"),
    "all_to_all": Look("#D55E00", "o", "-."),
    "many_to_one": Look("#6E6E6E", "^", ":"),
    # Buffers of a switch's port, in ascending order.
    "buffer 1": Look("#D55E00", "o", "-"),
    "buffer 2": Look("#E69F00", "v", "-."),
    "buffer 3": Look("#009E73", "D", "--"),
    "buffer 4": Look("#0072B2", "s", ":"),
    # Network designs: a colour for each core switch.
    "crossbar": Look("#222222", "*", "-"),
    "cisco_dfc_2to1": Look("#0072B2", "o", "--"),
    "cisco_2to1": Look("#D55E00", "s", "-"),
    "e600_2to1": Look("#009E73", "D", "-."),
    "e1200_2to1": Look("#E69F00", "^", ":"),
    "cisco_4to1": Look("#D55E00", "v", SHORT_DASHES),
    "e600_4to1": Look("#009E73", "P", DASH_DOTS),
    "cisco_7to1": Look("#D55E00", "X", LONG_DASHES),
    "e600_7to1": Look("#009E73", "p", (0, (1, 2))),
}
# For the user's own interconnects: looks that no network above uses.
_spare = cycle(["mpi_striping", "bond_balance_rr", "crossbar", "noise 2"])
PUBLISHED_MARKER = "x"
PUBLISHED_DEVICES = (
    "x+1"  # marks of a source's devices, in ink, in the order in which it names them
)
TODAY = Look("#CC79A7", "D", ":")
INK, FAINT, MARGIN = "#222222", "#B0B0B0", "#E4EEE4"

WIDTH = 5.4  # inches: less than a page's column, so that labels stay readable on a phone

LONGEST_LINE = 80  # characters

RULES: Any = {
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it looks the same everywhere
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "svg.hashsalt": "falloff",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a name may have dollars
}


@cache
def look(series: str) -> Look:
    """The look of an interconnect, a BLAS or a level of noise. The user's own names each keep the
    next spare look."""
    return LOOKS[series if series in LOOKS else next(_spare)]


@contextmanager
def styled() -> Iterator[None]:
    """Draw with the project's settings; the caller's settings are restored afterwards."""
    import seaborn as sns  # with all of statsmodels: a second that nobody needs without a figure

    with sns.axes_style("whitegrid"), mpl.rc_context(RULES):
        yield


def svg(figure: Figure) -> str:
    """A figure as SVG; the same figure gives the same text.

    Matplotlib names clip paths and markers by hashes of coordinates, whose last digits differ
    between processors. Here they are numbered in their order.
    """
    write_out(figure)
    text = StringIO()
    with mpl.rc_context(RULES):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    numbers: dict[str, str] = {}
    return _HASHED.sub(
        lambda name: numbers.setdefault(name[0], f"p{len(numbers)}"), text.getvalue()
    )


def save(figure: Figure, file: Path) -> None:
    """Write a figure as SVG, in a folder that is made if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, svg(figure))


def write_out(figure: Figure) -> None:
    """Show quoted text as it was written, and a dollar as a dollar, not as the start of a
    formula."""
    for text in figure.findobj(Text):
        text.set_text("\n".join(map(_cut, as_written(text.get_text()).split("\n"))))
        text.set_parse_math(False)
    for axis in figure.findobj(Axis):
        if isinstance(ticked := axis.get_major_formatter(), FuncFormatter):  # else they are numbers
            axis.set_major_formatter(partial(_tick, ticked))


def _tick(ticked: FuncFormatter, x: float, place: int | None = None) -> str:
    return _cut(as_written(ticked(x, place)))


def _cut(line: str) -> str:
    """A line shortened so that it leaves room for the figure."""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
