"""The explorer in a real browser, as served and as one file: what a reader sees, clicks, sends,
loses and takes away.
"""

import base64
import json
import re
import time
import urllib.error
import urllib.request
from dataclasses import replace

import browser
import numpy as np
import pandas as pd
import pytest
import synthetic
import test_hostile
from browser import ANSWER, VIEW, column, opened, outside, point, sentence

from analysis import paths
from analysis.dataset import store
from analysis.explorer import data, server, static
from analysis.explorer.view import PageContent, first_of

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)
# The marked line of an output is within what is seen of that, and on the screen.
RESULT_IS_SEEN = """() => {
  const shadows = (root) => [...root.querySelectorAll("*")].map((one) => one.shadowRoot)
  const find = (root) =>
    root.querySelector("pre mark") ?? shadows(root).filter(Boolean).map(find).find(Boolean)
  const line = find(document), box = line?.getBoundingClientRect()
  const seen = line?.closest("pre").getBoundingClientRect()
  const [top, bottom] = [Math.max(seen?.top, 0), Math.min(seen?.bottom, innerHeight)]
  return line && box.top >= top && box.bottom <= bottom
}"""
MANY = 200  # blocks of 12 trials each


@pytest.fixture(scope="module")
def served():
    """The explorer of the reference."""
    with server.serve(None) as running:
        yield running


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def reader(served, chromium):
    """One reader's page for all tests; nothing that they do with it may be a fault or leave this
    machine.
    """
    page = opened(chromium, served.address)
    yield page
    assert not page.complaints and not outside(page, server.HOST)
    page.context.close()


@pytest.fixture
def page(served, reader):
    """The page as it opens."""
    reader.goto(served.address)
    sentence(reader).wait_for()
    return reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Datasets of a reader's own: many trials, one point, and a file that is none."""
    place = tmp_path_factory.mktemp("mine")
    many = synthetic.campaign(blocks=MANY)
    many.attrs.update(campaign="many", title="Thousands of trials")
    store.save(many, place / "many.nc")
    one = synthetic.campaign(blocks=1)
    one.attrs.update(campaign="one", title="A single point")
    keep = ((one.interconnect == "gige") & (one.nodes == 1) & (one.role == "point")).values
    store.save(one.isel(trial=np.flatnonzero(keep)), place / "one.nc")
    (place / "broken.nc").write_bytes(b"\x89HDF but not for long")
    return place


def choose(page, title):
    """Open the experiment whose title begins so."""
    picker = page.locator(".experiment select")
    labels = picker.locator("option").all_inner_texts()
    wanted = next(label for label in labels if label.startswith(title))
    picker.select_option(label=wanted)
    page.locator(".question:visible", has_text=wanted).wait_for()


def says(page, text):
    """Wait until the sentence above the plot has a text."""
    page.locator(".sentence:visible", has_text=text).wait_for()


def chip(page, name, group):
    """The button of a level (group 0) or of a block (1)."""
    return (
        page.locator(".compact")
        .nth(group)
        .locator("button")
        .filter(has_text=re.compile(f"^{name}$"))
    )


def asks(page, part):
    """Wait until the address has a part."""
    page.wait_for_function("(part) => decodeURIComponent(location.search).includes(part)", arg=part)


def test_first_page_says_what_the_study_says(page):
    """Points, means and intervals are drawn; verdict, n, interval and evidence are read; the axes
    have units.
    """
    shown = first_of(data.experiments()["hpl_scaling"])
    assert sentence(page).inner_text() == shown.judgement.sentence
    assert page.locator(".word:visible").inner_text() == f"GigE {shown.judgement.word}"
    assert len(column(page, "points", "trial_id")) == len(shown.points)
    assert len(column(page, "means", "low")) == len(shown.summary)
    titles = page.evaluate(f"[{VIEW}.left[0].axis_label, {VIEW}.below[0].axis_label]")
    assert titles == ["HPL rate over the nodes' paced rate [%]", "nodes"]
    assert page.locator(".bk-label").all_inner_texts() == ["GigE", "10GE", "unlimited links"]


@pytest.mark.more
def test_leaving_out_is_a_step_of_the_address_and_remembered(page):
    """The verdict changes; Back, a reload and another tab, a view of its own, know of it, and so
    does who comes back.
    """
    before = sentence(page).inner_text()
    chip(page, "2", 1).click()
    asks(page, "without_blocks=[2]")
    says(page, "3\u00a0blocks")
    left_out = sentence(page).inner_text()
    blocks, alphas = column(page, "points", "block"), column(page, "points", "alpha")
    faint = {alpha for block, alpha in zip(blocks, alphas) if block == 2}
    assert len(faint) == 1 and faint < set(alphas)
    tab = page.context.new_page()
    browser.watched(tab)
    tab.goto(page.url)
    says(tab, left_out)
    chip(tab, "3", 1).click()
    asks(tab, "without_blocks=[2,3]")
    assert sentence(page).inner_text() == left_out and "3]" not in page.url
    tab.get_by_placeholder("Search experiments").press_sequentially("daemon")
    tab.get_by_text("HPL over 1 to 16 nodes of which").last.click()
    tab.get_by_text("blocks: 3 of 3 count").wait_for()
    asks(tab, "experiment=hpl_noise")
    choose(tab, "HPL over 1 to 36 nodes on")
    asks(tab, "without_blocks=[2,3]")
    page.reload()
    says(page, left_out)
    page.get_by_role("button", name="Put all back").click()
    says(page, before)
    page.wait_for_url(lambda address: "without_blocks" not in address)
    page.go_back()
    says(page, left_out)
    page.go_forward()
    says(page, before)
    # Bokeh's list of suggestions (`_bump_hover`, `change_input`) complains where the mouse is on it
    # while it closes.
    late = "Cannot read properties of undefined (reading '{}')"
    assert {*tab.complaints} <= {late.format(name) for name in ("classList", "textContent")}
    tab.close()


@pytest.mark.more
def test_points_and_means_tell_what_they_are(page):
    """The mouse on a trial shows its block, on a mean its interval and n; a click opens what HPL
    printed.
    """
    trials = first_of(data.experiments()["hpl_scaling"]).points
    lowest = trials.loc[trials.query("nodes == 4 and interconnect == 'gige'").share.idxmin()]
    place = point(page, "points", "trial_id", lowest.trial_id)
    page.mouse.move(*place)
    tip = page.locator("div", has=page.get_by_text("click for its transcript")).last
    assert f"block {lowest.block}" in tip.inner_text() and "GigE" in tip.inner_text()
    page.mouse.move(*point(page, "means", "level", "16\u00a0nodes"))
    page.get_by_text("geometric mean").and_(page.locator("span")).wait_for()
    assert page.get_by_text("95 % t interval").locator("visible=true").first.is_visible()
    page.mouse.click(*place)
    page.locator("pre", has_text="HPLinpack").first.wait_for()
    assert page.locator("h3").first.inner_text() == lowest.trial_id
    asks(page, f"trial={lowest.trial_id}")
    page.reload()
    page.wait_for_function(RESULT_IS_SEEN)
    selected = f"{VIEW}.renderers.some((one) => one.data_source.selected.indices.length)"
    assert page.evaluate(selected) and page.locator("h3").first.inner_text() == lowest.trial_id
    page.go_back()
    page.get_by_text("Click a point").wait_for()


@pytest.mark.more
def test_what_an_address_asks_for_and_is_not_there_is_said(page, served):
    """Another experiment is shown under a sentence that names the missing one; a missing trial is
    named, too.
    """
    page.goto(f"{served.address}?experiment=gone&trial=b9")
    page.locator(".notice:visible", has_text='no experiment "gone"').wait_for()
    page.locator(".notice:visible", has_text="trial b9").wait_for()
    assert sentence(page).is_visible()
    choose(page, "HPL of orders from")
    sentence(page).wait_for()
    assert not page.locator(".notice:visible").count()


@pytest.mark.more
def test_the_legend_hides_and_lists_change_what_is_shown(page):
    """A hidden curve; an axis that changes places with the other; two series that are compared when
    the third is hidden; a simulated dataset beside the emulated one of its campaign."""
    hidden = f"{VIEW}.renderers.filter((one) => !one.visible).length"
    assert page.evaluate(hidden) == 0
    page.get_by_text("10GE", exact=True).and_(page.locator(".bk-label")).click()
    page.wait_for_function(f"{hidden} > 1")
    page.get_by_role("button", name="GigE", exact=True).click()
    says(page, "10GE stays flat against unlimited links")
    page.get_by_label("Horizontal").select_option(label="interconnect")
    page.wait_for_function(f"{VIEW}.below[0].axis_label === 'interconnect'")
    assert page.get_by_label("Compare").input_value() == "nodes"
    choose(page, "HPL of orders from")
    says(page, "emulated evidence")
    page.locator(".experiment select").select_option(label=simulated_title())
    says(page, "simulated evidence")


def simulated_title():
    listed = data.experiments().values()
    return next(one.title for one in listed if one.path.name == "hpl_size-scale_model_simulated")


def test_the_view_can_be_taken_away(page):
    """Data and code come as files with the experiment's name, and hold what is shown."""
    for label in ("Data (CSV)", "Code (Python)"):
        with page.expect_download() as download:
            page.get_by_text(label).click()
        assert download.value.suggested_filename.startswith("falloff-hpl_scaling-share")
        if label == "Data (CSV)":
            table = pd.read_csv(download.value.path())
            assert len(table) == len(column(page, "points", "trial_id"))
        else:
            compile(download.value.path().read_text(), "view.py", "exec")


@pytest.mark.more
def test_an_expired_page_says_so_and_a_reload_mends_it(chromium, served):
    """A page that connects only after its token has expired is not blank: it says what to do, and
    that helps. Ours holds for months."""
    seen = {}

    def expire(route):
        answer = route.fetch()
        token = re.search(r'"token":"([^"]+)"', answer.text())[1]
        known = json.loads(base64.urlsafe_b64decode(token + "=="))
        seen["left_s"] = known["session_expiry"] - time.time()
        known["session_expiry"] = int(time.time()) - 1
        stale = base64.urlsafe_b64encode(json.dumps(known).encode()).decode().rstrip("=")
        route.fulfill(response=answer, body=answer.text().replace(token, stale))

    page = chromium.new_page()
    page.clock.install()
    page.route(served.address, expire)
    page.goto(served.address)
    page.wait_for_function("window.Bokeh")
    page.clock.run_for(15_000)
    page.locator("#lost", has_text="Reload the page").wait_for()
    assert seen["left_s"] > 30 * 24 * 3600
    page.unroute_all()
    page.reload()
    page.clock.resume()
    sentence(page).wait_for()
    assert not page.locator("#lost").is_visible()
    page.close()


def test_without_its_key_the_page_is_not_there(served):
    """Neither the bare port nor an invented key opens a page."""
    host = served.address.rsplit("/", 2)[0]
    for path in ("", "invented/", "ws"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{host}/{path}")
        assert refused.value.code == 404


def test_dark_on_a_phone_and_large_on_a_desk(chromium, served):
    """The system's dark is followed, nothing is wider than the screen, the button turns it light; a
    large window has a larger plot.
    """
    page = opened(chromium, served.address, dark=True, phone=True)
    colors = f"""[getComputedStyle(document.body).backgroundColor,
      getComputedStyle(Bokeh.index.find_one({VIEW}).canvas_view.el).filter.startsWith("invert")]"""
    assert page.evaluate(colors) == ["rgb(22, 25, 29)", True]
    assert page.evaluate("document.documentElement.scrollWidth") <= browser.PHONE["width"]
    arrow = page.locator(".experiment select").evaluate(
        "(one) => getComputedStyle(one).backgroundImage"
    )
    assert "8a8f96" in arrow  # a grey that is seen on black and on white
    page.locator("#theme").click()
    assert page.evaluate(colors) == ["rgb(255, 255, 255)", False]
    small = page.locator("section.plot").bounding_box()["height"]
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.wait_for_function(f"document.querySelector('section.plot').clientHeight > {small} + 100")
    page.context.close()


@pytest.mark.more
def test_broken_single_very_many_and_gone(chromium, folder):
    """A broken file: what and the remedy. A single point: nothing to compare. Thousands of trials:
    they answer. A server that has gone: a banner, before somebody believes a verdict that no longer
    changes."""
    with server.serve(folder) as served:
        page = opened(chromium, served.address)
        choose(page, "A file that cannot be read")
        trouble = page.locator("[role=alert]:visible").inner_text()
        assert "falloff" in trouble and "Traceback" not in page.content()
        assert not page.locator("aside").is_visible()
        choose(page, "A single point")
        says(page, "nothing to compare")
        choose(page, "Thousands of trials")
        point(page, "points", "block", MANY)
        assert len(column(page, "points", "trial_id")) == 12 * MANY
        assert chip(page, "8", 0).evaluate(ANSWER) < 20_000
        page.locator(".note:visible", has_text="No verdict").wait_for()
        assert not page.complaints and not page.locator("#lost").is_visible()
    page.locator("#lost", has_text="does not answer any more").wait_for()
    bookmark = page.url
    page.context.close()
    with server.serve(folder, int(bookmark.split("/")[2].split(":")[1])) as again:
        assert again.address == served.address
        page = opened(chromium, bookmark)
        page.locator(".question:visible", has_text="Thousands of trials").wait_for()
        asks(page, "without_levels=[8]")
    page.context.close()


@pytest.mark.more
def test_the_static_page_works_from_a_file(chromium, tmp_path):
    """Nothing is requested, nothing is wider than a phone: a tap tells all, a curve can be hidden,
    Back goes back.
    """
    folder, file = tmp_path / "two", tmp_path / "explorer.html"
    folder.mkdir()
    for name in ("hpl_scaling-fortinet_model", "hpl_paper_simulated-smith"):
        (folder / name).symlink_to(paths.REFERENCE / name)
    static.write(folder, file)
    page = opened(chromium, file.as_uri(), dark=True, phone=True)
    assert page.locator("#experiment option").count() == 2
    says(page, "4\u00a0blocks")
    page.touchscreen.tap(*point(page, "points", "trial_id", "b002-005-hpl"))
    output = page.locator("#trial").get_by_label("output").first
    output.wait_for()
    # HPL's result, and the end of what it printed.
    assert "WR" in output.inner_text() and "PASSED" in output.inner_text()
    name, tapped = page.url.split("#")[1].split("&trial=")  # the first of those that lie there
    assert name == "hpl_scaling"
    page.reload()
    page.wait_for_function(RESULT_IS_SEEN)
    shown = first_of(data.source(folder / "hpl_scaling-fortinet_model"))
    (trial,) = shown.points.query("trial_id == @tapped").itertuples()
    page.get_by_role("button", name="Leave this point out").tap()
    page.get_by_text("Left out by hand: 1 trial").wait_for()
    left = shown.summary.copy()
    at = (left.series == trial.interconnect) & (left.x == trial.nodes)
    without = PageContent(replace(shown.view, without_blocks=(trial.block,)), shown.trials).summary
    left.loc[at] = without[at]
    for name in ("low", "high"):
        np.testing.assert_allclose(
            sorted(column(page, "means", name)), sorted(left[name].dropna()), rtol=1e-9
        )
    page.get_by_role("button", name="Put all back").tap()
    page.get_by_text("Left out by hand").wait_for(state="detached")
    np.testing.assert_allclose(
        sorted(column(page, "means", "low")), sorted(shown.summary.low.dropna()), rtol=1e-9
    )
    page.get_by_text("GigE", exact=True).and_(page.locator(".bk-label")).click()
    page.wait_for_function(f"{VIEW}.renderers.some((one) => !one.visible)")
    page.evaluate("location.hash = 'gone'")
    page.get_by_text('no experiment "gone"').wait_for()
    page.select_option("#experiment", value="hpl_paper_simulated")
    says(page, "simulated evidence")
    assert page.url.endswith("#hpl_paper_simulated")  # as the report's links have it
    page.go_back()
    page.go_back()
    says(page, "4\u00a0blocks")
    # A step that comes while a figure is being drawn.
    page.evaluate(
        """(trial) => {
            const embed = Bokeh.embed.embed_item
            Bokeh.embed.embed_item = async (...all) => {
                Bokeh.embed.embed_item = embed
                location.hash = `hpl_paper_simulated&trial=${trial}`
                await new Promise((go) => setTimeout(go, 100))
                return embed(...all)
            }
            location.hash = "hpl_paper_simulated"
        }""",
        (
            other := str(
                first_of(data.source(folder / "hpl_paper_simulated-smith")).points.trial_id.iloc[0]
            )
        ),
    )
    says(page, "simulated evidence")  # by then the output of the trial before is gone
    page.locator("#trial").get_by_label("output").first.wait_for()
    assert page.url.endswith(other) and page.locator("#plot > *").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(22, 25, 29)"
    requested = [url for url in outside(page, "nobody") if not url.startswith(file.as_uri())]
    assert not requested and not page.complaints
    page.context.close()


RUNS = '<img src=x onerror="window.ran = 1"><script>window.ran = 2</script>'
NAME, OTHER = f'10G "fast" `x` $$y$$ {RUNS}', "a|b <lab> \\(z\\) @x"


def test_names_and_outputs_are_shown_as_they_are_and_run_nothing(chromium, tmp_path):
    """In the title, the sentence, the legend, a tip, the tables and a transcript, of the server's
    page and of the file.
    """
    text = json.dumps(test_hostile.contents())
    for name, odd in (("GigE", NAME), ("10GE", OTHER)):
        text = text.replace(json.dumps(name), json.dumps(odd))
    held = json.loads(text)
    held["trials.json"]["title"] = f"Title {NAME}"
    for transcript in held["transcripts"]:
        transcript["executions"][0]["stderr"] = f"printed {RUNS}"
    folder, file = tmp_path / "odd", tmp_path / "explorer.html"
    test_hostile.write(held, folder / "odd")
    static.write(folder, file)
    trial = first_of(data.source(folder / "odd")).points.query("counts").trial_id.iloc[0]
    with server.serve(folder) as served:
        for address in (served.address, file.as_uri()):
            page = opened(chromium, address)
            says(page, NAME)
            place = point(page, "points", "trial_id", trial)
            page.mouse.move(*place)
            page.get_by_text(re.compile("click for its transcript")).first.wait_for()
            page.mouse.click(*place)
            page.get_by_text(f"printed {RUNS}").first.wait_for()
            page.locator(".question:visible", has_text=f"Title {NAME}").wait_for()
            page.locator("td:visible", has_text=OTHER).first.wait_for()
            assert page.locator(".bk-label", has_text=NAME).count()
            assert page.evaluate("window.ran") is None and not page.complaints
            page.context.close()
