"""A real Chromium for the tests of the explorer, and what they ask of its page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
MISSING = "Chromium is missing: `make test` installs debian-packages-browser.txt"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
READY = """window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle
  && 'painted' in document.documentElement.dataset"""
FIGURE = "Bokeh.documents[0].get_model_by_name('trials-plot')"
SLOW = 60_000  # milliseconds that a page may take while other work runs

# Where a trial, or the value of a layer's column, is on the screen: its data through the plot's own scales.
PLACE = """(asked) => {
  const [layer, column, value] = Array.isArray(asked) ? asked : ["points", "trial", asked]
  const doc = Bokeh.documents.at(-1), view = Bokeh.index.find_one(doc.get_model_by_name("trials-plot"))
  const {data} = doc.get_model_by_name(layer), box = view.canvas_view.el.getBoundingClientRect()
  const row = [...data[column]].indexOf(value)
  return [view.frame.x_scale.compute(data.x[row]) + box.x, view.frame.y_scale.compute(data.y[row]) + box.y]
}"""
# Milliseconds from a click to the frame in which the plot has the answer.
ANSWER = """(button) => new Promise((resolve) => {
  const {properties} = Bokeh.documents[0].get_model_by_name("means"), begin = performance.now()
  const drawn = () => {
    properties.data.change.disconnect(drawn)
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - begin)))
  }
  properties.data.change.connect(drawn)
  button.click()
})"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Browser, address: str, dark: bool = False, phone: bool = False) -> Page:
    """A page that is drawn; `page.asked` lists what it requested and `page.complaints` its errors."""
    touch = {"has_touch": True, "is_mobile": True} if phone else {}
    context = browser.new_context(
        viewport=PHONE if phone else DESKTOP, color_scheme="dark" if dark else "light", **touch
    )
    page = context.new_page()
    page.set_default_timeout(SLOW)
    page.asked, page.complaints = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
    page.goto(address)
    page.wait_for_function(READY)
    return page


def sentence(page: Page) -> Locator:
    """What the page says above the plot."""
    return page.locator(".sentence:visible").first


def column(page: Page, layer: str, name: str) -> list:
    """A column of a layer's data, as the browser has it."""
    return page.evaluate(
        "([layer, name]) => [...Bokeh.documents.at(-1).get_model_by_name(layer).data[name]]", [layer, name]
    )


def outside(page: Page, host: str) -> list[str]:
    """What the page requested that is neither in itself nor from this host."""
    return [url for url in page.asked if not url.startswith((f"http://{host}", "data:", "blob:"))]
