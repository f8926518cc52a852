"""Every finding as data: the studies' own numbers, with what they rest on, readable by any JSON reader."""

import json
from functools import cache

import pytest
from synthetic import campaign, sequential_campaign
from synthetic_smith import smith_campaign
from synthetic_studies import blas_campaign, noise_campaign, size_campaign

from analysis import summary
from analysis.studies import together


@cache
def planted():
    """Studies of several campaigns, and of a run of today."""
    datasets = {
        "hpl_scaling": sequential_campaign(noise=0.003),
        "hpl_size": size_campaign(blocks=4),
        "hpl_noise": noise_campaign(blocks=4),
        "hpl_blas": blas_campaign(blocks=4),
        "hpl_paper": smith_campaign("hpl_paper"),
    }
    quick = sequential_campaign(blocks=3, noise=0.003, seed=5, looks=(3,), one_sided=0.04)
    again = smith_campaign("hpl_paper", {"nodes": [2, 4]})
    return together.analyse(datasets, {"hpl_scaling": quick, "hpl_paper": again})


def found(**wanted):
    """The findings of these fields, as they are in the file."""
    data = json.loads(summary.text(planted()))["findings"]
    return [it for it in data if all(it[name] == value for name, value in wanted.items())]


def test_primary_statements_are_the_contrasts():
    """In their order, with answer, estimate, interval, its kind, n, evidence and digest."""
    primary = found(experiment="hpl_scaling", primary=True)
    assert [it["answer"] for it in primary] == ["falls off", "flat", "flat"]
    for it, contrast in zip(primary, planted().scaling.contrasts):
        assert it["estimate"] == contrast.verdict.fall and tuple(it["interval"]) == contrast.verdict.interval
        assert it["n"] == 9 and it["n_of"] == "block" and it["interval_kind"] == "96 % t interval over the blocks"
        assert it["evidence"] == "emulated" and it["digest"] == "0" * 64 and it["campaign"] == "hpl_scaling"
    assert primary[0]["statement"] == "GigE falls against 10GE from 2 to 8 nodes"


def test_today_says_whether_it_reproduces():
    """A run of the same truth does; what it has no node counts for is not judged."""
    primary = found(experiment="hpl_scaling", primary=True)
    assert primary[0]["today"]["answer"] == "reproduced" and primary[0]["today"]["n"] == 3
    assert primary[0]["today"]["reference_ratio"] == pytest.approx(1 - primary[0]["estimate"])
    (paper,) = found(experiment="hpl_paper", primary=True)
    assert paper["today"]["answer"] == "reproduced" and paper["interval"] is None and paper["evidence"] == "simulated"


def test_every_study_is_heard():
    """Noise, library, size and paper have findings; what needs other data has none."""
    assert {it["experiment"] for it in found()} == {"hpl_scaling", "hpl_size", "hpl_noise", "hpl_blas", "hpl_paper"}
    growths = [it for it in found(experiment="hpl_noise") if it["quantity"] == "fall"]
    assert [it["estimate"] for it in growths] == [daemon.growth.fall for daemon in planted().noise.daemons]
    assert all(it["answer"] for it in found(quantity="fall")) and all(it["statement"] for it in found())


def test_one_block_has_no_made_up_numbers():
    """What is not known is null: the file holds neither NaN nor infinity."""
    studies = together.analyse({"hpl_scaling": campaign(blocks=1), "hpl_noise": noise_campaign(blocks=1)})
    data = json.loads(summary.text(studies))["findings"]
    assert data and all(it["interval"] is None and it["interval_kind"] == "" for it in data)
