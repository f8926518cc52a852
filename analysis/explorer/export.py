"""The current view to take away: its figure, its data, and the code that makes both again."""

from pathlib import Path

from analysis.explorer.shown import Shown
from analysis.explorer.view import View

CODE = '''"""{title}

Made by `falloff explore`. In Falloff's environment and folder: python view.py. It prints what the page said, and
writes the trials, the summary and the figure that it showed.
"""

from pathlib import Path

from analysis import style
from analysis.explorer.shown import again
from analysis.explorer.view import View
from analysis.figures import explored

view = {view}

shown = again(view)
print(shown.text)
shown.points().to_csv("view-trials.csv", index=False)
shown.summary().to_csv("view-summary.csv", index=False)
style.save(explored.draw(shown), Path("view.svg"))
'''


def code(view: View, title: str) -> str:
    """Python that shows the view again, without the page."""
    return CODE.format(title=title.replace("\\", " ").replace('"', "'"), view=_spread(view))


def data(shown: Shown) -> str:
    """The trials shown, as CSV."""
    return shown.points().to_csv(index=False)


def name(view: View) -> str:
    """What the files are called, without their ending."""
    dataset = Path(view.sources[0]).name.removesuffix(".nc")
    return f"falloff-{dataset}-{view.ordinate}"


def _spread(view: View) -> str:
    """The view as Python, a field a line."""
    fields = "".join(f"    {field}={getattr(view, field)!r},\n" for field in view.__dataclass_fields__)
    return f"View(\n{fields})"
