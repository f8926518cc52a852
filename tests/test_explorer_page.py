"""The explorer in a real browser: what a reader sees, clicks, drags and takes away."""

import re
import urllib.error
import urllib.request

import browser
import pandas as pd
import pytest
from browser import ANSWER, FIGURE, PLACE, column, opened, outside, sentence

from analysis.explorer import server, sources
from analysis.explorer.shown import show
from analysis.explorer.view import first
from analysis.figures import explored

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)


@pytest.fixture(scope="module")
def served():
    """The explorer of the reference."""
    running = server.serve(None, draw=explored.svg)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page(served, chromium):
    """One reader's page, which the tests use in turn; each begins by choosing its experiment."""
    return opened(chromium, server.made_ready(served))


def choose(page, title: str) -> None:
    """Open the experiment whose title begins so, anew."""
    picker = page.locator(".experiment select")
    labels = picker.locator("option").all_inner_texts()
    wanted = next(label for label in labels if label.startswith(title))
    if page.locator(".question:visible").first.inner_text().startswith(title):
        other = next(label for label in labels if label != wanted)
        picker.select_option(label=other)
        page.locator(".question:visible", has_text=other).wait_for()
    picker.select_option(label=wanted)
    page.locator(".question:visible", has_text=wanted.rstrip(" …")).wait_for()


def block(page, number: int):
    """The button of a block."""
    return page.locator(".compact button").filter(has_text=re.compile(f"^{number}$")).last


def test_first_page_says_what_the_study_says(page):
    """Points, medians, intervals and bands are drawn; verdict, n, interval and evidence are read; axes have units."""
    choose(page, "HPL over 1 to 16 nodes")
    reference = next(iter(sources.experiments()))
    trials = {it.name: sources.opened(it) for it in reference.sources[:1]}
    (judged,) = show(first(tuple(trials), next(iter(trials.values()))), trials).judgements.values()
    assert sentence(page).inner_text() == judged.sentence
    assert all(word in judged.sentence for word in ("96 % interval", "n =", "blocks", "margin", "emulated evidence"))
    page.wait_for_function("Bokeh.documents[0].get_model_by_name('bands').data.xs.length === 3")
    (frame,) = (it.frame for it in trials.values())
    assert sorted(column(page, "points", "trial")) == sorted(frame.trial_id)
    assert len(column(page, "means", "y")) == 21
    titles = page.evaluate(f"[{FIGURE}.left[0].axis_label, {FIGURE}.below[0].axis_label]")
    assert titles == ["HPL rate over the nodes' paced rate [%]", "nodes"]


def test_leaving_out_a_block_changes_verdict_points_and_fit_and_can_be_undone(page):
    """A click on a block: n is one less, its points fade, the band moves; `Put all back` undoes it."""
    choose(page, "HPL over 1 to 16 nodes")
    page.wait_for_function("Bokeh.documents[0].get_model_by_name('bands').data.xs.length === 3")
    before, band = sentence(page).inner_text(), column(page, "model", "ys")[0][-1]
    assert block(page, 2).evaluate(ANSWER) < 10_000
    assert "n = 4" in before and "n = 3" in sentence(page).inner_text()
    faded = [
        alpha
        for alpha, number in zip(column(page, "points", "alpha"), column(page, "points", "block"))
        if number == 2
    ]
    assert set(faded) == {min(column(page, "points", "alpha"))}
    page.wait_for_function(
        "(before) => Bokeh.documents[0].get_model_by_name('model').data.ys[0].at(-1) !== before", arg=band
    )
    page.get_by_role("button", name="Put all back").click()
    page.locator(".sentence:visible", has_text=before).wait_for()


def test_hover_tells_the_settings_and_a_click_opens_the_transcript(page):
    """The mouse on a point shows its settings and block; a click shows what HPL printed, as text."""
    choose(page, "HPL over 1 to 16 nodes")
    frame = sources.opened(next(iter(sources.experiments())).sources[0]).frame
    there = frame[(frame.interconnect == "10gige") & (frame.nodes == 16)]
    far = there.loc[(there.share - there.share.mean()).abs().idxmax()]  # no other mark is under the mouse
    page.mouse.move(*page.evaluate(PLACE, far.trial_id))
    tip = page.locator("text=click for its transcript").first
    tip.wait_for()
    said = page.locator("div", has=tip).last.inner_text()
    assert "NB 24" in said and f"block {far.block}," in said and "%" in said
    page.mouse.click(*page.evaluate(PLACE, far.trial_id))
    page.locator("pre", has_text="HPLinpack").first.wait_for()
    assert page.locator("h3", has_text=far.trial_id).first.is_visible()


def test_dragging_moves_the_plot_and_the_layers_can_be_switched(page):
    """A drag pans the axes; `Blocks` draws a line for every block that counts, without an answer of the server."""
    choose(page, "HPL over 1 to 16 nodes")
    start = "Bokeh.documents[0].get_model_by_name('trials-plot').x_range.start"
    before = page.evaluate(start)
    x, y = page.evaluate(PLACE, "b002-005-hpl")
    page.mouse.move(x + 60, y + 30)
    page.mouse.down()
    page.mouse.move(x - 40, y + 30, steps=4)
    page.mouse.up()
    assert page.evaluate(start) > before
    page.get_by_role("button", name="Blocks", exact=True).click()
    page.wait_for_function(
        "Bokeh.documents[0].get_model_by_name('trials-plot').renderers.every((one) => one.visible)"
    )
    page.wait_for_function("Bokeh.documents[0].get_model_by_name('blocks').data.xs.length === 18")
    page.get_by_role("button", name="Blocks", exact=True).click()


@pytest.mark.parametrize(
    ("title", "said", "label"),
    [
        ("TCP from one node", "ratio", "Gbit/s"),
        ("The largest frame", "ratio", "[B]"),
        ("The paper's 15 HPL cases", "falls off", "[%]"),
        ("TCP over paths of 1 to 40 ms", "ratio", "Gbit/s"),
        ("Tokens exchanged by 1 to 7 pairs", "ratio", "MB/s"),
        ("Patterns of traffic", "ratio", "[s]"),
        ("HPL on one node with OpenBLAS", "ratio", "[%]"),
    ],
)
def test_every_kind_of_experiment_is_drawn(page, title, said, label):
    """HPL, TCP, frames, tokens, flows: points on the screen, a sentence with its evidence, a unit on the axis."""
    choose(page, title)
    page.locator(".sentence:visible", has_text=said).first.wait_for()
    assert any(value is not None for value in column(page, "medians", "y"))
    assert label in page.evaluate("Bokeh.documents[0].get_model_by_name('trials-plot').left[0].axis_label")
    assert "evidence" in sentence(page).inner_text() and not page.complaints


def test_another_evidence_is_added_and_not_pooled(page):
    """The simulated campaign beside the emulated one: a card for each."""
    choose(page, "HPL of orders from")
    count = len(column(page, "points", "trial"))
    page.locator(".evidence button", has_text="simulated").click()
    page.wait_for_function(f"Bokeh.documents[0].get_model_by_name('points').data.trial.length > {count}")
    page.locator(".sentence:visible", has_text="simulated evidence").wait_for()
    assert page.locator(".sentence:visible", has_text="emulated evidence").count() == 1


def test_printed_numbers_stand_beside_the_runs_and_can_be_taken_away(page):
    """Crosses at the paper's 80 %, of another evidence; the verdict is the simulation's with and without them."""
    choose(page, "The paper's 15 HPL cases")
    assert column(page, "published", "y") == [80] * 15
    said = sentence(page).inner_text()
    page.locator(".under:visible", has_text="printed by the source").wait_for()
    page.mouse.move(*page.evaluate(PLACE, ["published", "text", column(page, "published", "text")[0]]))
    page.locator("text=Fortinet 2009").first.wait_for()
    page.locator(".evidence button", has_text="published").click()
    page.wait_for_function("Bokeh.documents[0].get_model_by_name('published').data.x.length === 0")
    assert sentence(page).inner_text() == said and said.count("simulated evidence") == 1


def test_the_view_can_be_taken_away(page):
    """Figure, data and code come as files with the experiment's name, and hold what is shown."""
    choose(page, "HPL over 1 to 16 nodes")
    content = {}
    for label in ("Figure (SVG)", "Data (CSV)", "Code (Python)"):
        with page.expect_download() as download:
            page.get_by_text(label).click()
        name = download.value.suggested_filename
        assert name.startswith("falloff-hpl_scaling-scale_model-share")
        content[name.rpartition(".")[2]] = download.value.path()
    assert len(pd.read_csv(content["csv"])) == len(column(page, "points", "trial"))
    assert content["svg"].read_text().startswith("<?xml")
    compile(content["py"].read_text(), "view.py", "exec")


def test_what_if_answers_sliders_and_names_the_count(page):
    """With the shipped prices GigE stops paying at 8 nodes; more latency moves the number."""
    page.get_by_role("button", name="What if?").click()
    said = page.locator("[data-pays]").first
    said.wait_for()
    assert said.get_attribute("data-pays") == "8"
    number = page.locator(".big").first.inner_text()
    handle = page.locator(".noUi-handle:visible").first
    handle.focus()
    for _ in range(20):
        handle.press("ArrowLeft")
    page.locator(".big").first.filter(has_not_text=number).wait_for()
    assert float(page.locator(".big").first.inner_text().split()[0]) < float(number.split()[0])
    page.get_by_role("button", name="Explore", exact=True).click()


def test_nothing_is_asked_of_anybody_else(page, served):
    """All requests of all that the other tests did went to this server."""
    assert page.asked and not outside(page, f"{server.HOST}:{served.port}")


def test_without_its_token_the_page_is_refused(served):
    """Neither no token nor an invented one opens a page."""
    for query in ("", "?bokeh-session-id=invented"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{server.HOST}:{served.port}/{query}")
        assert refused.value.code == 403


def test_dark_on_a_phone(chromium, served):
    """The system's dark is followed, nothing is wider than the screen, and the button turns it light."""
    page = opened(chromium, server.made_ready(served), dark=True, phone=True)
    colors = f"[getComputedStyle(document.body).backgroundColor, {FIGURE}.below[0].axis_label_text_color]"
    paper, ink = page.evaluate(colors)
    assert paper == "rgb(22, 25, 29)" and ink == "#e8e8e4"
    assert page.evaluate("document.documentElement.scrollWidth") <= browser.PHONE["width"]
    verdict, plot = (page.locator(part).first.bounding_box() for part in ("section.verdict", "section.plot"))
    assert verdict["y"] < plot["y"] and plot["width"] > 300
    page.locator("#theme").click()
    assert page.evaluate(colors)[1] == "#222222"
    page.context.close()
