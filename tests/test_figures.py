"""Figures show every point and unit, and a network looks the same wherever it appears."""

import io
import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from synthetic import INTERCONNECTS, campaign

from analysis import style
from analysis.figures import scaling as figures
from analysis.studies.scaling import analyse, short_names

REFERENCE = campaign(blocks=4, noise=0.01, failed=[(2, "gige", 8)])
NAMES = short_names(REFERENCE)
FIGURES = ("rate", "share", "falls", "links")


@cache
def scaling_study():
    """The study of the reference and of today's run."""
    return analyse(REFERENCE, campaign(blocks=2, noise=0.01, seed=9))


@cache
def drawn():
    """The study's figures by name, all of them."""
    found = figures.draw(scaling_study())
    assert tuple(found) == FIGURES
    return found


def heights(figure):
    """The y values of all marks and lines in a figure."""
    return np.concatenate([np.asarray(line.get_ydata(), float) for line in figure.axes[0].lines])


def places(figure):
    """The x values of all marks and lines in a figure."""
    return np.concatenate([np.asarray(line.get_xdata(), float) for line in figure.axes[0].lines])


def contains_all(shown, wanted):
    return all(np.isclose(shown, value, rtol=1e-9).any() for value in wanted)


def test_rate_figure_shows_every_run():
    """Each valid HPL rate is a mark."""
    rates = scaling_study().points.rate.values.ravel()
    assert contains_all(heights(drawn()["rate"]), rates[np.isfinite(rates)])


def test_share_figure_shows_every_run():
    """Each share is a mark, in percent."""
    shares = 100 * scaling_study().points.share.values.ravel()
    assert contains_all(heights(drawn()["share"]), shares[np.isfinite(shares)])


def test_fall_figure_shows_every_block():
    """Each block's fall is a mark: all four against the control, three where a run failed."""
    for contrast, blocks in zip(scaling_study().contrasts, (3, 3, 4)):
        assert contrast.verdict.blocks == blocks
        falls = -100 * np.expm1(contrast.differences.dropna("block").values)
        assert len(falls) == blocks and contains_all(places(drawn()["falls"]), falls)


def test_link_figure_shows_every_link():
    """Each measured goodput is a mark, in Gbit/s."""
    wanted = scaling_study().links.goodput.dropna() / 1e9
    assert contains_all(places(drawn()["links"]), wanted)


def test_fall_figure_says_the_verdicts():
    """The word of each verdict stands beside its row."""
    said = [text.get_text() for text in drawn()["falls"].axes[0].texts]
    assert said == [contrast.verdict.answer for contrast in scaling_study().contrasts]


def test_today_is_a_mark_of_its_own():
    """Today's mean is shown where there is one, in a colour of its own, and nowhere else."""

    def marks(figure):
        colors = [
            to_hex(line.get_color())
            for line in figure.axes[0].lines
            if line.get_marker() == style.TODAY.marker
        ]
        return colors.count(to_hex(style.TODAY.color))

    assert marks(drawn()["falls"]) == len(scaling_study().contrasts)
    assert marks(figures.falls(scaling_study().points, scaling_study().contrasts)) == 0


@pytest.mark.parametrize("name", FIGURES)
def test_axes_say_what_they_show(name):
    """Axes have labels, and the one that is no count and no name has a unit."""
    axes = drawn()[name].axes[0]
    assert any("[" in label and "]" in label for label in (axes.get_xlabel(), axes.get_ylabel()))


@pytest.mark.parametrize("interconnect", INTERCONNECTS)
def test_a_network_has_one_colour_everywhere(interconnect):
    """Whatever carries a network's short name in a legend has that network's colour."""
    found = set()
    for name in ("rate", "share"):
        for legend in (drawn()[name].axes[0].get_legend(), *drawn()[name].legends):
            if legend is not None:
                found |= {
                    to_hex(handle.get_color())
                    for handle, text in zip(legend.legend_handles, legend.get_texts())
                    if text.get_text().split(",")[0] == NAMES[interconnect]
                }
    assert found == {to_hex(style.look(interconnect).color)}


def test_networks_differ_in_black_and_white():
    """Without colour, marker and line tell the networks apart."""
    looks = [style.look(name) for name in INTERCONNECTS]
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(looks)


def test_colours_differ_for_the_colour_blind():
    """No two networks' colours come close when red and green are one channel (as in deuteranopia)."""
    seen = [
        np.array([(r + g) / 2, b]) for r, g, b in (to_rgb(style.look(name).color) for name in INTERCONNECTS)
    ]
    distances = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(distances) > 0.1


@pytest.mark.parametrize("name", FIGURES)
def test_same_data_same_bytes(name):
    """Two drawings of the same data are the same SVG file, without a date."""
    first, second = io.BytesIO(), io.BytesIO()
    style.save(drawn()[name], first)
    style.save(figures.draw(scaling_study())[name], second)
    assert first.getvalue() == second.getvalue()
    assert b"dc:date" not in first.getvalue()


def test_one_block_is_drawn_without_intervals():
    """A single block has points and curves, no band, no interval."""
    single = analyse(campaign(blocks=1))
    shown = figures.falls(single.points, single.contrasts)
    assert [text.get_text() for text in shown.axes[0].texts] == ["undecided"] * len(single.contrasts)
    rates = single.points.rate.values.ravel()
    assert contains_all(heights(figures.rate_over_nodes(single.points)), rates)


def test_interconnects_of_the_users_own_have_looks():
    """Each name keeps its own, which is no other's beside it."""
    pigeon, drum = style.look("carrier pigeon"), style.look("talking drum")
    assert style.look("carrier pigeon") == pigeon != drum
    assert not {pigeon, drum} & {style.look(name) for name in ("gige", "10gige", "unshaped")}


def test_efficiency_is_shown_where_rpeak_is_known():
    """HPL's rate over the nodes' peak, in percent; without a peak there is no such figure."""
    dataset = campaign(blocks=2)
    assert "efficiency" not in figures.draw(analyse(dataset))
    testbed = json.loads(dataset.attrs["testbed_settings"])
    known = {**testbed, "rpeak": {"value": 5e9, "unit": "flop/s"}}
    study = analyse(dataset.assign_attrs(testbed_settings=json.dumps(known)))
    shown = figures.draw(study)["efficiency"]
    percent = 20 * (study.points.rate / study.points.nodes).values.ravel()
    assert contains_all(heights(shown), percent)
