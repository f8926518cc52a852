"""Token exchanges in words and pictures: the source's claims have their verdicts, and no number is made up."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_token import token_campaign

from analysis import style, wording
from analysis.facts import token_exchange as facts
from analysis.figures import token_exchange as figures
from analysis.publish import to_html
from analysis.studies import token_claims, token_exchange
from analysis.studies.token_points import Place

TWO = ("local_wire_10m", "bonded_shared_10m")
SLOW = (*TWO, "local_router_10m", "remote_switch_10m", "bonded_switch_10m")
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def noisy_study():
    """The slow paths and two fast ones, with scatter."""
    return token_exchange.analyse(token_campaign(only=(*SLOW, "local_wire_100m", "bonded_shared_100m")))


def section(study):
    """The section's Markdown, hard spaces as spaces and without the escapes of data."""
    template = wording.templates().get_template("token_exchange.md.j2")
    return template.render(token_exchange=facts.collect(study)).replace("\u00a0", " ").replace("\\", "")


def claim_of(study, about, rate=1e7):
    return next(claim for claim in study.claims if claim.about.startswith(about) and claim.rate in (rate, None))


def judged(log_ratios, at_least, at_most):
    """A claim on two paths whose throughputs have these log-ratios in their blocks."""
    places = tuple(Place(name, name, 1e7) for name in ("of", "against"))
    values = np.exp(np.array([log_ratios, np.zeros(len(log_ratios))]))
    throughput = xr.DataArray(values, {"path": ["of", "against"]}, ("path", "block"))
    limit = xr.ones_like(throughput.isel(block=0))
    idle = xr.zeros_like(throughput)
    at = xr.Dataset({"throughput": throughput, "runs": throughput.expand_dims("run"), "limit": limit, "busy": idle})
    asked = {"about": {"of": "of", "against": "against", "at_least": at_least, "at_most": at_most}}
    (claim,) = token_claims.claims(asked, places, at)
    return claim


def test_the_claims_have_their_verdicts():
    """Planted ratios inside and outside the ranges are told apart, at each rate."""
    local = claim_of(noisy_study(), "local wire")
    assert local.kind == "supported" and local.of_wires == pytest.approx(3.5)
    assert local.ratio == pytest.approx(3.5, rel=0.03)
    assert claim_of(noisy_study(), "switched remote").ratio == pytest.approx(1.75, rel=0.03)
    assert claim_of(noisy_study(), "switched and routed").kind == "supported"
    assert claim_of(noisy_study(), "bonded and switched").kind == "contradicted"
    assert [claim.about for claim in noisy_study().claims if claim.rate == 1e8] == [local.about]
    lossy = token_exchange.analyse(token_campaign(only=SLOW, use={"local_wire": 0.5, "bonded_switch": 0.6}))
    assert claim_of(lossy, "local wire").kind == claim_of(lossy, "switched and routed").kind == "contradicted"
    assert claim_of(lossy, "bonded and switched").kind == "supported"


@pytest.mark.parametrize(
    ("use", "busy_s", "kind"),
    [(0.5, 5.8, "host-bound"), (0.5, 3.0, "contradicted"), (0.95, 5.8, "supported")],
)
def test_a_busy_machine_is_no_limit_of_wires(use, busy_s, kind):
    """Of two processors for three seconds nearly all taken, and half of what wires can: that says nothing of them."""
    dataset = token_campaign(only=TWO, use={"local_wire": use})
    dataset = dataset.assign(host_cpu_time=xr.full_like(dataset.host_cpu_time, busy_s))
    study = token_exchange.analyse(dataset)
    local = claim_of(study, "local wire")
    assert local.kind == kind and ("local_wire" in local.reason) == (kind == "host-bound")
    assert ("what contends there" in section(study)) == (kind == "host-bound")


def test_what_was_not_run_is_said():
    """The quick preset has the local wire and the original only: other claims name what is missing."""
    study = token_exchange.analyse(token_campaign(blocks=2, preset="quick"))
    missing = claim_of(study, "switched and routed")
    assert missing.kind == "not run" and missing.reason == "local_router was not run"
    assert claim_of(study, "local wire").kind != "not run"


def test_one_block_decides_nothing():
    """Without an interval every claim that was run is undecided, whatever its ratio."""
    study = token_exchange.analyse(token_campaign(blocks=1, only=SLOW))
    assert {claim.kind for claim in study.claims} == {"undecided", "not run"}  # there is no routed remote path


@given(
    log_ratios=st.lists(st.floats(-2, 2), min_size=2, max_size=6),
    at_least=st.floats(0.2, 2),
    width=st.floats(0.01, 3),
)
@settings(max_examples=60, deadline=None)
def test_no_verdict_against_the_ratio(log_ratios, at_least, width):
    """A supported ratio lies in its range, a contradicted one outside; the wider interval holds the narrower."""
    claim = judged(log_ratios, at_least, at_least + width)
    inside = at_least <= claim.ratio <= at_least + width
    assert claim.kind != "supported" or inside
    assert claim.kind != "contradicted" or not inside
    low, high = claim.interval_95
    assert low <= claim.interval_90[0] <= claim.interval_90[1] <= high


def test_the_best_stands_beside_the_sample():
    """Best, median and number of all runs with the most pairs and the largest token; ratios of bests are theirs."""
    runs = noisy_study().points.runs.sel(pairs=7, token_bytes=8192)
    by_path = {it.place.path: it.runs for it in noisy_study().samples}
    local, original = by_path["local_wire_10m"], by_path["bonded_shared_10m"]
    assert local.n == 6 and local.maximum == pytest.approx(float(runs.sel(path="local_wire_10m").max()))
    assert local.median < local.maximum
    assert {it.busy for it in noisy_study().samples} == {0.25}
    assert claim_of(noisy_study(), "local wire").of_bests == pytest.approx(local.maximum / original.maximum)


@pytest.mark.parametrize(
    "campaign",
    [{"only": TWO}, {"blocks": 1, "only": SLOW}, {"blocks": 2, "preset": "quick"}],
    ids=["three", "one", "quick"],
)
def test_the_section_makes_no_number_up(campaign, tmp_path):
    """However few the data, text, tables and figures are whole."""
    study = token_exchange.analyse(token_campaign(**campaign))
    markdown = section(study)
    assert not any(word in markdown for word in ("nan", "None", "inf "))
    style.save_all(figures.draw(study), tmp_path / "figures")
    assert to_html(FRONT + markdown, tmp_path).count("<img") == 4


def test_what_exceeds_the_wire_is_named():
    """The section says which trials were left out, and says so too where there is none."""
    crowded = (1, "local_wire_10m", 7, 8192)
    said = section(token_exchange.analyse(token_campaign(only=TWO, excess={crowded})))
    assert "exceeds the wire" in said and "local 10M, 7 pairs of 8 KiB, block 1" in said
    assert "In no run does the sum over the pairs exceed" in section(noisy_study())


def test_statements_name_evidence_and_number():
    """The finding says on how many blocks of which kind of evidence it rests, and follows the data."""
    said = wording.finding("token_exchange", facts.collect(noisy_study())).replace("\u00a0", " ")
    assert "3 blocks, emulated evidence" in said and "published evidence" in said
    assert "found 3." in said and "both ends" in said


def test_figures_show_every_run():
    """Each throughput of the most pairs is a mark in the panels over size."""
    drawn = figures.over_size(noisy_study())
    shown = np.concatenate([np.asarray(line.get_ydata(), float) for axes in drawn.axes for line in axes.lines])
    crowd = noisy_study().points.runs.sel(pairs=7).values.ravel() / 1e6
    assert all(np.isclose(shown, value).any() for value in crowd[::7])


def test_today_is_set_beside_the_reference():
    """The claims that a short run can judge stand beside the reference's."""
    today = token_campaign(blocks=2, preset="quick", seed=2)
    study = token_exchange.analyse(token_campaign(only=TWO), today=today)
    (claim,) = facts.collect(study)["today"]["claims"]
    assert claim["now"]["about"] == claim["then"]["about"] and "Today's run" in section(study)


def test_each_model_of_contention_has_its_column():
    """Whatever their order of support, the numbers of a model are below its name."""
    known, lines = facts.collect(noisy_study()), section(noisy_study()).splitlines()
    heading, *rows = [line for line in lines if "Model that is supported" in line or " 15 |" in line]
    columns = [title.strip().lower() for title in heading.split("|")]
    assert len(rows) == len(known["contention"])
    for row, found in zip(rows, known["contention"]):
        cells = dict(zip(columns, row.split("|")))
        for model in found["models"]:
            assert cells[model["title"]].strip().startswith(f"{model['behind']:.1f} (")
