"""The explorer in a real browser: what a reader sees, clicks, sends, loses and takes away."""

import re
import time
import urllib.error
import urllib.request

import browser
import numpy as np
import pandas as pd
import pytest
import synthetic
from browser import ANSWER, VIEW, column, opened, outside, point, sentence

from analysis import store
from analysis.explorer import data, server
from analysis.explorer.shown import first_of

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)
SCALING, SIZE = "?experiment=hpl_scaling", "?experiment=hpl_size"
MANY = 834  # blocks of 12 trials each


@pytest.fixture(scope="module")
def served():
    """The explorer of the reference."""
    with server.serve(None) as running:
        yield running


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as running:
        yield running


@pytest.fixture
def page(served, chromium):
    """A reader's page as it opens; nothing that a test does with it may be a fault or leave this machine."""
    shown = opened(chromium, served.address)
    yield shown
    assert not shown.complaints and not outside(shown, f"{server.HOST}:{served.port}")
    shown.context.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Datasets of a reader's own: many trials, one point, and a file that is none."""
    made = tmp_path_factory.mktemp("mine")
    many = synthetic.campaign(blocks=MANY)
    many.attrs.update(campaign="many", title="Ten thousand trials")
    store.save(many, made / "many.nc")
    one = synthetic.campaign(blocks=1)
    one.attrs.update(campaign="one", title="A single point")
    keep = ((one.interconnect == "gige") & (one.nodes == 1) & (one.role == "point")).values
    store.save(one.isel(trial=np.flatnonzero(keep)), made / "one.nc")
    (made / "broken.nc").write_bytes(b"\x89HDF but not for long")
    return made


def choose(page, title: str) -> None:
    """Open the experiment whose title begins so."""
    picker = page.locator(".experiment select")
    labels = picker.locator("option").all_inner_texts()
    wanted = next(label for label in labels if label.startswith(title))
    picker.select_option(label=wanted)
    page.locator(".question:visible", has_text=wanted).wait_for()


def chip(page, name: str, group: int):
    """The button of a level (group 0) or of a block (1)."""
    group = page.locator(".compact").nth(group)
    return group.locator("button").filter(has_text=re.compile(f"^{name}$"))


def asks(page, part: str) -> None:
    """Wait until the address has a part."""
    page.wait_for_function("(part) => decodeURIComponent(location.search).includes(part)", arg=part)


def test_first_page_says_what_the_study_says(page):
    """Points, means and intervals are drawn; verdict, n, interval and evidence are read; the axes have units."""
    shown = first_of(data.experiments()["hpl_scaling"][0])
    (judged,) = shown.judgements.values()
    assert sentence(page).inner_text() == judged.sentence
    assert page.locator(".word:visible").inner_text() == judged.word
    assert len(column(page, "points", "trial_id")) == len(shown.points())
    assert len(column(page, "means", "y")) == len(shown.summary())
    titles = page.evaluate(f"[{VIEW}.left[0].axis_label, {VIEW}.below[0].axis_label]")
    assert titles == ["HPL rate over the nodes' paced rate [%]", "nodes"]
    legend = page.evaluate(
        f"{VIEW}.above.flatMap((one) => one.items ?? []).map((one) => one.label.value)"
    )
    assert legend == ["GigE", "10GE", "control"]


def test_only_a_curve_that_follows_its_points_is_drawn(page):
    """Of the named model and no other; where it misses the points, the page says so instead."""
    choose(page, "TCP over paths of 1 to 40 ms")
    point(page, "points", "level", "8\u00a0KiB")
    shown = first_of(data.experiments()["long_path"][0])
    follow = [curve.level for curve in shown.curves if curve.is_drawn]
    assert len(column(page, "model", "xs")) == len(follow) < len(shown.curves)
    missed = len(shown.curves) - len(follow)
    assert page.get_by_text("It misses the points").count() == missed
    choose(page, "The paper's 15 HPL cases")
    point(page, "published", "evidence", "published")
    assert not column(page, "model", "xs")


def test_leaving_out_is_a_step_of_the_address(page, chromium):
    """The verdict changes, and Back, a reload and another tab know of it; that tab is a view of its own."""
    before = sentence(page).inner_text()
    chip(page, "2", 1).click()
    asks(page, "without_blocks=[2]")
    page.locator(".sentence:visible", has_text="n = 3").wait_for()
    left_out = sentence(page).inner_text()
    faint = {
        alpha
        for alpha, block in zip(column(page, "points", "alpha"), column(page, "points", "block"))
        if block == 2
    }
    assert len(faint) == 1 and faint < set(column(page, "points", "alpha"))
    tab = page.context.new_page()
    browser.watched(tab)
    tab.goto(page.url)
    tab.locator(".sentence:visible", has_text=left_out).wait_for()
    chip(tab, "3", 1).click()
    asks(tab, "without_blocks=[2,3]")
    assert sentence(page).inner_text() == left_out and "3]" not in page.url
    page.reload()
    page.locator(".sentence:visible", has_text=left_out).wait_for()
    page.get_by_role("button", name="Put all back").click()
    page.locator(".sentence:visible", has_text=before).wait_for()
    page.go_back()
    page.locator(".sentence:visible", has_text=left_out).wait_for()
    page.go_forward()
    page.locator(".sentence:visible", has_text=before).wait_for()
    assert not tab.complaints


def test_leave_outs_are_remembered_by_experiment(page):
    """Another experiment begins whole; back at the first one, its block is still left out, also after a reload."""
    chip(page, "2", 1).click()
    page.locator(".sentence:visible", has_text="n = 3").wait_for()
    choose(page, "HPL of orders from")
    page.get_by_text("blocks: 2 of 2 count").wait_for()
    page.reload()
    page.locator(".question:visible", has_text="HPL of orders from").wait_for()
    choose(page, "HPL over 1 to 16 nodes")
    page.locator(".sentence:visible", has_text="n = 3").wait_for()
    assert "without_blocks=[2]" in page.url


@pytest.mark.parametrize("nodes", ["2", "8"])
def test_no_verdict_without_an_end_of_the_fall(page, nodes):
    """With the baseline or the last node count left out, nothing stands in bold, and the page says why."""
    page.locator(".word:visible").wait_for()
    chip(page, nodes, 0).click()
    page.locator(".note:visible", has_text="No verdict").wait_for()
    assert not page.locator(".word:visible").count()
    assert f"{nodes}\u00a0nodes" in page.locator(".note:visible").inner_text()


def test_points_and_means_tell_what_they_are(page):
    """The mouse on a trial shows its block, on a mean its interval and n; a click opens what HPL printed."""
    trials = first_of(data.experiments()["hpl_scaling"][0]).points()
    lowest = trials.loc[trials.query("nodes == 4 and interconnect == '10gige'").share.idxmin()]
    place = point(page, "points", "trial_id", lowest.trial_id)
    page.mouse.move(*place)
    tip = page.locator("div", has=page.get_by_text("click for its transcript")).last
    assert f"block {lowest.block}" in tip.inner_text() and "%" in tip.inner_text()
    page.mouse.move(*point(page, "means", "level", "16\u00a0nodes"))
    page.get_by_text("geometric mean").and_(page.locator("span")).wait_for()
    assert page.get_by_text("95 % t interval").locator("visible=true").first.is_visible()
    page.mouse.click(*place)
    page.locator("pre", has_text="HPLinpack").first.wait_for()
    assert page.locator("h3").first.inner_text() == lowest.trial_id


def test_experiments_can_be_searched(page):
    """A word of a title is enough."""
    page.get_by_placeholder("Search experiments").press_sequentially("daemon")
    page.get_by_text("HPL over 1 to 16 nodes of which").last.click()
    page.locator(".question:visible", has_text="of which a daemon takes").wait_for()
    asks(page, "experiment=hpl_noise")


@pytest.mark.parametrize(
    ("title", "axes"),
    [
        ("HPL's messages by size", ("messages that all ranks sent, by size", "message size [B]")),
        ("CPU time of TCP", ("CPU time of all nodes [s]", "MTU [B]")),
        ("Tokens exchanged by 1 to 8 pairs", ("tokens written by all pairs", "pairs of nodes")),
        ("Patterns of traffic", ("time until all flows had arrived", "which nodes send to which")),
        ("The points of the HPL scaling campaign over a grid", ("HPL rate [Gflop/s]", "bandwidth [MB/s]")),
        ("Three of the paper's HPL cases", ("efficiency, Rmax / Rpeak [%]", "change to the model")),
    ],
)  # fmt: skip
def test_an_opening_view_answers_its_title(page, title, axes):
    """The axes are what the title speaks of, and no label is code."""
    choose(page, title)
    page.wait_for_function(f"(label) => {VIEW}.left[0].axis_label.startsWith(label)", arg=axes[0])
    assert page.evaluate(f"{VIEW}.below[0].axis_label").startswith(axes[1])
    names = [*column(page, "points", "series"), *column(page, "points", "level")]
    assert names and not [name for name in names if re.search("[_=]", name)]


def test_another_evidence_is_added_and_not_pooled(page):
    """The simulated campaign beside the emulated one: a card for each, and curves of their own."""
    choose(page, "HPL of orders from")
    count = len(column(page, "points", "trial_id"))
    page.locator(".evidence button", has_text="simulated").click()
    page.locator(".sentence:visible", has_text="simulated evidence").wait_for()
    assert page.locator(".sentence:visible", has_text="emulated evidence").count() == 1
    assert len(column(page, "points", "trial_id")) > count
    assert {"GigE, emulated", "GigE, simulated"} <= set(column(page, "points", "series"))


def test_printed_numbers_stand_beside_the_runs_and_can_be_taken_away(page):
    """Crosses at the paper's 80 %, of another evidence; the verdict is the simulation's with and without them."""
    choose(page, "The paper's 15 HPL cases")
    page.mouse.move(*point(page, "published", "evidence", "published"))
    page.get_by_text("Fortinet 2009").first.wait_for()
    assert column(page, "published", "y") == [80] * 15
    said = sentence(page).inner_text()
    page.locator(".evidence button", has_text="published").click()
    page.wait_for_function(f"!{VIEW}.renderers.some((one) => one.data_source.name === 'published')")
    assert sentence(page).inner_text() == said and said.count("simulated evidence") == 1


def test_the_legend_hides_and_a_list_changes_the_axes(page):
    """A click on the legend hides a curve in the browser; an axis chosen for the other's place changes with it."""
    layer = f"{VIEW}.renderers.find((one) => one.data_source.name === 'means')"
    rows = f"{layer}.view.indices.count"
    whole = page.evaluate(rows)
    page.get_by_text("GigE", exact=True).and_(page.locator(".bk-label")).click()
    page.wait_for_function(f"(whole) => {rows} < whole", arg=whole)
    page.get_by_label("Horizontal").select_option(label="interconnect")
    page.wait_for_function(f"{VIEW}.below[0].axis_label === 'interconnect'")
    assert page.get_by_label("Compare").input_value() == "nodes"


def test_the_view_can_be_taken_away(page):
    """Figure, data and code come as files with the experiment's name, and hold what is shown."""
    content = {}
    for label in ("Figure (SVG)", "Data (CSV)", "Code (Python)"):
        with page.expect_download() as download:
            page.get_by_text(label).click()
        name = download.value.suggested_filename
        assert name.startswith("falloff-hpl_scaling-share")
        content[name.rpartition(".")[2]] = download.value.path()
    assert len(pd.read_csv(content["csv"])) == len(column(page, "points", "trial_id"))
    svg = content["svg"].read_text()
    assert "<svg" in svg and svg.count("<path") > 100 and svg.count("<image") <= 3  # the legend's
    compile(content["py"].read_text(), "view.py", "exec")


def test_what_if_answers_sliders_and_is_in_the_address(page):
    """With the shipped prices GigE stops paying at 8 nodes; less bandwidth moves the number, also for who gets the address."""
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
    asks(page, "page=what-if&bandwidth=")
    page.wait_for_timeout(500)
    slower = page.locator(".big").first.inner_text()
    assert float(slower.split()[0]) < float(number.split()[0])
    page.reload()
    page.locator(".big").first.filter(has_text=slower).wait_for()
    choose(page, "HPL of orders from")
    sentence(page).wait_for()
    assert not page.locator(".big").first.is_visible() and "page=" not in page.url


def test_an_expired_page_says_so_and_a_reload_mends_it(chromium):
    """A page that connects only after its token has expired is not blank: it says what to do, and that helps."""
    with server.serve(None, token_s=6) as served:
        page = chromium.new_page()
        page.route("**/panel.min.js*", lambda route: (time.sleep(8), route.continue_()))
        page.goto(served.address)
        page.locator("#lost", has_text="Reload the page").wait_for()
        page.unroute_all()
        page.reload()
        page.locator(".sentence:visible").first.wait_for()
        assert not page.locator("#lost").is_visible()
        page.close()
    assert server.TOKEN_S > 24 * 3600


def test_the_page_says_when_its_server_has_gone(chromium, tmp_path, folder):
    """A banner, before somebody believes a verdict that no longer changes."""
    served = server.serve(folder)
    page = opened(chromium, served.address)
    assert not page.locator("#lost").is_visible()
    served.stop()
    page.locator("#lost", has_text="does not answer any more").wait_for()
    page.context.close()


def test_without_its_key_the_page_is_not_there(served):
    """Neither the bare port nor an invented key opens a page."""
    for path in ("", "invented/", "ws"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{server.HOST}:{served.port}/{path}")
        assert refused.value.code == 404


def test_dark_on_a_phone(chromium, served):
    """The system's dark is followed, nothing is wider than the screen, and the button turns it light."""
    page = opened(chromium, served.address, dark=True, phone=True)
    colors = f"""[getComputedStyle(document.body).backgroundColor,
      getComputedStyle(Bokeh.index.find_one({VIEW}).canvas_view.el).filter.startsWith("invert")]"""
    assert page.evaluate(colors) == ["rgb(22, 25, 29)", True]
    assert page.evaluate("document.documentElement.scrollWidth") <= browser.PHONE["width"]
    verdict, plot = (
        page.locator(part).first.bounding_box() for part in ("section.verdict", "section.plot")
    )
    assert verdict["y"] < plot["y"] and plot["width"] > 300
    page.locator("#theme").click()
    assert page.evaluate(colors) == ["rgb(255, 255, 255)", False]
    page.context.close()


def test_broken_single_and_very_many(chromium, folder):
    """A broken file: what and the remedy. A single point: nothing to compare. Ten thousand trials: they answer."""
    with server.serve(folder) as served:
        page = opened(chromium, served.address)
        choose(page, "A file that cannot be read")
        trouble = page.locator("[role=alert]:visible").inner_text()
        assert "falloff" in trouble and "Traceback" not in page.content()
        assert not page.locator("aside").is_visible()
        choose(page, "A single point")
        page.locator(".sentence:visible", has_text="nothing to compare").wait_for()
        choose(page, "Ten thousand trials")
        point(page, "points", "block", MANY)
        assert len(column(page, "points", "trial_id")) == 12 * MANY
        assert chip(page, "8", 0).evaluate(ANSWER) < 20_000
        page.locator(".note:visible", has_text="No verdict").wait_for()
        page.get_by_label("left out, such as").fill("3, 5")
        page.keyboard.press("Enter")
        asks(page, "without_blocks=[3,5]")
        assert not page.complaints
        page.context.close()


def test_an_empty_folder_is_friendly(chromium, tmp_path):
    """Nothing to explore: the page says what would make something."""
    with server.serve(tmp_path) as served:
        page = opened(chromium, served.address)
        assert (
            "falloff run" in page.locator("[role=alert]:visible").inner_text()
            and not page.complaints
        )
        page.context.close()
