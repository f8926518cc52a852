"""The model's numbers moved to the ends of their ranges: planted changes come back."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed
from synthetic_hpl_paper import SMITH, planted, smith_campaign
from synthetic_scale_model import run

from analysis.quoting import as_written
from analysis.subjects import hpl_sensitivity


@cache
def made():
    """The notebook on the planted campaign."""
    emulated = run("hpl_paper_emulated", lambda point: 0.9, blocks=2)
    varied = smith_campaign("hpl_paper_sensitivity")
    paper = smith_campaign("hpl_paper_simulated")
    return executed(
        "44", hpl_paper_emulated=emulated, hpl_paper_simulated=paper, hpl_paper_sensitivity=varied
    )


@pytest.mark.parametrize(("parameter", "width"), [("bandwidth", 117 / 90), ("latency", 60 / 30)])
def test_elasticities_are_slopes_from_end_to_end_of_a_range(parameter, width):
    slope = made().names["slope"](parameter).sel(interconnect="gige", nodes=8)
    ends = (planted("gige", 8, f"{parameter}={end}") for end in ("high", "low"))
    assert float(slope) == pytest.approx(np.subtract(*np.log([*ends])) / np.log(width))


def test_the_fall_is_claimed_with_its_range_over_the_models():
    """A slower link makes the fall larger: its upper end is the fall with the bandwidth at its low
    end.
    """
    (fall,) = (value for value in made().stated if value.name == "slow_over_nodes")
    ratios = [
        planted("gige", 36, level) / planted("gige", 2, level)
        for level in ("none", "bandwidth=low")
    ]
    assert [fall.estimate, fall.interval[0]] == pytest.approx(ratios)


def test_tcp_takes_a_cycle_for_each_bit_of_the_planted_bytes():
    """Sent and received alike; unknown where no run counted its bytes."""
    paper = smith_campaign("hpl_paper_simulated")
    assert hpl_sensitivity.tcp_time(paper, 2.8e9).isnull().all()
    sizes = xr.zeros_like(paper.payload_bytes) + 1e9  # sent by all nodes, in each class of sizes
    sent = 1e9 * sizes.sizes["size"]
    taken = hpl_sensitivity.tcp_time(paper.assign(payload_bytes=sizes), 2e9)
    time = paper.hpl_time[(paper.interconnect == "gige") & (paper.nodes == 36)].item()
    on_most = taken.sel(interconnect="gige", nodes=36).item()
    assert on_most == pytest.approx(2 * 8 * sent / 36 / time / 2e9)


def test_every_bar_is_the_change_of_the_planted_rates():
    """The number with the largest effect on GigE is on top; one that changes nothing has no
    length.
    """
    panel = made().figures["sensitivity"].figure.axes[0]
    labels = [label.get_text() for label in panel.get_yticklabels()]
    low, high = ([bar.get_width() for bar in bars] for bars in panel.containers)
    change = 100 * (planted("gige", 36, "bandwidth=low") - planted("gige", 36, "none"))
    assert low[labels.index("bandwidth")] == pytest.approx(change) and change != 0
    assert low[labels.index("scattered access")] == high[labels.index("scattered access")] == 0
    swings = [max(*ends, 0) - min(*ends, 0) for ends in zip(low, high)]
    assert swings == sorted(swings, reverse=True)


def test_every_number_stands_with_its_source():
    """The table holds each number of the node and of both networks."""
    rows = hpl_sensitivity.numbers_table(smith_campaign("hpl_paper_sensitivity")).rows
    tables = SMITH["rates"], SMITH["network"]["gige"], SMITH["network"]["10gige"]
    sources = [entry["source"] for table in tables for entry in table.values()]
    assert len(rows) == len(sources) + 1 and set(sources) < {as_written(row[-1]) for row in rows}
    assert ("DGEMM, large matrices", "a node", "39.67", "38 to 41", "Gflop/s") == rows[1][:5]
