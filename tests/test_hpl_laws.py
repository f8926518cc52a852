"""The laws of a campaign's efficiency, what they recover and foretell."""

import json

import command_line
import numpy as np
import pytest
from shown import words
from synthetic_scale_model import run

import experiment
from analysis.experiments import hpl_laws
from analysis.models import find

# s and s/B: the scale model's messages, and its links' payload at its described rates.
PLANTED = {
    "gige": {"alpha": 4e-5, "beta": 1 / 11.77e6},
    "10gige": {"alpha": 6e-6, "beta": 1 / 117.7e6},
    "unshaped": {"alpha": 6e-6, "beta": 1e-11},
    "ideal": {"alpha": 1e-10, "beta": 1e-14},
}
NODE = experiment.read_testbed("scale_model")["node"]["flop_s"]


def share(point):
    """HPL's efficiency by the law of its messages."""
    settings = [float(point[name]) for name in ("N", "NB", "P", "Q")]
    x = np.array([*settings, NODE])[:, None]
    return float(find("hpl_messages").function(x, **PLANTED[point["interconnect"]])[0])


@pytest.fixture(scope="module")
def study():
    """Four blocks with little scatter, beside the simulation of the same cases and of more nodes."""
    ran = run("hpl_scaling", share, blocks=4, noise=0.001)
    return hpl_laws.analyse(ran, run("hpl_agreement", share, blocks=1))


def test_the_links_rates_come_back_from_hpls_times(study):
    """Within 5 % of what was set, by the law that has the most weight; the constant misses GigE."""
    assert set(study.recovered.index) == {"gige", "10gige"}
    for network, row in study.recovered.iterrows():
        assert study.followed(network).model.name == "hpl_messages"
        assert row.estimate == pytest.approx(1 / PLANTED[network]["beta"], rel=0.05)
        assert row.low < row.estimate < row.high and row.rate == pytest.approx(
            1 / PLANTED[network]["beta"], rel=0.001
        )
    assert study.laws["gige", "constant"].verdict == "misses its data"


def test_more_nodes_are_foretold(study):
    """From up to 8 nodes those on 16, said with its number."""
    assert (study.seen, study.most) == (8, 16)
    row = study.foretold.loc["gige", "hpl_messages"]
    assert abs(row.error) < 0.005 and row.low <= row.error <= row.high
    assert abs(study.foretold.error["gige", "constant"]) > 0.05
    told = words(hpl_laws, study)
    assert "foretell the efficiency on 16 with an error of" in told
    found = {one.statement: one for one in hpl_laws.findings(study)}
    ratio = found["HPL's times tell the rate of GigE's links, over the set rate"]
    assert ratio.estimate == pytest.approx(1, abs=0.05)


def test_without_a_simulation_or_a_law_nothing_is_made_up(study):
    """Where runs scatter by a third no law is quoted."""
    alone = hpl_laws.analyse(study.dataset)
    assert alone.simulated is None
    assert hpl_laws.figures(alone)["laws"].figure.axes
    few = hpl_laws.analyse(run("hpl_scaling", lambda point: 0.9 - 0.2 * (point["nodes"] == 8)))
    assert "cannot be said" in words(hpl_laws, few)


def test_a_campaigns_folder_is_fitted_from_the_command_line(study, tmp_path):
    """As JSON, with every law of every network; a campaign is fitted as a whole, and one without HPL is refused."""
    reference = "hpl_scaling-scale_model"
    said = json.loads(command_line.run("fit", reference).stdout)
    assert {row["law"] for row in said["laws"]} >= {"constant", "amdahl", "hpl_messages"}
    assert {row["interconnect"] for row in said["parameters"]} == {"gige", "10gige", "unshaped"}
    for words_, reason in (
        (("fit", "amdahl", reference), "without a model's name"),
        (("fit", "tcp_mtu-paths"), "holds no HPL trial"),
    ):
        ended = command_line.run(*words_)
        assert ended.returncode != 0 and reason in ended.stderr
        assert "Traceback" not in ended.stderr
