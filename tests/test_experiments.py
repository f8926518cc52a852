"""One contract for every experiment: it shows what it names, it can be read, and it makes no number up."""

import html
import inspect
import json
import re
from dataclasses import asdict
from functools import cache
from itertools import combinations, cycle, product
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from odd_names import ODD

import experiment
from analysis import experiments, findings, paths, publish, style, wording
from analysis.exhibit import WITHOUT_SCATTER, Table
from analysis.quoting import as_written
from runners.record import FalloffError

MODULES = {module.__name__.rpartition(".")[2]: module for module in experiments.modules()}
WITH_OTHERS = [
    name for name, module in MODULES.items() if not all(experiments.campaigns(module).values())
]
SMALLEST = 8  # points, in a figure of the report's width
MOST_PANELS, MOST_COLUMNS = 4, 7
# How a finding says that it has none.
OPEN = r"cannot be (said|told|compared)|is open|is undecided|no path is known"


@cache
def stored():
    """The studies of all references."""
    return experiment.stored_studies()


def whole(dataset):
    return dataset


def first_block(dataset):
    """The dataset as it is after its first block."""
    return dataset.isel(trial=dataset.block.values <= 1)


def lost(dataset):
    """The dataset as if every trial of the design had failed."""
    is_point = dataset.role == "point"
    numbers = {name: one for name, one in dataset.items() if one.dtype.kind == "f"}
    numbers = {name: values.where(~is_point) for name, values in numbers.items()}
    status = dataset.status.copy(data=np.where(is_point, "failed", dataset.status))
    reason = dataset.reason.copy(data=np.where(is_point, "lost", dataset.reason))
    return dataset.assign(numbers).assign(status=status, reason=reason)


REFUSED = ("twin",)  # with a single block: what cannot be fitted predicts nothing


@cache
def shown(name, changed, alone):
    """An experiment's `study`, `finding`, `findings`, `figures` and `tables` on its references, each of them changed;
    `alone` without those that it does without."""
    module = MODULES[name]
    given = {
        campaign: changed(stored().datasets[campaign])
        for campaign, needed in experiments.campaigns(module).items()
        if needed or not alone
    }
    study = module.analyse(**given)
    return SimpleNamespace(
        study=study,
        finding=module.finding(study),
        findings=list(module.findings(study)),
        figures=getattr(module, "figures", lambda _: {})(study),
        tables=[table for table in (make(study) for make in makers(module, type(study))) if table],
    )


def all_of(name):
    """What an experiment shows of its references."""
    return shown(name, whole, False)


def makers(module, kind):
    """The module's functions that make a table of its study."""
    for make in vars(module).values():
        if inspect.isfunction(make) and make.__module__ == module.__name__:
            given, made = [*make.__annotations__.values()], make.__annotations__.get("return")
            if made in (Table, Table | None) and given[:-1] == [kind]:
                yield make


@pytest.mark.parametrize(
    ("name", "changed", "alone"),
    [
        *product(MODULES, [whole, first_block, lost], [False]),
        *product(WITH_OTHERS, [whole], [True]),
    ],
)
def test_no_number_is_made_up(name, changed, alone):
    """However few the data, words, captions, tables and figures are whole, and what is not known is none of them."""
    try:
        told = shown(name, changed, alone)
    except FalloffError as refused:
        assert (changed is lost or name in REFUSED) and str(refused)
        return
    exhibits = [*told.figures.values(), *told.tables]
    text = "\n".join([told.finding, *(exhibit.markdown for exhibit in exhibits)])
    assert told.finding.strip() and not re.search(r"\b(nan|None|inf)\b", text)
    assert findings.text(map(asdict, told.findings))
    if changed is not whole:
        assert not [
            finding for finding in told.findings if finding.interval and finding.n_of == "block"
        ]
    if changed is lost:
        assert re.search(OPEN, told.finding)
        assert not [finding for finding in told.findings if finding.estimate is not None]


@pytest.mark.parametrize("name", MODULES)
def test_another_tools_campaign_is_refused(name):
    """Where no trial is of the tool that an experiment reads, the answer is a line."""
    given = {
        campaign: stored().datasets[campaign] for campaign in experiments.campaigns(MODULES[name])
    }
    own = next(iter(given))
    strange = np.full(given[own].sizes["trial"], "ping")
    given[own] = given[own].assign_coords(runner=given[own].runner.copy(data=strange))
    with pytest.raises(FalloffError):
        MODULES[name].analyse(**given)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_shown_says_what_it_rests_on(name):
    """Each figure names the campaigns and files that `falloff evidence trace` then finds; each statement its own campaign,
    its evidence and its n. What repeats itself has no interval over repeats."""
    told, traced = all_of(name), experiments.traced()
    for figure in told.figures.values():
        found = traced[figure.label]
        assert {*found.campaigns, *found.files} == set(figure.rests_on)
        assert set(found.campaigns) <= set(stored().datasets)
        assert all((paths.DATA / file).exists() for file in found.files)
    assert {finding.experiment for finding in told.findings} == {name}
    assert {one.campaign for one in told.findings} <= set(experiments.campaigns(MODULES[name]))
    assert len({finding.statement for finding in told.findings}) == len(told.findings)
    for finding in told.findings:
        assert finding.n > 0 and finding.n_of and finding.statement
        assert finding.quantity and finding.unit
        assert bool(finding.interval) == bool(finding.interval_kind)
        is_exact = finding.evidence in WITHOUT_SCATTER and finding.n_of == "block"
        assert not (is_exact and finding.interval)


@pytest.mark.parametrize("name", MODULES)
def test_figures_and_tables_can_be_read(name):
    """In the report's width no word is small, hides another or leaves the figure; a table fits a page."""
    told = all_of(name)
    assert all(len(table.columns) <= MOST_COLUMNS for table in told.tables)
    for exhibit in told.figures.values():
        assert (
            exhibit.figure.get_figwidth() <= style.WIDTH and len(exhibit.figure.axes) <= MOST_PANELS
        )
        words, room = list(placed(exhibit.figure)), exhibit.figure.bbox.padded(1)
        assert min(word.get_fontsize() for word, _ in words) >= SMALLEST
        for word, box in words:
            assert room.containsx(box.x0) and room.containsx(box.x1), word
        for (word, box), (other, its_box) in combinations(words, 2):
            assert not box.padded(-1).overlaps(its_box), (
                f"{exhibit.label}: {word.get_text()!r} over {other.get_text()!r}"
            )


def placed(figure):
    """Every word of a figure with its place, without the labels of ticks beyond an axis's ends, which are not drawn."""
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
    """A change of a dataset: its networks, paths and nodes are called so, and its failed trials give such a reason."""

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


@pytest.mark.parametrize("name", MODULES)
def test_names_are_shown_as_they_are_written(name, tmp_path):
    """Whatever the letters of a name mean to Markdown, HTML, a figure or a terminal: what is said of odd names is what is said of
    plain ones, word for word."""
    (page, words, line), odd = (
        in_every_way(shown(name, called(names), False), tmp_path) for names in (PLAIN, ODD)
    )
    for said, of_odd in zip((page, words, line), odd):
        assert re.sub("|".join(PLAIN), lambda found: ODD[PLAIN.index(found[0])], said) == of_odd


def in_every_way(told, folder):
    """What an experiment tells, as the text of its page, the words of its figures and the line of a terminal."""
    (folder / "figures").mkdir(exist_ok=True)
    words = []
    for label, exhibit in told.figures.items():
        (folder / "figures" / f"{label}.svg").write_text(exhibit.svg())
        words += [word.get_text() for word, _ in placed(exhibit.figure)]
    statements = [f"{one.statement}: {one.answer}. {one.reason}" for one in told.findings]
    exhibits = [one.markdown for one in (*told.figures.values(), *told.tables)]
    text = "\n\n".join([told.finding, *statements, *exhibits])
    page = publish.to_html(text, {"title": "t"}, folder).split("<body>")[1]
    page = html.unescape(re.sub(r"<[^>]+>", "", page))
    return page, "\n".join(words), as_written(wording.main_sentences(told.finding))


def test_every_figure_is_drawn_by_one_experiment():
    drawn = [figure.label for name in MODULES for figure in all_of(name).figures.values()]
    assert len(drawn) == len(set(drawn)) and {*drawn} == set(experiments.traced())


def test_an_unknown_figure_is_answered_with_those_that_are():
    """A name is known as a label, a reference or a file."""
    found = experiments.find_figure("share")
    assert experiments.find_figure("share.svg") == found == experiments.find_figure("fig:share")
    with pytest.raises(FalloffError, match="no figure 'sahre'.*; there are: .*agreement.*share"):
        experiments.find_figure("sahre")


def test_a_study_is_made_once_and_only_with_its_data():
    """Where a campaign is missing that an experiment cannot do without, there is none; what it does without may be."""
    asked = []
    studies = experiments.Studies(
        lambda campaign: (
            asked.append(campaign)
            or (None if campaign == "hpl_noise" else stored().datasets[campaign])
        )
    )
    assert asked == [] and studies.hpl_noise is None and studies.hpl_size is studies.hpl_size
    assert asked == ["hpl_noise", "hpl_size"]
    assert "hpl_noise" not in studies.datasets and "hpl_blas" in studies.datasets
