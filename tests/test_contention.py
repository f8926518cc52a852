"""Scenarios of contention: planted capacities are solved, and nothing is extrapolated."""

import re
from functools import cache

import numpy as np
import pytest
from shown import heights, text
from synthetic_smith import SMITH, planted, smith_campaign

from analysis.experiments import contention
from analysis.experiments.contention import LINK, SHARED, TARGETS

# In the planted truth a backplane binds from the sum of all links downwards.
LEVELS = {
    "vary": ["none"]
    + [f"backplane={rate}" for rate in ("3e9", "2e9", "1.5e9", "1.2e9", "1e9", "0.8e9", "0.65e9")]
    + [f"bandwidth={rate}" for rate in ("100e6", "90e6", "80e6", "70e6", "60e6", "50e6")]
}


@cache
def study():
    """The study of the planted levels."""
    return contention.analyse(smith_campaign("hpl_contention", LEVELS))


def everything(of):
    """All that is shown of a study, as text."""
    shown = *contention.figures(of).values(), contention.scenarios_table(of)
    return text(contention.finding(of), *shown)


@pytest.mark.parametrize("target", TARGETS)
def test_the_planted_backplane_is_solved(target):
    """The capacity at which the planted efficiency is the target comes back, within the stated error."""
    scenario = study().scenario(SHARED, target)
    error = abs(study().sweeps[SHARED].errors).max().item()
    assert planted("gige", 36, f"backplane={scenario.capacity}") == pytest.approx(target, abs=error)
    assert scenario.curve.sel(nodes=36).item() == pytest.approx(target)
    assert scenario.curve.sel(nodes=4).item() == pytest.approx(planted("gige", 4))
    assert study().of_ports(target) == pytest.approx(scenario.capacity / (36 * study().bandwidth))


def test_the_planted_loss_of_links_is_solved():
    """With the loss, links of 36 nodes give the target, and those of 4 have lost less of their rate."""
    scenario = study().scenario(LINK, 0.60)
    for nodes in (4, 36):
        link = SMITH["network"]["gige"]["bandwidth"]["value"] * (1 - scenario.loss) ** (nodes - 2)
        wanted = planted("gige", nodes, f"bandwidth={link}")
        assert scenario.curve.sel(nodes=nodes).item() == pytest.approx(wanted)
    assert scenario.curve.sel(nodes=36).item() == pytest.approx(0.60)


def test_a_target_outside_of_the_sweep_is_not_solved():
    """Nothing is extrapolated: the scenario is None and says what the levels reach; all that is shown stays whole."""
    few = contention.analyse(
        smith_campaign("hpl_contention", {"vary": ["none", "bandwidth=100e6", "bandwidth=90e6"]})
    )
    scenario = few.scenario(LINK, 0.50)
    assert scenario.capacity is scenario.loss is scenario.curve is None
    assert f"{100 * planted('gige', 36):.1f} %" in scenario.reason
    assert contention.finding(few) == "" and not re.search(r"\b(nan|None)\b", everything(few))


def test_failed_levels_are_left_out_of_the_interpolation():
    """A level that failed is bridged by its neighbours."""
    failed = {(1, "gige", 36, "backplane=1.2e9")}
    made = contention.analyse(smith_campaign("hpl_contention", LEVELS, failed=failed))
    whole = study().scenario(SHARED, 0.50).capacity
    assert made.scenario(SHARED, 0.50).capacity == pytest.approx(whole, rel=1e-3)


def test_leaving_a_level_out_shows_the_interpolations_error():
    """Where time is linear in 1/capacity the error vanishes; where a backplane begins to bind it does not."""
    sweeps = study().sweeps
    assert abs(sweeps[LINK].errors).max() < 1e-9
    errors = abs(sweeps[SHARED].errors).sel(nodes=36)
    assert errors.max() > 0.001 and np.isnan(errors.isel(capacity=[0, -1])).all()


def test_scenarios_are_called_so():
    """The finding says what the switch would have to carry; every curve but the simulated one is called a scenario."""
    said = text(contention.finding(study()))
    shares = [f"{100 * study().of_ports(target):.0f}" for target in TARGETS]
    assert (
        f"60, 55 or 50 % on 36 nodes if the switch carried only {shares[0]}, {shares[1]} or {shares[2]} %"
        in said
    )
    exhibit = contention.figures(study())["contention"]
    labels = [label.get_text() for label in exhibit.figure.legends[0].get_texts()]
    assert labels[0].startswith("no contention") and all(
        it.startswith("scenario") for it in labels[1:]
    )
    assert "No published value exists" in exhibit.caption


def test_the_figure_has_every_scenario():
    """A panel a mechanism; marks of one node count do not hide each other."""
    exhibit = contention.figures(study())["contention"]
    for panel, mechanism in enumerate((SHARED, LINK)):
        for target in TARGETS:
            curve = study().scenario(mechanism, target).curve
            if curve is not None:
                assert np.isin(100 * curve.values, heights(exhibit, panel)).all()
        places = np.concatenate([line.get_xdata() for line in exhibit.figure.axes[panel].lines])
        assert len(set(places.tolist())) == len(places)
