"""The laws of a campaign's efficiency: what they recover and foretell."""

import json

import command_line
import numpy as np
import pytest
from executed import executed, stated, words
from synthetic_scale_model import run

from analysis.descriptions import testbeds
from analysis.laws.models import find

# s and s/B: the scale model's messages, and its links' payload at its described rates.
PLANTED = {
    "gige": {"alpha": 4e-4, "beta": 1 / 117.7e3},
    "10gige": {"alpha": 6e-5, "beta": 1 / 1294.6e3},
    "unshaped": {"alpha": 6e-5, "beta": 1e-9},
    "ideal": {"alpha": 1e-9, "beta": 1e-12},
}
NODE = testbeds.read("fortinet_model").plain()["node"]["flop_s"]


def share(point):
    """HPL's efficiency by the law of its messages."""
    settings = [float(point[name]) for name in ("N", "NB", "P", "Q")]
    x = np.array([*settings, NODE])[:, None]
    return float(find("hpl_messages").function(x, **PLANTED[point["interconnect"]])[0])


@pytest.fixture(scope="module")
def runs():
    """Four blocks with little scatter."""
    return run("hpl_scaling", share, blocks=4, noise=0.001)


@pytest.fixture(scope="module")
def shown(runs):
    """The notebook on these runs."""
    return executed("40", hpl_scaling=runs)


def test_the_links_rates_come_back_from_hpls_times(shown):
    """Within 5 % of what was set, by the law that has the most weight; the constant misses GigE."""
    laws = shown.names["laws"]
    for network, name in (("gige", "GigE"), ("10gige", "10GE")):
        assert shown.names["best"][network].model.name == "hpl_messages"
        rate = stated(shown, f"HPL's times alone tell the rate of {name}'s links")
        assert rate.estimate == pytest.approx(1, abs=0.05)
        assert rate.interval[0] < rate.estimate < rate.interval[1]
    assert [rate.answer for rate in shown.names["rates"]] == ["yes", "undecided"]
    assert laws["gige", "constant"].verdict == "misses its data"


def test_more_nodes_are_foretold(shown):
    """From up to 16 nodes those on 36."""
    predicted = shown.names["predicted"]
    row = predicted.loc["gige", "hpl_messages"]
    assert (row.seen, row.most) == (16, 36)
    assert abs(row.error) < 0.005 and row.low <= row.error <= row.high
    assert abs(predicted.error["gige", "constant"]) > 0.05
    law = "The law of HPL's messages, fitted to 16 nodes or fewer, foretells GigE on 36"
    assert stated(shown, law).words == "yes"


@pytest.mark.more
def test_without_a_law_nothing_is_made_up():
    """Where no law follows the runs none is quoted."""
    few = executed("40", hpl_scaling=run("hpl_scaling", lambda at: 0.9 - 0.2 * (at["nodes"] == 8)))
    assert few.names["best"] == {} and "cannot be said" in words(few)


def test_a_campaigns_folder_is_fitted_from_the_command_line():
    """As JSON, with every law of every network; a campaign is fitted as a whole, and one without
    HPL is refused.
    """
    reference = "hpl_scaling-fortinet_model"
    said = json.loads(command_line.run("fit", reference, "--json").stdout)
    assert {row["law"] for row in said["laws"]} >= {"constant", "amdahl", "hpl_messages"}
    assert {row["interconnect"] for row in said["parameters"]} == {"gige", "10gige", "unshaped"}
    for words_, reason in (
        (("fit", "amdahl", reference), "without a model's name"),
        (("fit", "mtu-paths"), "holds no HPL trial"),
    ):
        ended = command_line.run(*words_)
        assert ended.returncode != 0 and reason in ended.stderr
        assert "Traceback" not in ended.stderr
