"""The explorer as one file, in a real browser without a server."""

import browser
import pytest
from browser import VIEW, column, opened, outside, point, sentence

from analysis.explorer import static

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    made = tmp_path_factory.mktemp("static") / "explorer.html"
    static.write(None, made)
    return made


@pytest.mark.parametrize("phone", [False, True], ids=["desktop, light", "phone, dark"])
def test_the_static_page_works_from_a_file(phone, file):
    """At most 10 MB, nothing requested: every experiment is offered, a tap tells all, a curve can be hidden."""
    assert file.stat().st_size <= static.MOST
    with browser.chromium() as chromium:
        page = opened(chromium, file.as_uri(), dark=phone, phone=phone)
        assert page.locator("#experiment option").count() >= 24
        assert "n = 4" in sentence(page).inner_text()
        place = point(page, "points", "trial_id", "b002-005-hpl")
        page.touchscreen.tap(*place) if phone else page.mouse.click(*place)
        output = page.locator("#trial").get_by_label("output").first
        output.wait_for()
        assert (
            "WR" in output.inner_text() and "PASSED" in output.inner_text()
        )  # HPL's result, and the end
        page.get_by_text("GigE", exact=True).and_(page.locator(".bk-label")).click()
        page.wait_for_function(f"{VIEW}.renderers.some((one) => !one.visible)")
        page.select_option(
            "#experiment",
            label="The paper's 15 HPL cases on Gigabit Ethernet and 10 Gigabit Ethernet",
        )
        page.locator(".sentence", has_text="falls off").wait_for()
        assert page.url.endswith("#hpl_paper")  # as the report's links have it
        point(page, "published", "level", "36\u00a0nodes")
        assert column(page, "published", "y") == [80] * 15
        page.go_back()
        page.locator(".sentence", has_text="n = 4").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(22, 25, 29)" if phone else "rgb(255, 255, 255)")
        requested = [url for url in outside(page, "nobody") if not url.startswith(file.as_uri())]
        assert not requested and not page.complaints
