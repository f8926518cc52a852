"""What the page of what-if says: which network pays from where on, and four numbers."""

from html import escape

import numpy as np

from analysis.explorer import whatif
from analysis.explorer.whatif import OTHER, YOURS, Answer
from analysis.wording import counted, number, percent


def sentence(answer: Answer, other: str) -> str:
    """The card: the node count at which the network `other` stops paying, and how far off that may be."""
    nodes = answer.efficiency.nodes.values
    if not np.isfinite(answer.pays_from):
        at = counted(int(nodes[-1]), "node")
        said = f"{other} pays at every size up to {at}: your network costs more for each Gflop/s of HPL."
    elif answer.pays_from == nodes[0]:
        at = counted(int(nodes[0]), "node")
        said = f"Your network pays at every size from {at} on: it costs less for each Gflop/s of HPL than {other}."
    else:
        at = counted(int(answer.pays_from), "node")
        said = f"{other} stops paying at {at}: from there on your network costs less for each Gflop/s of HPL."
    off = number(100 * whatif.off(), 2)
    note = (
        "Predicted on the white paper's cases, whose matrix grows with the nodes: HPL's analytic model, corrected to "
        "agree with the simulation (open marks) where a network was simulated. It has no scatter, so no interval; "
        f"one simulated network predicted from the others is at most {off} percentage points off. "
        "Prices are what you type: those of the start, of 2005 to 2009, have their sources in data/prices.toml."
    )
    return (
        f'<div class="card" data-pays="{answer.pays_from:g}"><span class="sentence">{escape(said)}</span> '
        f'<span class="chip">predicted</span><div class="note">{escape(note)}</div></div>'
    )


def tiles(answer: Answer, nodes: int, other: str, premium: float) -> str:
    """Both efficiencies at a node count, the gain in HPL and what a node costs more."""
    mine, theirs = (float(answer.efficiency.sel(interconnect=name, nodes=nodes)) for name in (YOURS, OTHER))
    told = (
        (percent(mine), f"of peak on your network, {counted(nodes, 'node')}"),
        (percent(theirs), f"of peak on {other}"),
        (percent(mine / theirs - 1), "more HPL for the same nodes"),
        (percent(premium), "more to pay for a node"),
    )
    each = (f'<div><div class="big">{big}</div><div class="what">{escape(what)}</div></div>' for big, what in told)
    return f'<div class="tiles">{"".join(each)}</div>'
