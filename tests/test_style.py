"""Series are told apart: in black and white, by the colour-blind, and those of the user's own."""

import re

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from synthetic import INTERCONNECTS

from analysis.statements import style


def test_networks_differ_without_colour_and_for_the_colour_blind():
    """Marker and line tell them apart; no two colours come close when red and green are one channel
    (as in deuteranopia).
    """
    looks = [style.look(name) for name in INTERCONNECTS]
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(looks)
    colours = [to_rgb(look.color) for look in looks]
    seen = [np.array([(red + green) / 2, blue]) for red, green, blue in colours]
    assert min(np.linalg.norm(a - b) for at, a in enumerate(seen) for b in seen[:at]) > 0.1


def test_interconnects_of_the_users_own_have_looks():
    """Each name keeps its own, which no network that the project knows has, whatever was drawn
    before.
    """
    own = {name: style.look(name) for name in ("pigeon", "drum", "smoke", "flag")}
    assert len(set(own.values())) == 4 and own == {name: style.look(name) for name in own}
    known = ("gige", "10gige", "unshaped", "gige_bonded", "25gige", "100gige", "ddr_infiniband")
    assert not set(own.values()) & {style.look(name) for name in known}


def test_longer_pauses_are_darker():
    """Levels of noise are told apart in black and white, in their order."""
    looks = [style.look(f"noise {rank}") for rank in (1, 2, 3)]
    lightness = [np.dot(to_rgb(look.color), (0.299, 0.587, 0.114)) for look in looks]
    assert lightness == sorted(lightness, reverse=True) and min(-np.diff(lightness)) > 0.1


def test_no_name_in_a_figure_depends_on_a_last_digit():
    """Clip paths, marks, areas, hatches and images have the same names whatever the processor
    rounds to, and each name that is referred to is there once."""

    def names(further: float) -> tuple[list, list]:
        figure, x = Figure(), np.linspace(0, 1, 7)
        left, right = figure.subplots(1, 2)
        left.fill_between(x, x - further, x + 1)
        left.scatter(x, x**2 + further, s=20 + x)
        left.bar(x, x + further, hatch="//")
        left.errorbar(x, x + further, 0.1, fmt="o")
        right.imshow(np.outer(x, x + further))
        svg = style.svg(figure)
        return re.findall(r' id="([^"]+)"', svg), re.findall(r'(?:href="|url\()#([^")]+)', svg)

    made, referred = names(0.0)
    assert (made, referred) == names(1e-7)
    assert len(set(made)) == len(made) > 20 and set(referred) <= set(made)
