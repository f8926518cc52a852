"""Messages over delays: a planted slope and a planted cost of the machine are found, and a wrong
delay is told.
"""

import numpy as np
import pytest
import xarray as xr
from executed import executed
from synthetic import of_plan

from analysis import planning


def run(slope=1.0, added=40e-6, blocks=5, noise=2e-6):
    """The notebook on messages that take `slope` times their path's delay and `added` seconds."""
    plan = planning.plan_campaign("ping_pong", "paths", "full", blocks)
    random = np.random.default_rng(1)

    def readings(point, _):
        delay = plan.interconnects[point["path"]]["links"][0].get("delay_s", 0)
        time = slope * delay + added + random.normal(0, noise)
        return {"half_round_trip_p50": time}

    return executed("12", ping_pong=of_plan(plan, readings))


@pytest.mark.parametrize(
    ("slope", "words"), [(1.0, "yes"), (1.05, "no"), (0.9, "no"), (1.02, "undecided")]
)
def test_a_delay_that_is_not_as_set_is_told(slope, words):
    made = run(slope)
    (planned,) = (one for one in made.statements if one.primary)
    assert planned.words == words and planned.estimate == pytest.approx(slope, abs=0.002)
    assert planned.interval[0] < slope < planned.interval[1] and planned.n == 5


def test_what_the_machine_adds_is_found():
    """Of each size, in microseconds."""
    added = [one for one in run(added=150e-6).statements if one.quantity == "time"]
    assert len(added) == 2
    for one in added:
        assert one.unit == "µs" and one.estimate == pytest.approx(150, abs=5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("blocks", [1, 3])
def test_one_delay_has_no_slope(blocks):
    """No line is fitted, nothing is warned of, and the statements say why; also where one block
    alone has a second delay.
    """
    runs = run(blocks=blocks).names["runs"]
    delays = runs.path.values == runs.path.values[0]
    made = executed("12", ping_pong=runs.where(xr.DataArray(delays, dims="trial"), drop=True))
    (planned,) = (one for one in made.statements if one.primary)
    assert planned.estimate is None and planned.answer in ("", "undecided")
    assert "two delays" in str(planned)
    first = (runs.block.values == 1) | delays
    made = executed("12", ping_pong=runs.isel(trial=first))
    (planned,) = (one for one in made.statements if one.primary)
    assert planned.n == 1 and planned.estimate == pytest.approx(1, abs=0.01)


def test_one_block_decides_nothing():
    (planned,) = (one for one in run(blocks=1).statements if one.primary)
    assert planned.words == "undecided" and planned.interval is None
