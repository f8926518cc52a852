"""The explorer in a browser where data are missing, broken, few or very many; and as a file without a server."""

import browser
import numpy as np
import pytest
import synthetic
from browser import ANSWER, PLACE, column, opened, outside, sentence

from analysis import store
from analysis.explorer import server, static

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)
MANY = 834  # blocks of 12 trials each


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as running:
        yield running


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


@pytest.fixture(scope="module")
def served(folder):
    running = server.serve(folder)
    yield running
    running.stop()


def test_ten_thousand_trials_stay_usable(chromium, served):
    """All are drawn, a click finds one, and leaving out a node count is answered."""
    page = opened(chromium, server.made_ready(served))
    page.locator(".experiment select").select_option(label="Ten thousand trials")
    page.locator(".question:visible", has_text="Ten thousand trials").wait_for()
    page.wait_for_function(f"Bokeh.documents[0].get_model_by_name('points').data.trial.length === {12 * MANY}")
    before = sentence(page).inner_text()
    took = page.locator(".compact button").filter(has_text="8").first.evaluate(ANSWER)
    assert (
        took < 20_000 and sentence(page).inner_text() != before and "from 2 to 4 nodes" in sentence(page).inner_text()
    )
    page.mouse.click(*page.evaluate(PLACE, column(page, "points", "trial")[0]))
    page.locator("text=transcripts are not beside").or_(page.locator("text=trials are selected")).first.wait_for()
    assert not page.complaints
    page.context.close()


def test_broken_and_single_are_friendly(chromium, served):
    """A broken file: what and the remedy. A single point: the point, and that there is nothing to compare."""
    page = opened(chromium, server.made_ready(served))
    picker = page.locator(".experiment select")
    picker.select_option(label="A file that cannot be read")
    trouble = page.locator("[role=alert]:visible")
    trouble.wait_for()
    assert "falloff" in trouble.inner_text() and "Traceback" not in page.content()
    picker.select_option(label="A single point")
    page.locator(".sentence:visible", has_text="nothing to compare").wait_for()
    assert len(column(page, "points", "trial")) == 1
    page.context.close()


def test_an_empty_folder_is_friendly(chromium, tmp_path):
    """Nothing to explore: the page says what would make something."""
    running = server.serve(tmp_path)
    page = opened(chromium, server.made_ready(running))
    assert "falloff run" in page.locator("[role=alert]:visible").inner_text() and not page.complaints
    page.context.close()
    running.stop()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The static page of the reference."""
    made = tmp_path_factory.mktemp("static") / "explorer.html"
    static.write(None, made)
    return made


@pytest.mark.parametrize("phone", [False, True], ids=["desktop, light", "phone, dark"])
def test_the_static_page_works_from_a_file(phone, chromium, file):
    """At most 10 MB, nothing requested: every experiment is offered, a tap tells, a curve can be switched off."""
    assert file.stat().st_size <= static.MOST
    page = opened(chromium, file.as_uri(), dark=phone, phone=phone)
    assert not [url for url in outside(page, "nobody") if url != file.as_uri()]
    assert page.locator("#experiment option").count() >= 24
    assert "n = 4" in page.locator(".sentence").first.inner_text()
    place = page.evaluate(PLACE, "b002-005-hpl")
    page.touchscreen.tap(*place) if phone else page.mouse.click(*place)
    page.locator("#trial pre").first.wait_for()
    assert "exit code 0" in page.locator("#trial pre").first.inner_text()
    page.locator("#legend button", has_text="GigE").click()
    assert "GigE" not in column(page, "points", "series") and "10GE" in column(page, "means", "series")
    page.select_option("#experiment", label="The paper's 15 HPL cases on Gigabit Ethernet and 10 Gigabit Ethernet")
    page.locator(".sentence", has_text="falls off").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(22, 25, 29)" if phone else "rgb(255, 255, 255)"
    )
    assert not page.complaints
    page.context.close()
