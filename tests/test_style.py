"""Series are told apart: in black and white, by the colour-blind, and those of the user's own."""

import numpy as np
from matplotlib.colors import to_rgb
from synthetic import INTERCONNECTS

from analysis import style


def test_networks_differ_in_black_and_white():
    """Without colour, marker and line tell the networks apart."""
    looks = [style.look(name) for name in INTERCONNECTS]
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(looks)


def test_colours_differ_for_the_colour_blind():
    """No two networks' colours come close when red and green are one channel (as in deuteranopia)."""
    colours = [to_rgb(style.look(name).color) for name in INTERCONNECTS]
    seen = [np.array([(red + green) / 2, blue]) for red, green, blue in colours]
    distances = [np.linalg.norm(a - b) for number, a in enumerate(seen) for b in seen[:number]]
    assert min(distances) > 0.1


def test_interconnects_of_the_users_own_have_looks():
    """Each name keeps its own, which is no other's beside it."""
    pigeon, drum = style.look("carrier pigeon"), style.look("talking drum")
    assert style.look("carrier pigeon") == pigeon != drum
    assert not {pigeon, drum} & {style.look(name) for name in ("gige", "10gige", "unshaped")}


def test_longer_pauses_are_darker():
    """Levels of noise are told apart in black and white, in their order, and by marker."""
    looks = [style.look(f"noise {rank}") for rank in (1, 2, 3)]
    lightness = [np.dot(to_rgb(look.color), (0.299, 0.587, 0.114)) for look in looks]
    assert lightness == sorted(lightness, reverse=True) and min(-np.diff(lightness)) > 0.1
    assert len({look.marker for look in looks}) == len(looks)
