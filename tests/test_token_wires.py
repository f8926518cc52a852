"""What wires carry together is known for every path of the token campaign, whose design speaks of its own paths."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_token import CAMPAIGN, PATHS

import experiment
from analysis.token_wires import pairs_of, sum_limit, token_limit


def limits(path, token_bytes, *counts):
    """What so many pairs of a path can write together [B/s]."""
    return [token_limit(PATHS[path], pairs_of(CAMPAIGN["settings"], count), token_bytes) for count in counts]


@pytest.mark.parametrize(
    ("path", "pairs", "wires"),
    [
        ("shared_wire_10m", 7, 1),
        ("local_wire_10m", 3, 3),
        ("local_router_10m", 7, 7),
        ("remote_switch_10m", 3, 2),  # the second pair has a wire with each of the others
        ("remote_switch_10m", 7, 3.5),
        ("bonded_10m", 7, 14),
        ("bonded_switch_10m", 7, 4),
        ("bonded_shared_10m", 7, 2),
    ],
)
def test_what_wires_carry_together(path, pairs, wires):
    """Tokens and their returns share each wire, whoever sends: so many wires full is the most."""
    assert sum_limit(PATHS[path], pairs_of(CAMPAIGN["settings"], pairs)) == pytest.approx(wires * 1e7 / 2)


@given(pairs=st.integers(2, 7), token_bytes=st.integers(1, 2**22), path=st.sampled_from(CAMPAIGN["factors"]["path"]))
@settings(max_examples=30, deadline=None)
def test_more_pairs_can_carry_more_and_never_more_than_alone(pairs, token_bytes, path):
    """The limit grows with pairs, by no more than one pair has alone, and leaves room for all framing."""
    one, fewer, all_of_them = limits(path, token_bytes, 1, pairs - 1, pairs)
    assert fewer * (1 - 1e-9) <= all_of_them <= (fewer + one) * (1 + 1e-9)
    assert all_of_them < sum_limit(PATHS[path], pairs_of(CAMPAIGN["settings"], pairs)) / 8


def test_the_design_speaks_of_its_own_paths():
    """Every path has one topology, what is added is told against one of them, and ranges are ranges."""
    design = CAMPAIGN["design"]
    listed = [path for paths in design["topologies"].values() for path in paths]
    assert sorted(listed) == sorted(CAMPAIGN["factors"]["path"]) and design["added"]["against"] in design["topologies"]
    assert all(claim["at_least"] < claim["at_most"] for claim in design["claims"].values())


def test_the_presets_keep_their_time():
    """With 3 s for all but the windows of a trial quick takes 75 s at most, with 2 s full 40 minutes."""
    for preset, other, most in (("quick", 3, 75), ("full", 2, 2400)):
        trials = experiment.plan_campaign("token_exchange", preset=preset).trials()
        windows = sum(it.point["runs"] * (it.point["warm_up_s"] + it.point["window_s"]) for it in trials)
        assert windows + other * len(trials) <= most
