"""The laws of a campaign's efficiency, what they recover and predict; and the chain from the scale model to the paper."""

import json

import command_line
import numpy as np
import pytest
from shown import words
from synthetic_scale_model import run

import experiment
from analysis.experiments import hpl_chain, hpl_laws
from analysis.models import find
from runners.record import FalloffError

# s and s/B: the scale model's messages, and its links' payload at its described rates.
PLANTED = {
    "gige": {"alpha": 4e-4, "beta": 1 / 117.7e3},
    "10gige": {"alpha": 6e-5, "beta": 1 / 1294.6e3},
    "unshaped": {"alpha": 6e-5, "beta": 1e-9},
    "ideal": {"alpha": 1e-9, "beta": 1e-12},
}
NODE = experiment.read_testbed("fortinet_model")["node"]["flop_s"]


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


def test_more_nodes_are_predicted(study):
    """From up to 16 nodes those on 36, and on 256 what is simulated there; both are said with their numbers."""
    assert (study.seen, study.most) == (16, 36)
    row = study.predicted.loc["gige", "hpl_messages"]
    assert abs(row.error) < 0.005 and row.low <= row.error <= row.high
    assert abs(study.predicted.error["gige", "constant"]) > 0.05
    told = words(hpl_laws, study)
    assert "predict the efficiency on 36 with an error of" in told
    assert "For 256 nodes the law of HPL's messages predicts" in told
    assert told.count("error of") == 1 and "follow the law of HPL's messages" in hpl_laws.in_short(
        study
    )
    found = {one.statement: one for one in hpl_laws.findings(study)}
    ratio = found["The rate of GigE's links from HPL's times, over the set rate"]
    assert ratio.estimate == pytest.approx(1, abs=0.05)


def test_without_a_simulation_or_a_law_nothing_is_made_up(study):
    """No word on 256 nodes; where runs scatter by a third no law is quoted."""
    alone = hpl_laws.analyse(study.dataset)
    assert alone.simulated is None and "256" not in words(hpl_laws, alone)
    assert hpl_laws.figures(alone)["laws"].figure.axes
    few = hpl_laws.analyse(run("hpl_scaling", lambda point: 0.9 - 0.2 * (point["nodes"] == 8)))
    assert "cannot be said" in words(hpl_laws, few)


def test_a_campaigns_folder_is_fitted_from_the_command_line(study, tmp_path):
    """As JSON, with every law of every network; a campaign is fitted as a whole, and one without HPL is refused."""
    reference = "hpl_scaling-fortinet_model"
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


def chain(missing=()):
    """Steps of which each takes a point off GigE's fall."""

    def of_step(point):
        if (point["step"], point["nodes"]) in missing:
            return np.nan
        steps = list(hpl_chain.STEPS)
        lost = 0.12 - 0.01 * steps.index(point["step"])
        fall = (
            lost * np.log(point["nodes"] / 2) / np.log(18) if point["interconnect"] == "gige" else 0
        )
        return 0.9 * (1 - fall)

    return run("hpl_chain", of_step, blocks=1)


def test_every_step_of_the_chain_has_its_part():
    """The ends, each step's part, and what the emulation has."""
    study = hpl_chain.analyse(chain(), run("hpl_scaling", share, blocks=2))
    assert study.most == 36
    assert list(study.parts.values()) == pytest.approx([-0.01] * 5, abs=1e-6)
    told = words(hpl_chain, study)
    assert "12.0 % from 2 to 36 nodes" in told and "7.0 % at the paper's size" in told
    assert told.count("\u22121.0 by") == 5 and "Emulated, the fall is" in told
    found = list(hpl_chain.findings(study))
    assert [one.primary for one in found] == [True, *[False] * 4, True]
    assert hpl_chain.figures(study)["chain"].figure.axes


def test_a_chain_with_a_case_missing_says_so():
    """And a campaign without steps is refused."""
    assert "cannot be said" in words(hpl_chain, hpl_chain.analyse(chain({("scale_model", 36)})))
    with pytest.raises(FalloffError, match="needs the factor step"):
        hpl_chain.analyse(run("hpl_scaling", share, blocks=1))
