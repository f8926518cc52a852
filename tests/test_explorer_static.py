"""The explorer as one file, on a phone in a real browser, without a server."""

import browser
import pytest
from browser import VIEW, column, opened, outside, point, sentence

from analysis import paths
from analysis.explorer import static

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)


def test_the_static_page_works_from_a_file(tmp_path):
    """Nothing is requested, nothing is wider than a phone: a tap tells all, a curve can be hidden, Back goes back."""
    folder, file = tmp_path / "two", tmp_path / "explorer.html"
    folder.mkdir()
    for name in ("hpl_scaling-scale_model", "hpl_paper-smith"):
        (folder / name).symlink_to(paths.REFERENCE / name)
    static.write(folder, file)
    with browser.chromium() as chromium:
        page = opened(chromium, file.as_uri(), dark=True, phone=True)
        assert page.locator("#experiment option").count() == 2
        assert "4\u00a0blocks" in sentence(page).inner_text()
        page.touchscreen.tap(*point(page, "points", "trial_id", "b002-005-hpl"))
        output = page.locator("#trial").get_by_label("output").first
        output.wait_for()
        # HPL's result, and the end of what it printed.
        assert "WR" in output.inner_text() and "PASSED" in output.inner_text()
        page.get_by_text("GigE", exact=True).and_(page.locator(".bk-label")).click()
        page.wait_for_function(f"{VIEW}.renderers.some((one) => !one.visible)")
        page.select_option("#experiment", value="hpl_paper")
        page.locator(".chip", has_text="simulated").wait_for()
        assert page.url.endswith("#hpl_paper")  # as the report's links have it
        point(page, "published", "level", "36\u00a0nodes")
        assert column(page, "published", "y") == [80] * 15
        page.go_back()
        page.locator(".sentence", has_text="4\u00a0blocks").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(22, 25, 29)"
        requested = [url for url in outside(page, "nobody") if not url.startswith(file.as_uri())]
        assert not requested and not page.complaints
