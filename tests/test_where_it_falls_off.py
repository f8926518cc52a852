"""Where HPL falls off: the plane of losses over a node's rate and memory, and what was found."""

import numpy as np
import pandas as pd
import pytest
from executed import executed, words

from analysis.laws.ping_pong import Curve
from analysis.subjects import hpl_loss
from analysis.subjects.cluster_model import ClusterModel

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def made():
    """The notebook, which reads nothing but what is stored."""
    return executed("61")


def test_the_plane_is_the_law_at_the_papers_cases(made):
    """On the paper's nodes, to half a point: its smallest matrix fills a little less of a node than
    its largest, and of the panels others are computed."""
    names = made.names
    paper = pd.DataFrame({"N": [60000, 260000], "NB": 128, "P": [1, 6], "Q": [2, 6]})
    for curve in names["NETWORKS"]:
        latency, bandwidth = costs = names["ends"](curve)
        line = Curve(np.array([0, 1e9]), np.array([latency, latency + 1e9 / bandwidth]))
        model = ClusterModel(line, line, 39.67e9)
        few, most = model.rates(paper) / [2, 36]
        plane = hpl_loss.loss(np.array([39.67e9]), np.array([8 * 260000**2 / 36]), *costs)
        assert plane.item() == pytest.approx(1 - most / few, abs=0.004), curve


def test_more_is_lost_on_faster_nodes_with_less_memory(made):
    """And on a slower network, unless most is lost: there, two nodes already wait all the time."""
    planes = made.names["planes"]
    for plane in planes.values():
        # Of large matrices only some panels are computed: a tenth of a point is no loss
        assert (np.diff(plane, axis=0) > 0).all() and (np.diff(plane, axis=1) < 0.001).all()
        assert (0 < plane).all() and (plane < 1).all()
    networks = [*planes.values()]
    for slow, fast in zip(networks, networks[1:]):
        assert (slow > fast)[slow < 0.7].all() and (slow > fast - 0.01).all()


def test_a_limit_is_where_so_much_is_lost(made):
    """Named in the first sentence, whose statement the first page shows."""
    names = made.names
    for lost in (0.05, 0.1):
        limits = names["limits"](lost, 64e9)
        for curve, limit in zip(names["NETWORKS"], limits):
            if limit > 0:
                there = np.array([1e9 * limit]), np.array([64e9])
                found = hpl_loss.loss(*there, *names["ends"](curve)).item()
                assert found == pytest.approx(lost, rel=0.01)
    assert names["limits"](0.1, 64e9).isna().tolist() == [False, False, False, True]
    first, *others = made.statements
    assert (
        first.primary
        and str(first).replace("\u00a0", " ") in words(made)
        and not any(one.primary for one in others)
    )


def test_what_was_found_stands_beside_the_law(made):
    """Every loss is of the source's own rates: Taurus reaches 382.3 Gflop/s on 12 nodes."""
    found = made.names["found"].set_index("cluster")
    taurus = found.loc["Taurus (Grid'5000)"]
    assert taurus.lost == pytest.approx(100 * (1 - 382.3 / 12 / (190.3 / 4)))
    assert taurus.memory == pytest.approx(8e-9 * 20000**2 / 12)
    assert (found.by_law - found.lost).abs().max() < 4 and found.by_law.notna().sum() == 7
    panels = made.figures["falls_where"].figure.axes
    drawn = [text.get_text() for panel in panels for text in panel.texts]
    assert len(drawn) == 6 and "Taurus, 33 %" in drawn
