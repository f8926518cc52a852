"""The model's numbers moved to the ends of their ranges: planted changes come back, and missing cases are said."""

import re
from functools import cache

import numpy as np
import pytest
from shown import heights, text
from synthetic_smith import SMITH, planted, smith_campaign

from analysis.experiments import sensitivity


@cache
def study():
    """The study of the planted campaign."""
    return sensitivity.analyse(smith_campaign("hpl_sensitivity"))


def everything(of):
    """All that is shown of a study, as text."""
    tables = sensitivity.ranges_table(of), sensitivity.numbers_table(of)
    return text(sensitivity.finding(of), *sensitivity.figures(of).values(), *tables)


def ends(values):
    return float(values.low), float(values.high)


def test_changes_are_those_of_the_planted_rates():
    """Each parameter's change is the difference to the unchanged model, at the right end."""
    changes = study().changes
    for interconnect, nodes, vary in (
        ("gige", 36, "bandwidth=low"),
        ("10gige", 2, "dgemm_flop_s=high"),
    ):
        name, _, side = vary.partition("=")
        wanted = planted(interconnect, nodes, vary) - planted(interconnect, nodes)
        change = changes.sel(parameter=name, side=side, interconnect=interconnect, nodes=nodes)
        assert change.item() == pytest.approx(wanted)
    assert not changes.sel(parameter="strided_s").any()


def test_range_is_of_one_change_and_bracket_of_all():
    """The range holds the largest single change; the bracket their sum, so that it holds all at once."""
    changes = study().changes.sel(interconnect="gige", nodes=36)
    extent, bracket = ends(sensitivity.extent(changes)), ends(sensitivity.bracket(changes))
    assert extent == (changes.min().item(), changes.max().item())
    assert bracket[0] == pytest.approx(changes.min("side").sum().item())
    assert bracket[0] < extent[0] < 0 < extent[1] < bracket[1]


def test_the_finding_holds_the_range_of_the_fall():
    """A slower link makes the fall larger: its upper end is the fall with the bandwidth at its low end."""
    worst = planted("gige", 2, "bandwidth=low") - planted("gige", 36, "bandwidth=low")
    assert f"to {100 * worst:.1f} points on GigE" in text(sensitivity.finding(study()))


def test_what_moves_most_stands_first():
    """In the planted model that is the rate of DGEMM on 10GE; only some numbers are assumed."""
    order = sensitivity.ranked(study().changes.sel(interconnect="10gige", nodes=36))
    assert order[0] == "dgemm_flop_s" and set(order) == set(study().changes.parameter.values)
    assumed = {name: sensitivity.is_assumed(SMITH, "10gige", name) for name in order}
    assert not assumed["bandwidth"] and not assumed["dgemm_flop_s"] and assumed["node_byte_s"]


def test_every_number_stands_with_its_source():
    """The table holds each number of the node and of both networks."""
    rows = sensitivity.numbers_table(study()).rows
    tables = SMITH["rates"], SMITH["network"]["gige"], SMITH["network"]["10gige"]
    sources = [entry["source"] for table in tables for entry in table.values()]
    assert len(rows) == len(sources) + 1 and set(sources) < {row[-1] for row in rows}
    assert ("DGEMM, large matrices", "a node", "39.67", "38 to 41", "Gflop/s") == rows[1][:5]


def test_the_figure_has_every_change_on_the_most_nodes():
    """A panel a network, a bar for each end of each range."""
    exhibit = sensitivity.figures(study())["sensitivity"]
    for panel, network in enumerate(study().base.interconnect.values):
        changes = 100 * study().changes.sel(interconnect=network, nodes=36).values.ravel()
        assert all(np.isclose(heights(exhibit, panel), change).any() for change in changes)


def test_missing_cases_are_dashes():
    """Without the largest unchanged case nothing is said of its network; without both, that it cannot be."""
    some = sensitivity.analyse(smith_campaign("hpl_sensitivity", failed={(1, "gige", 36, "none")}))
    assert "GigE" not in sensitivity.finding(some) and "10GE" in sensitivity.finding(some)
    both = {(1, network, 36, "none") for network in ("gige", "10gige")}
    none = sensitivity.analyse(smith_campaign("hpl_sensitivity", failed=both))
    assert "cannot be said" in sensitivity.finding(none)
    for of in (some, none):
        assert not re.search(r"\b(nan|None)\b", everything(of))
