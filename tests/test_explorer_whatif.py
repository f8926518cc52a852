"""What if: the prediction where the answer is known, and whatever one may type."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import experiment
from analysis.experiments import payoff
from analysis.explorer import whatif


def test_what_if_agrees_with_the_simulation_and_with_the_report():
    """On simulated networks the prediction is the simulation's, and GigE stops paying where the study has it."""
    basis = whatif.basis()
    slow, fast = basis.networks["gige"], basis.networks["10gige"]
    answer = whatif.predict(basis, fast, slow)
    np.testing.assert_allclose(
        answer.other, basis.cases.efficiency.sel(interconnect="gige"), rtol=1e-6
    )
    campaigns = ("hpl_paper", "hpl_sensitivity", "hpl_beyond")
    study = payoff.analyse(*(experiment.stored(name, "smith") for name in campaigns))
    assert answer.pays_from == float(study.from_nodes.value)
    assert 0 < whatif.largest_error() < 0.1


@settings(deadline=None)  # the first example reads the basis
@given(bandwidth=st.floats(1e7, 2e10), latency=st.floats(1e-6, 2e-4), price=st.floats(0, 5000))
def test_what_if_is_monotonous_in_price_and_stays_an_efficiency(bandwidth, latency, price):
    """Whatever is asked, an efficiency is between 0 and 1, and a dearer network never pays earlier."""
    basis = whatif.basis()
    cheap, dear = (
        whatif.predict(
            basis, whatif.Network(bandwidth, latency, price + more), basis.networks["gige"]
        )
        for more in (0, 500)
    )
    assert ((cheap.yours > 0) & (cheap.yours < 1.1)).all()
    assert dear.pays_from >= cheap.pays_from and dear.premium > cheap.premium
