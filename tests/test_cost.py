"""What simulations take: a planted law comes back, and too few trials make no law."""

import re

import numpy as np
import pytest
from synthetic import campaign
from synthetic_simulations import RPEAK, simulated

from analysis import style, wording
from analysis.facts import cost as facts
from analysis.figures import cost as figures
from analysis.publish import to_html
from analysis.studies import cost

GRIDS = {4: (2, 2), 8: (2, 4), 16: (4, 4), 32: (4, 8), 64: (8, 8)}
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


def taken(scatter=0.0, nodes=tuple(GRIDS)):
    """A simulated campaign over two N and several grids; CPU times scatter by so much on the log scale."""
    factors = {"interconnect": ["10gige"], "nodes": list(nodes), "N": [20000, 80000]}
    dataset = simulated("hpl_paper", {"factors": factors}, lambda point: RPEAK * point["nodes"], "smith")
    rows = np.array([GRIDS[int(n)][0] for n in dataset.nodes.values])
    grown = np.exp(np.random.default_rng(4).normal(0, scatter, len(rows))) * cost.searches(rows)
    return dataset.assign_coords(P=dataset.P.copy(data=rows)).assign(
        simulator_cpu_time=dataset.simulator_cpu_time * grown,
        payload_messages=dataset.payload_messages * cost.searches(rows)[:, None],
    )


STUDY = cost.analyse([taken()])


def section(study):
    template = wording.templates().get_template("cost.md.j2")
    return template.render(cost=facts.collect(study)).replace("\u00a0", " ")


def test_the_planted_law_comes_back():
    """CPU time that is 1e-4 N searches(P) has exponents of 1, and the law gives each trial its time."""
    law = STUDY.law
    assert (law.order, law.grid) == pytest.approx((1, 1)) and law.scale == pytest.approx(1e-4)
    foretold = law.cpu_time(STUDY.trials.N, STUDY.trials.P)
    np.testing.assert_allclose(foretold, STUDY.trials.simulator_cpu_time)


def test_scatter_widens_the_intervals_around_the_truth():
    """With 20 % of scatter the error is about that, and the intervals hold the planted exponents."""
    law = cost.analyse([taken(scatter=0.2)]).law
    assert 0.1 < law.typical_error < 0.4
    for low, high in (law.order_interval, law.grid_interval):
        assert low < 1 < high and high - low > 0.05


def test_memory_grows_by_the_planted_slope():
    """Each node adds 10 MB to what the simulator has without any."""
    assert STUDY.memory.value == pytest.approx(1e7)


def test_only_simulations_that_say_what_they_took_count():
    """An emulated campaign adds no trial, nor does a simulation without its CPU time."""
    silent = taken().assign(simulator_cpu_time=lambda it: it.simulator_cpu_time * np.nan)
    assert len(cost.analyse([campaign(blocks=1), silent, taken()]).trials) == len(STUDY.trials) == 10


def test_a_start_up_is_no_part_of_the_law():
    """Runs so short that they are mostly start-up are shown, and change neither law nor messages a second."""
    short = taken().assign(simulator_cpu_time=lambda it: 0 * it.simulator_cpu_time + 0.06)
    study = cost.analyse([taken(), short])
    assert len(study.trials) == 20 and study.law == STUDY.law
    known = facts.collect(study)
    assert known["least_cpu_time"] == pytest.approx(0.06)
    assert known["messages_per_second"] == pytest.approx(1000)


def test_too_few_trials_make_no_law():
    """Nothing is fitted to a handful of trials, to a single grid or to no dataset."""
    assert cost.analyse([taken(nodes=(4, 16))]) is None
    assert cost.analyse([taken(nodes=(4, 8))] * 3) is None
    assert cost.analyse([]) is None


def test_facts_are_those_of_the_trials():
    """The largest case, the messages in a second and the total are the planted ones."""
    known = facts.collect(STUDY)
    assert (known["largest"]["nodes"], known["largest"]["N"]) == (64, 80000)
    assert known["messages_per_second"] == pytest.approx(1000)
    assert known["campaigns"][0]["cpu_time"] == pytest.approx(STUDY.trials.simulator_cpu_time.sum())


def test_trials_without_memory_or_messages_have_a_law_only():
    """What was not recorded is said nowhere."""
    bare = taken()
    gone = {name: bare[name] * np.nan for name in ("simulator_memory", "payload_messages")}
    study = cost.analyse([bare.assign(gone)])
    known = facts.collect(study)
    assert study.memory is known["messages_per_second"] is known["largest"]["memory"] is None
    assert not re.search(r"\b(nan|None)\b", section(study))


def test_the_section_becomes_a_page(tmp_path):
    """The figure shows every trial twice, and the table stands beside it."""
    drawn = figures.draw(STUDY)
    over_nodes, _ = drawn["simulator_cost"].axes
    np.testing.assert_allclose(
        np.sort(over_nodes.lines[0].get_ydata()), np.sort(STUDY.trials.simulator_cpu_time)
    )
    style.save_all(drawn, tmp_path / "figures")
    page = to_html(FRONT + section(STUDY), tmp_path)
    assert page.count("<img") == 1 and page.count("<table") == 1
