"""A real Chromium for the tests of the explorer, and what they ask of its page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
MISSING = "Chromium is missing: `make test` installs packaging/debian-packages-browser.txt"
ARGUMENTS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking
--disable-component-update --disable-sync""".split()
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents.at(-1).is_idle"
# The latest figure (one that was drawn before lingers for a while), and its sources of a layer, one
# for each series.
VIEW = (
    "[...Bokeh.documents.at(-1)._all_models.values()].filter((one) => one.name === 'view').at(-1)"
)
LAYER = f"""const view = {VIEW}
  const sources = new Set(view?.renderers.map((one) => one.data_source))
  const layer = (name) => [...sources].filter((one) => one.name === name)
"""
SLOW = 60_000  # milliseconds that a page may take while other work runs

# A column of a layer's data; nothing where the layer is not drawn.
COLUMN = (
    f"([name, column]) => {{ {LAYER}; return layer(name).flatMap((one) => [...one.data[column]]) }}"
)
# Where a row of a layer is on the screen: its data through the plot's own scales; nothing before it
# is drawn.
PLACE = f"""([name, column, value]) => {{
  {LAYER}
  const source = layer(name).find((one) => [...one.data[column] ?? []].includes(value))
  const drawn = view && Bokeh.index.find_one(view)
  if (!source || !drawn?.has_finished()) return null
  const row = [...source.data[column]].indexOf(value)
  const box = drawn.canvas_view.el.getBoundingClientRect()
  const {{x_scale, y_scale}} = drawn.frame
  const {{x, y}} = source.data
  return [x_scale.compute(x[row]) + box.x, y_scale.compute(y[row]) + box.y]
}}"""
# Milliseconds from a click, or a choice in a list, to the frame in which the figure shows the
# answer. The page's address changes last.
ANSWER = f"""(widget, choice) => new Promise((resolve) => {{
  const address = Bokeh.documents.at(-1).get_model_by_name("query")
  const before = address.value, begin = performance.now()
  const look = () => {{
    const drawn = address.value !== before && Bokeh.index.find_one({VIEW})
    drawn && drawn.has_finished() ? resolve(performance.now() - begin) : requestAnimationFrame(look)
  }}
  if (choice == null) widget.click()
  else {{
    widget.value = choice
    widget.dispatchEvent(new Event("change"))
  }}
  look()
}})"""


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
    """A page that is drawn; `page.asked` lists what it requested and `page.complaints` its
    errors.
    """
    touch = {"has_touch": True, "is_mobile": True} if phone else {}
    context = browser.new_context(
        viewport=PHONE if phone else DESKTOP, color_scheme="dark" if dark else "light", **touch
    )
    page = context.new_page()
    page.set_default_timeout(SLOW)
    watched(page)
    page.goto(address)
    page.wait_for_function(READY)
    return page


def watched(page: Page) -> None:
    """Note what the page requests, and its errors."""
    page.asked, page.complaints = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on(
        "console", lambda said: page.complaints.append(said.text) if said.type == "error" else None
    )


def sentence(page: Page) -> Locator:
    """What the page says above the plot."""
    return page.locator(".sentence:visible").first


def column(page: Page, layer: str, name: str) -> list:
    """A column of a layer's data, as the browser has it; none where the layer is not drawn."""
    return page.evaluate(COLUMN, [layer, name])


def point(page: Page, layer: str, name: str, value) -> list[float]:
    """Where a row of a layer is on the screen, once it is there."""
    return page.wait_for_function(PLACE, arg=[layer, name, value]).json_value()


def outside(page: Page, host: str) -> list[str]:
    """What the page requested that is neither in itself nor from this host."""
    return [url for url in page.asked if not url.startswith((f"http://{host}", "data:", "blob:"))]
