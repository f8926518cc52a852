"""The fan-out: the planted knee and limit are found, answers follow the data, and what cannot be
known is said.
"""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed, words
from shown import failed
from synthetic_paths import fan_out_campaign, without

from analysis.subjects.fan_out import CHANGES, bottleneck


def run(dataset):
    """The notebook on a campaign."""
    return executed("51", fan_out=dataset)


@cache
def planted():
    """The notebook on six blocks as they are planted."""
    return run(fan_out_campaign(blocks=6))


def answers(made):
    return {one.answer for one in made.statements}


def test_the_bridge_and_the_knee_are_found_in_both_directions():
    """3 Gbit/s between ports of 1, full at the third receiver; what it does not say is said too."""
    assert [one.subject for one in planted().statements] == [
        f"The bridge limits flows {way}, from this many on (set: 3)"
        for way in ("from one sender", "to one receiver")
    ]
    names = planted().names
    for one, direction in zip(planted().statements, ("forward", "reverse")):
        assert one.words == "yes" and one.primary and one.n == 6
        assert names["verdicts"][direction].limit == "shared bridge"
        assert names["models"][direction].follows
        assert one.estimate == pytest.approx(3, rel=0.02)
        assert one.interval[0] < one.estimate < one.interval[1]
        assert names["growth"][direction][0] == pytest.approx(0, abs=0.02)
    text = words(planted())
    assert "What limits 5 flows from one sender: shared bridge" in text
    assert "does not say what limited the source" in text


def test_what_the_sum_gains_beyond_the_knee_is_said():
    """One block shows no limit; what gains 40 % a doubling says so."""
    single = run(fan_out_campaign(blocks=1))
    assert answers(single) == {"undecided"}
    assert {one.interval for one in single.statements} == {None}
    dataset = fan_out_campaign(blocks=4)
    more = np.maximum(dataset.receivers / 3, 1) ** 0.5
    growing = run(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * more))
    assert growing.names["growth"]["forward"][0] == pytest.approx(2**0.5 - 1, abs=0.03)
    assert "a doubling of the flows adds 41" in words(growing).replace("\n", " ")


def test_a_model_that_misses_its_data_names_no_knee():
    """A sum that loses a quarter at the end is no segmented line: its knee is in the data and not
    in the words.
    """
    dataset = fan_out_campaign(blocks=4, noise=0.001)
    lost = np.where(dataset.receivers == 7, 0.75, 1.0)
    made = run(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * lost))
    assert not any(model.follows for model in made.names["models"].values())
    assert "Beyond the knee" not in words(made)
    assert {one.reason for one in made.statements} == {"the model misses its data"}


def test_what_no_single_change_relieves_is_undecided_and_another_limit_is_no():
    """A processor that is slower than the bridge, whose relief is not among the changes; ports that
    are.
    """
    made = run(fan_out_campaign(capacities={"cpu": 2e9}))
    assert answers(made) == {"undecided"}
    assert made.statements[0].estimate == pytest.approx(2 / 0.9415, rel=0.02)
    assert "What limits 5 flows from one sender: undecided" in words(made)
    dataset = fan_out_campaign(blocks=4)
    # Faster ports carry more than the baseline, a faster bridge carries no more.
    factor = xr.where(dataset.path == "fanout_fast_ports", 1.6, 1.0)
    factor = xr.where(dataset.path == "fanout_fast_bridge", 0.6, factor)
    ports = run(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * factor))
    assert {verdict.limit for verdict in ports.names["verdicts"].values()} == {"link"}
    assert answers(ports) == {"no"}


@pytest.mark.more
def test_failed_trials_are_left_out_of_the_ratios():
    """A block without its baseline does not count, the others do; without any nothing is judged."""
    dataset = fan_out_campaign(blocks=6)
    made = run(without(dataset, block=2, path="fanout_3g", receivers=5, streams=1))
    responses = made.names["verdicts"]["forward"].responses.values()
    assert all(np.isfinite(response.low) for response in responses)
    assert made.statements[0].n == 5 and made.statements[0].answer == "yes"
    assert "2 of 432 trials gave no reading" in words(made)
    none = run(failed(dataset, "no library"))
    assert {one.estimate for one in none.statements} == {None} and "no library" in words(none)
    assert answers(none) == {"undecided"}


def test_the_figure_shows_every_run():
    """Each direction's runs at the baseline are marks of its panel."""
    made = planted()
    goodput = made.names["at_baseline"] / 1e9
    panels = made.figures["fan_out"].figure.axes
    for axes, way in zip(panels, goodput.direction.values):
        drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        for value in goodput.sel(direction=way).values.ravel():
            assert np.isclose(drawn, value).any()


@pytest.mark.parametrize(
    ("ratios", "limit", "said"),
    [
        ({"receiver": 1, "port": 2, "bridge": 1}, "link", "grows by 100"),
        ({"receiver": 1.3, "port": 2, "bridge": 1}, "link", "grows by 100"),
        ({"receiver": 1.3, "port": 1, "bridge": 1}, "receiver", "grows by 30"),
        ({"stream": 1.5, "port": 1}, "single stream", "more streams"),
        (dict.fromkeys(CHANGES, 1), "undecided", "two limits are equal"),
        ({"port": 2, "bridge": 1.5, "stream": 1}, "undecided", "there is not one limit"),
        ({}, "undecided", "nothing that was tried"),
    ],
)
def test_the_rule(ratios, limit, said):
    """Each case of the rule, with its reason."""
    changed = {change: np.full(10, ratio * 1e9) for change, ratio in ratios.items()}
    found = bottleneck(np.full(10, 1e9), changed)
    assert (found.limit, said in found.reason) == (limit, True), found.reason


def test_failed_repeats_are_left_out_in_pairs():
    """NaN in either of a pair removes the pair; one that is left decides nothing, and none has no
    ratio.
    """
    found = bottleneck([1e9, np.nan, 1e9, 1e9], {"port": [2e9, 9e9, np.nan, 2e9]})
    assert found.limit == "link" and found.responses["port"].ratio == pytest.approx(2)
    single = bottleneck([1e9], {"port": [2e9]})
    assert single.limit == "undecided" and single.responses["port"].ratio == pytest.approx(2)
    assert bottleneck([np.nan], {"port": [1e9]}).responses["port"].says == "unclear"
