"""HPL beside daemons: planted losses and amplifications come back, and few blocks decide
nothing.
"""

import numpy as np
import pytest
from executed import executed, words
from shown import failed
from synthetic import DAEMONS, TAKEN
from synthetic_studies import AMPLIFICATION, RARITY, noise_campaign

from analysis.quoting import as_written

NODES = list(AMPLIFICATION)


def planted(frequency):
    """The amplifications of a daemon of so many pauses a second, over NODES."""
    return np.array([AMPLIFICATION[n] * RARITY[frequency] for n in NODES])


def test_planted_losses_come_back():
    """Without scatter, losses and amplifications are the planted ones of every daemon."""
    made = executed("42", hpl_noise=noise_campaign(blocks=2, noise=0, block_effect=0.1))
    asked = dict(zip(made.names["daemons"].index, made.names["daemons"].values.tolist()))
    expected = {name: [*of] for name, of in DAEMONS.items() if name != "none"}
    assert [*asked.items()] == [*expected.items()]
    stated = {as_written(one.subject): one.estimate for one in made.statements}
    for name, (share, frequency) in asked.items():
        times = planted(frequency)
        lost = 1 - (1 + TAKEN * share) ** -times
        np.testing.assert_allclose(made.names["loss"].sel(daemon=name), lost)
        assert stated[f"What a daemon of {name} costs HPL on 16 nodes"] == pytest.approx(lost[-1])
        assert made.names["amplifications"][name][0] == pytest.approx(times[-1])
    assert "9.00 times what a single node loses" in words(made) and set(made.figures) == {"noise"}


def test_intervals_hold_the_planted_amplification():
    """Of noisy campaigns, Fieller's 95 % intervals miss few."""
    held = []
    for seed in range(3):
        made = executed("42", hpl_noise=noise_campaign(blocks=4, noise=0.02, seed=seed))
        for name, (_, low, high) in made.names["amplifications"].items():
            held.append(low <= planted(DAEMONS[name][1])[-1] <= high)
    assert np.mean(held) > 0.9


def test_the_growth_of_the_loss_is_judged():
    """Sixteen nodes lose four and a half times what one loses, or as much; Holm corrects all but
    the planned one.
    """
    made = executed("42", hpl_noise=noise_campaign(blocks=6, noise=0.005, seed=2))
    subject = "A daemon of 5 % at 100 Hz costs more on 16 nodes than on 2"
    growth = {as_written(statement.subject): statement for statement in made.statements}[subject]
    assert growth.primary and growth.answer == "yes"
    assert growth.estimate == pytest.approx(1 - 1.045**-3.5, abs=0.01)
    assert "delays all" in words(made)
    little = noise_campaign(blocks=6, noise=0.005, amplification=dict.fromkeys(NODES, 0.3))
    made = executed("42", hpl_noise=little)
    growths = [statement for statement in made.statements if statement.quantity == "fall"]
    assert {growth.words for growth in growths} == {"flat"}
    primary = [as_written(growth.subject) for growth in growths if growth.primary]
    planned = ["5 % at 10 Hz", "5 % at 100 Hz"]
    assert primary == [f"A daemon of {name} costs more on 16 nodes than on 2" for name in planned]
    assert "delays all" not in words(made)


def test_a_failed_run_is_left_out():
    """A run with a daemon costs it one block, one without costs every daemon one; what was taken in
    it does not count.
    """
    name = "5 % at 10 Hz"
    dataset = noise_campaign(blocks=4, failed={(1, "10gige", 16, name), (2, "10gige", 4, "none")})
    bad = (dataset.block == 1) & (dataset.nodes == 16) & (dataset.daemon == name)
    paused = dataset.pace_paused.where(~bad, 1e6)
    made = executed("42", hpl_noise=dataset.assign(pace_paused=paused))
    blocks = made.names["means"].blocks
    assert blocks.sel(daemon="1 % at 10 Hz").values.tolist() == [4, 3, 4, 4]
    assert blocks.sel(daemon=name).values.tolist() == [4, 3, 4, 3]
    assert made.names["amplifications"][name][0] == pytest.approx(9, rel=0.3)


def test_without_a_reading_nothing_is_said_in_numbers():
    """All trials failed: no loss is made up."""
    made = executed("42", hpl_noise=failed(noise_campaign(blocks=2), "no library"))
    assert {one.estimate for one in made.statements} == {None} and words(made)
