"""The model's numbers moved to the ends of their ranges: planted changes come back, and missing cases are said."""

import re

import numpy as np
import pytest
from shown import text
from synthetic_hpl_paper import SMITH, planted, smith_campaign

from analysis.quoting import as_written
from analysis.subjects import hpl_sensitivity


@pytest.fixture(scope="module")
def study():
    """The study of the planted campaign."""
    return hpl_sensitivity.analyse(smith_campaign("hpl_paper_sensitivity"))


@pytest.mark.parametrize(
    ("interconnect", "nodes", "parameter", "side"),
    [("gige", 36, "bandwidth", "low"), ("10gige", 2, "dgemm_flop_s", "high")],
)
def test_changes_are_those_of_the_planted_rates(study, interconnect, nodes, parameter, side):
    """Each parameter's change is the difference to the unchanged model, at the right end."""
    moved = planted(interconnect, nodes, f"{parameter}={side}")
    at = {"parameter": parameter, "side": side, "interconnect": interconnect, "nodes": nodes}
    change = study.changes.sel(at).item()
    assert change == pytest.approx(moved - planted(interconnect, nodes)) and change != 0
    assert not study.changes.sel(parameter="strided_s").any()


@pytest.mark.parametrize(
    ("parameter", "worse", "better", "width"),
    [("bandwidth", "low", "high", 117 / 90), ("latency", "high", "low", 60 / 30)],
)
def test_elasticities_are_slopes_from_end_to_end_of_a_range(study, parameter, worse, better, width):
    found = hpl_sensitivity.elasticity(study, parameter, worse, better)
    ends = (planted("gige", 8, f"{parameter}={end}") for end in (better, worse))
    slope = np.subtract(*np.log([*ends])) / np.log(width)
    assert float(found.sel(interconnect="gige", nodes=8)) == pytest.approx(slope)


def test_how_far_the_fall_goes_if_one_number_is_moved_and_if_all_are(study):
    """A slower link makes the fall larger: its upper end is the fall with the bandwidth at its low end. All go further."""
    falls = [
        100 * (planted("gige", 2, level) - planted("gige", 36, level))
        for level in ("none", "bandwidth=low")
    ]
    span = r"by (\S+) points on GigE \((\S+) to (\S+); (\S+) to (\S+)\)"
    fall, low, high, least, most = map(
        float, re.search(span, text(hpl_sensitivity.reach(study))).groups()
    )
    assert [fall, high] == pytest.approx(falls, abs=0.06)
    assert least < low < fall < high < most


def test_every_number_stands_with_its_source(study):
    """The table holds each number of the node and of both networks."""
    rows = hpl_sensitivity.numbers_table(study).rows
    tables = SMITH["rates"], SMITH["network"]["gige"], SMITH["network"]["10gige"]
    sources = [entry["source"] for table in tables for entry in table.values()]
    assert len(rows) == len(sources) + 1 and set(sources) < {as_written(row[-1]) for row in rows}
    assert ("DGEMM, large matrices", "a node", "39.67", "38 to 41", "Gflop/s") == rows[1][:5]


def test_a_network_without_its_cases_is_left_out():
    """Without the largest unchanged case nothing is said of its network; without both, that it cannot be."""
    some = hpl_sensitivity.analyse(
        smith_campaign("hpl_paper_sensitivity", failed={(1, "gige", 36, "none")})
    )
    assert "GigE" not in hpl_sensitivity.reach(some) and "10GE" in hpl_sensitivity.reach(some)
    both = {(1, network, 36, "none") for network in ("gige", "10gige")}
    none = hpl_sensitivity.analyse(smith_campaign("hpl_paper_sensitivity", failed=both))
    assert "cannot be said" in hpl_sensitivity.reach(none)
