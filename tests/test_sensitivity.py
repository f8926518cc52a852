"""The model's numbers moved to the ends of their ranges: planted changes come back, and missing cases are said."""

import numpy as np
import pytest
from shown import heights, text
from synthetic_smith import SMITH, planted, smith_campaign

from analysis.experiments import sensitivity


@pytest.fixture(scope="module")
def study():
    """The study of the planted campaign."""
    return sensitivity.analyse(smith_campaign("hpl_sensitivity"))


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
    found = sensitivity.elasticity(study, parameter, worse, better)
    ends = (planted("gige", 8, f"{parameter}={end}") for end in (better, worse))
    slope = np.subtract(*np.log([*ends])) / np.log(width)
    assert float(found.sel(interconnect="gige", nodes=8)) == pytest.approx(slope)


def test_range_is_of_one_change_and_bracket_of_all(study):
    """The range holds the largest single change; the bracket their sum, so that it holds all at once."""
    changes = study.changes.sel(interconnect="gige", nodes=36)
    extent, bracket = (
        [float(end) for end in ends(changes)] for ends in (sensitivity.extent, sensitivity.bracket)
    )
    assert extent == [changes.min().item(), changes.max().item()]
    assert bracket[0] == pytest.approx(changes.min("side").sum().item())
    assert bracket[0] < extent[0] < 0 < extent[1] < bracket[1]
    # A slower link makes the fall larger: its upper end is the fall with the bandwidth at its low end.
    worst = planted("gige", 2, "bandwidth=low") - planted("gige", 36, "bandwidth=low")
    assert f"to {100 * worst:.1f} points if any single number" in text(sensitivity.finding(study))


def test_every_number_stands_with_its_source(study):
    """The table holds each number of the node and of both networks."""
    rows = sensitivity.numbers_table(study).rows
    tables = SMITH["rates"], SMITH["network"]["gige"], SMITH["network"]["10gige"]
    sources = [entry["source"] for table in tables for entry in table.values()]
    assert len(rows) == len(sources) + 1 and set(sources) < {row[-1] for row in rows}
    assert ("DGEMM, large matrices", "a node", "39.67", "38 to 41", "Gflop/s") == rows[1][:5]


def test_the_figure_has_every_change_on_the_most_nodes(study):
    """A panel a network, a bar for each end of each range."""
    exhibit = sensitivity.figures(study)["sensitivity"]
    for panel, network in enumerate(study.base.interconnect.values):
        changes = 100 * study.changes.sel(interconnect=network, nodes=36).values.ravel()
        assert all(np.isclose(heights(exhibit, panel), change).any() for change in changes)


def test_a_network_without_its_cases_is_left_out():
    """Without the largest unchanged case nothing is said of its network; without both, that it cannot be."""
    some = sensitivity.analyse(smith_campaign("hpl_sensitivity", failed={(1, "gige", 36, "none")}))
    assert "GigE" not in sensitivity.finding(some) and "10GE" in sensitivity.finding(some)
    both = {(1, network, 36, "none") for network in ("gige", "10gige")}
    none = sensitivity.analyse(smith_campaign("hpl_sensitivity", failed=both))
    assert "cannot be said" in sensitivity.finding(none)
