"""One contract for every notebook: it states what it shows, it can be read, and it makes no number
up.
"""

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from itertools import combinations, cycle, product

import numpy as np
import pytest
from executed import text, words
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from odd_names import ODD

from analysis import experiment, paths, wording
from analysis.quoting import as_written
from analysis.report import publish
from analysis.statements import notebooks, statement, style
from analysis.statements.exhibit import ELSEWHERE, WITHOUT_SCATTER
from runners.records.record import FalloffError

FILES = {file.stem: file for file in notebooks.of_experiments()}
SMALLEST = 8  # points, in a figure of the report's width
MOST_PANELS, MOST_COLUMNS = 4, 7
OPEN = {"", "undecided", "refused"}  # answers that leave a statement open


class Changed(Mapping):
    """The references by campaign, each of them changed."""

    def __init__(self, change):
        self._change = cache(lambda name: change(stored()[name]))

    def __getitem__(self, name):
        return self._change(name)

    def __iter__(self):
        return iter(stored())

    def __len__(self):
        return len(stored())


@cache
def stored():
    return experiment.stored_datasets()


def whole(dataset):
    return dataset


def first_block(dataset):
    """The dataset as it is after its first block."""
    return dataset.isel(trial=dataset.block.values <= 1)


def lost(dataset):
    """The dataset as if every trial of the design had failed."""
    is_point = (dataset.role == "point").values
    numbers = {}
    for name in dataset.data_vars:
        one = dataset.variables[name]
        if one.dtype.kind == "f" and one.dims[:1] == ("trial",):
            values = one.values.copy()
            values[is_point] = np.nan
            numbers[name] = (one.dims, values, one.attrs)
    status = dataset.status.copy(data=np.where(is_point, "failed", dataset.status))
    reason = dataset.reason.copy(data=np.where(is_point, "lost", dataset.reason))
    return dataset.assign(numbers).assign(status=status, reason=reason)


@cache
def data_of(change):
    return Changed(change)


@cache
def shown(name, change):
    """A notebook run on the references, each of them changed."""
    return notebooks.run(FILES[name], data_of(change))


CHANGES = [
    # One of the two on every second notebook; all others in `make test-all`.
    pytest.param(name, change, marks=[pytest.mark.more] if number % 4 not in some else [])
    for number, name in enumerate(FILES)
    for some, change in ((range(4), whole), ([0], first_block), ([2], lost))
]


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_no_number_is_made_up(name, change):
    """However few the data, words, captions, tables and figures are whole, and what is not known is
    none of them.
    """
    try:
        run = shown(name, change)
    except FalloffError as refused:
        assert change is not whole and str(refused)
        return
    words(run)
    assert statement.text(one.as_data() for one in run.statements)
    if change is not whole:
        assert not [one for one in run.statements if one.interval and one.n_of == "block"]
    if change is lost:
        # No run is behind what was measured elsewhere
        ours = [one for one in run.statements if one.evidence != ELSEWHERE]
        assert not [one for one in ours if one.estimate is not None]
        assert {one.words for one in ours} <= OPEN


@pytest.mark.parametrize("name", [name for name in FILES if notebooks.campaign_of(FILES[name])])
def test_another_tools_campaign_is_refused(name):
    """Where no trial is of the tool that a notebook is about, the answer is a line."""
    own = notebooks.campaign_of(FILES[name])
    runner = stored()[own].runner.copy(data=np.full(stored()[own].sizes["trial"], "ping"))
    with pytest.raises(FalloffError):
        notebooks.run(FILES[name], {**{own: stored()[own].assign_coords(runner=runner)}})


@pytest.mark.parametrize("name", FILES)
def test_what_is_stated_says_what_it_rests_on(name):
    """Each figure names campaigns and files that are there; each statement its campaign, its
    evidence and its n. What repeats itself has no interval over repeats."""
    run = shown(name, whole)
    for figure in run.figures.values():
        assert set(figure.campaigns) <= set(stored())
        assert all((paths.DATA / file).exists() for file in figure.files)
    assert len({one.subject for one in run.statements}) == len(run.statements)
    for one in run.statements:
        assert one.campaign in stored() or one.evidence == ELSEWHERE and not one.campaign
        assert one.n > 0 and one.n_of and one.quantity and one.unit
        assert bool(one.interval) == bool(one.interval_kind)
        assert not (one.evidence in WITHOUT_SCATTER and one.n_of == "block" and one.interval)
        assert statement.Statement.from_data(json.loads(json.dumps(one.as_data()))) == one


@pytest.mark.parametrize("name", FILES)
def test_figures_tables_and_code_can_be_read(name):
    """In the report's width no word is small, hides another or leaves the figure; a table fits a
    page; the code is short.
    """
    run = shown(name, whole)
    assert all(len(table.columns) <= MOST_COLUMNS for table in run.tables)
    for figure in run.figures.values():
        drawn = figure.figure
        assert drawn.get_figwidth() <= style.WIDTH and len(drawn.axes) <= MOST_PANELS
        placed_words, room = list(placed(drawn)), drawn.bbox.padded(1)
        assert min(word.get_fontsize() for word, _ in placed_words) >= SMALLEST
        for word, box in placed_words:
            assert room.containsx(box.x0) and room.containsx(box.x1), word
        for (word, box), (other, its_box) in combinations(placed_words, 2):
            assert not box.padded(-1).overlaps(its_box), (
                f"{figure.label}: {word.get_text()!r} over {other.get_text()!r}"
            )


def placed(figure):
    """Every word of a figure with its place, without the labels of ticks beyond an axis's ends,
    which are not drawn.
    """
    style.write_out(figure)
    with style.styled():
        FigureCanvasAgg(figure).draw()
    beyond = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low <= tick.get_loc() <= high:
                beyond |= {tick.label1, tick.label2}
    for word in figure.findobj(Text):
        if word.get_visible() and word.get_text().strip() and word not in beyond:
            yield word, word.get_window_extent()


PLAIN = [f"Wort{number:02}" for number in range(len(ODD))]


def called(names):
    """A change of a dataset: its networks, paths and nodes are called so, and its failed trials
    give such a reason.
    """

    def change(dataset):
        described = json.loads(dataset.attrs["interconnects"])
        for one, name in zip(described.values(), cycle(names)):
            one.update(name=name, short=name, source=name)
        with_names = dataset.assign_attrs(interconnects=json.dumps(described))
        hosts = [text and ",".join(names[: text.count(",") + 1]) for text in dataset.hosts.values]
        reasons = [text and names[0] for text in dataset.reason.values]
        told = {"hosts": hosts, "reason": reasons}
        return with_names.assign(
            {name: ("trial", told[name], dataset[name].attrs) for name in told}
        )

    return change


AS_PLAIN, AS_ODD = called(PLAIN), called(ODD)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", FILES)
def test_names_are_shown_as_they_are_written(name, tmp_path):
    """Whatever the letters of a name mean to Markdown, HTML, a figure or a terminal: what is said
    of odd names is what is said of plain ones, word for word."""
    plain, odd = (in_every_way(shown(name, change), tmp_path) for change in (AS_PLAIN, AS_ODD))
    for said, of_odd in zip(plain, odd):
        assert re.sub("|".join(PLAIN), lambda found: ODD[PLAIN.index(found[0])], said) == of_odd


def in_every_way(run, folder):
    """What a notebook tells, as the text of its page, the words of its figures and the lines of a
    terminal.
    """
    (folder / "figures").mkdir(exist_ok=True)
    drawn = []
    for label, figure in run.figures.items():
        (folder / "figures" / f"{label}.svg").write_text(style.svg(figure.figure))
        drawn += [word.get_text() for word, _ in placed(figure.figure)]
    told = [f"{one.subject}: {one.words}. {one.reason}" for one in run.statements]
    exhibits = [one.markdown for one in (*run.figures.values(), *run.tables)]
    page = publish.to_html("\n\n".join([text(run), *told, *exhibits]), {"title": "t"}, folder)
    page = html.unescape(re.sub(r"<[^>]+>", "", page.split("<body>")[1]))
    lines = [as_written(wording.plain(str(one))) for one in run.statements]
    return page, "\n".join(drawn), "\n".join(lines)


def test_every_figure_is_drawn_by_one_notebook():
    """By the one whose source says so; that of a user's tables of messages only where there are
    any.
    """
    drawn = [label for name in FILES for label in shown(name, whole).figures]
    assert len(drawn) == len(set(drawn))
    named = [label for file in FILES.values() for label in notebooks._figures(file)]
    assert sorted([*drawn, "messages"]) == sorted(named)


def test_an_unknown_figure_is_answered_with_those_that_are():
    """A name is known as a label, a reference or a file."""
    file, figure = notebooks.find_figure("fig:share", data_of(whole))
    assert (file.stem, figure.label) == ("40_hpl_scaling", "share")
    with pytest.raises(FalloffError, match="no figure 'sahre'.*; there are: .*falls, .*share"):
        notebooks.find_figure("sahre", {"hpl_scaling": stored()["hpl_scaling"]})


def test_the_lesson_shows_what_its_answers_say():
    """A slow hour that blocks remove, three runs that mislead, flat and open, bandwidth or latency:
    with the numbers of the answers.
    """
    made = notebooks.run(paths.NOTEBOOKS / "02_lesson.ipynb")
    loss, often = made.names["loss"], made.names["often"]
    error, held = loss["largest error"], loss["intervals that hold the true loss"]
    assert error.iloc[1] < 0.5 * error.iloc[0] and held.iloc[1] > 0.95 > 0.8 > held.iloc[0]
    assert often[3] == pytest.approx(0.12, abs=0.01) and often[12] == pytest.approx(0.01, abs=0.003)
    assert [one.words for one in made.shown if isinstance(one, statement.Statement)] == [
        "flat",
        "falls, size open",
    ]
    page = (paths.ROOT / "docs" / "lesson_answers.md").read_text(encoding="utf-8")
    for number in (*error, made.names["true"]):
        assert f"{100 * number:.1f}" in page
    gains = {row[0]: row[1] for row in made.tables[-1].rows}
    for network, what in product(("GigE", "10GE"), ("twice the bandwidth", "half the latency")):
        (gain,) = (gain for name, gain in gains.items() if as_written(name) == f"{network}, {what}")
        assert gain.strip("+").replace("\u00a0", " ") in " ".join(page.split()), network
