"""Beyond the paper's cluster: planted efficiencies and gains come back, the margin divides, gaps
are said.
"""

from itertools import product

import numpy as np
import pytest
from executed import executed, stated, words
from synthetic_hpl_paper import smith_campaign

from analysis.dataset.derive import at_only_level, points
from analysis.statements.efficiency import losses

REACHED = {"gige": 0.66, "gige_bonded": 0.73, "10gige": 0.79, "ddr_infiniband": 0.80}  # on 36 nodes
NODES = [36, 72, 144, 256]


def planted(kept=None, networks=tuple(REACHED), **chance):
    """Efficiencies over nodes; `kept` maps a network to the part of REACHED that is left on 256."""
    kept = {"gige": 0.90} if kept is None else kept

    def reached(network, n, _):
        return REACHED[network] * kept.get(network, 1.0) ** (np.log(n / 36) / np.log(256 / 36))

    factors = {"interconnect": list(networks), "nodes": NODES}
    return smith_campaign("hpl_larger", factors, reached, **chance)


def test_planted_efficiencies_and_gains_come_back():
    """On 36 nodes each network has what was planted; on the most GigE has lost a tenth of it; each
    case is a mark.
    """
    made = executed("47", hpl_larger=planted())
    reached, ratios = made.names["reached"], made.names["ratios"]
    at = reached.sel(nodes=36)
    np.testing.assert_allclose(at, [REACHED[name] for name in at.interconnect.values])
    gige = stated(made, "GigE loses efficiency from 36 to 256")
    assert gige.estimate == pytest.approx(0.1) and gige.words == "falls off" and gige.primary
    infiniband = REACHED["ddr_infiniband"] / REACHED["10gige"]
    np.testing.assert_allclose(ratios["ddr_infiniband"], infiniband)
    assert float(ratios["gige_bonded"].sel(nodes=36)) == pytest.approx(0.73 / 0.66)
    assert "HPL's rate is 1.3 to 1.3 % higher on DDR IB than on 10GE" in words(made)
    (axes,) = made.figures["beyond"].figure.axes
    drawn = np.sort(np.concatenate([line.get_ydata() for line in axes.lines]).astype(float))
    np.testing.assert_allclose(drawn, np.sort(100 * reached.values.ravel()))


@pytest.mark.parametrize(
    ("kept", "applies"), [(0.951, True), (0.949, False), (1.052, True), (1.054, False)]
)
def test_an_efficiency_applies_inside_the_margin(kept, applies):
    """The margin of 5 % divides what applies from what does not, downwards and upwards."""
    hpl = at_only_level(points(planted({"10gige": kept})), "block")
    fall = next(one for one in losses(hpl) if one.subject.startswith("10GE"))
    assert (fall.words == "flat") is applies and fall.estimate == pytest.approx(1 - kept)


def test_a_missing_case_is_said_and_the_next_one_taken():
    """Without 256 nodes the answer is 144's; without a case to compare, or a network, there is
    none.
    """
    made = executed("47", hpl_larger=planted(failed={(1, "10gige", 256), (1, "gige_bonded", 36)}))
    assert stated(made, "10GE loses efficiency from 36 to 144") and stated(
        made, "GigE loses efficiency from 36 to 256"
    )
    assert not any(one.subject.startswith("2 x GigE") for one in made.statements)
    assert "2 of 16 trials gave no reading" in words(made)
    nothing = executed("47", hpl_larger=planted(failed=set(product([1], REACHED, NODES))))
    assert nothing.statements == () and words(nothing)
    few = executed("47", hpl_larger=planted(networks=("gige", "10gige")))
    assert few.names["ratios"]["ddr_infiniband"].size == 0 and words(few)
