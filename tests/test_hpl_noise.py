"""HPL beside daemons: planted losses and amplifications come back, and few blocks decide nothing."""

from functools import cache

import numpy as np
import pytest
from shown import words
from synthetic import DAEMONS, TAKEN
from synthetic_studies import AMPLIFICATION, RARITY, noise_campaign

from analysis.experiments import hpl_noise

NODES = list(AMPLIFICATION)


@cache
def noisy_study():
    """Six blocks with scatter."""
    return hpl_noise.analyse(noise_campaign(blocks=6, noise=0.005, seed=2))


def planted(frequency):
    """The amplifications of a daemon of so many pauses a second, over NODES."""
    return np.array([AMPLIFICATION[n] * RARITY[frequency] for n in NODES])


def test_planted_losses_come_back():
    """Without scatter, losses and amplifications are the planted ones of every daemon, and the finding has them."""
    study = hpl_noise.analyse(noise_campaign(blocks=2, noise=0, block_effect=0.1))
    asked = dict(zip(study.daemons.index, zip(study.daemons.share, study.daemons.frequency)))
    assert list(asked.items()) == [each for each in DAEMONS.items() if each[0] != "none"]
    for name, (share, frequency) in asked.items():
        times, losses = planted(frequency), study.losses.sel(daemon=name)
        np.testing.assert_allclose(losses.ratio, (1 + TAKEN * share) ** -times)
        assert study.amplification(name)[0] == pytest.approx(times[-1])
    assert "in 10 pauses a second (Hz) costs HPL 32.7 % of its rate on 16 nodes" in words(
        hpl_noise, study
    )
    assert "18.0 % at 100 Hz and 9.4 % at 1000 Hz" in words(hpl_noise, study)
    assert "9.00 times what a single node loses" in words(hpl_noise, study)


def test_intervals_hold_the_planted_amplification():
    """Of noisy campaigns, Fieller's 95 % intervals miss few."""
    held = []
    for seed in range(3):
        study = hpl_noise.analyse(noise_campaign(blocks=4, noise=0.02, seed=seed))
        for name, frequency in study.daemons.frequency.items():
            _, low, high = study.amplification(name)
            held.append(low <= planted(frequency)[-1] <= high)
    assert np.mean(held) > 0.9


def test_the_growth_of_the_loss_is_judged():
    """Sixteen nodes lose four and a half times what one loses, or as much; Holm corrects all but the planned one."""
    growth = noisy_study().growths["5 % at 100 Hz"]
    assert noisy_study().primary == "5 % at 100 Hz" and growth.answer == "falls off"
    assert growth.fall == pytest.approx(1 - 1.045**-3.5, abs=0.01)
    assert "The loss to 5 % at 100 Hz grows" in words(
        hpl_noise, noisy_study()
    ) and "delays all" in words(hpl_noise, noisy_study())
    little = dict.fromkeys(NODES, 0.3)
    study = hpl_noise.analyse(noise_campaign(blocks=6, noise=0.005, amplification=little))
    assert {growth.answer for growth in study.growths.values()} == {"flat"}
    planned = [found.statement for found in hpl_noise.findings(study) if found.primary]
    assert len(planned) == 2 and "5 % at 10 Hz" in planned[0] and "5 % at 100 Hz" in planned[1]
    assert "The loss to 5 % at 100 Hz stays level" in words(
        hpl_noise, study
    ) and "delays all" not in words(hpl_noise, study)


def test_a_failed_run_is_left_out():
    """A run with a daemon costs it one block, one without costs every daemon one; what was taken in it does not count."""
    name = "5 % at 10 Hz"
    dataset = noise_campaign(blocks=4, failed={(1, "10gige", 16, name), (2, "10gige", 4, "none")})
    bad = (dataset.block == 1) & (dataset.nodes == 16) & (dataset.daemon == name)
    study = hpl_noise.analyse(dataset.assign(pace_paused=dataset.pace_paused.where(~bad, 1e6)))
    assert study.losses.blocks.sel(daemon="1 % at 10 Hz").values.tolist() == [4, 3, 4, 4]
    found = study.losses.sel(daemon=name)
    assert found.blocks.values.tolist() == [4, 3, 4, 3]
    assert study.amplification(name)[0] == pytest.approx(9, rel=0.3)
