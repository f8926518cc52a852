"""What a figure is said to rest on is what changes it: every dataset that its section has is changed once."""

import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

import experiment
from analysis import paths, report
from analysis.evidence import exhibits
from analysis.studies import together
from runners.record import FalloffError

# Sections that are given one dataset alone, so that all of their figures rest on it.
ALONE = {"scaling", "size", "noise", "invariance", "blas", "fan_out", "token_exchange"}
PUBLISHED = {"top500"}  # rests on no dataset
TABLES = {"scale_model"}  # has no figure
SECTIONS = {*report.SECTIONS, *report.EXPERIMENTS, "scaling"}
# Names and settings of networks: data/interconnects.toml and the campaigns' own are described by their source.
OPENED: set[str] = set()


def _listen(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(f"{paths.DATA}/"):
        OPENED.add(arguments[0][len(f"{paths.DATA}/") :])


sys.addaudithook(_listen)


@cache
def stored(name):
    """A reference's first two blocks, of paths only two of these, so that it is analysed and drawn soon."""
    source = together.DATASETS[name]
    if not (paths.REFERENCE / "-".join(source)).exists():
        pytest.skip(f"no reference of {source[0]} on {source[1]} is stored")
    dataset = experiment.stored(*source)
    dataset = dataset.isel(trial=dataset.block <= 2)
    few = list(dict.fromkeys(dataset.path.values.tolist()))[::2][:2]
    return dataset.isel(trial=dataset.path.isin(few)) if together.DATASETS[name][1] == "paths" else dataset


def otherwise(dataset):
    """The dataset with every number that was measured a little different, each by a factor of its own."""
    chance = np.random.default_rng(1)
    measured = {
        name: array.copy(data=array * chance.uniform(0.999, 1.001, array.shape))
        for name, array in dataset.data_vars.items()
        if array.dtype.kind == "f"
    }
    return dataset.assign(measured)


def given(section):
    """The names of the datasets that the section's study is given, in its order, as `together.analyse` gives them."""
    with pytest.MonkeyPatch.context() as patch:
        got = {}
        marks = {name: xr.Dataset(attrs={"name": name}) for name in together.DATASETS}

        def of(study):
            def analyse(*datasets, **_):
                flat = [it for one in datasets for it in (one if isinstance(one, list) else [one])]
                names = [
                    it.attrs["name"] if isinstance(it, xr.Dataset) else it.names for it in flat if it is not None
                ]
                got[study] = [name for each in names for name in ([each] if isinstance(each, str) else each)]
                return SimpleNamespace(names=got[study])

            return analyse

        for study in SECTIONS:
            patch.setattr(getattr(together, study), "analyse", of(study))
        together.analyse(marks)
    # The report draws the paper's cases beside the emulated runs.
    return got[section] + (["hpl_scaling"] if section == "paper" else [])


# The other studies that one is of, or is drawn beside.
NEEDED = {"paper": {"scaling"}, "prediction": {"beyond"}}
DONE = {}


def once(analyse):
    """The same study of the very same datasets, which are kept so that no other ones are taken for them."""

    def remembered(*datasets, **named):
        key = (analyse, *map(id, datasets), *map(id, named.values()))
        if key not in DONE:
            DONE[key] = (analyse(*datasets, **named), datasets, named)
        return DONE[key][0]

    return remembered


def analysed(section, datasets):
    """The section's study of these datasets, and the scaling study where it is drawn beside it."""
    with pytest.MonkeyPatch.context() as patch:
        for study in SECTIONS - {section}:
            module, needed = getattr(together, study), study in NEEDED.get(section, ())
            patch.setattr(module, "analyse", once(module.analyse) if needed else lambda *datasets, **_: None)
        return together.analyse(datasets)


def drawn(section, datasets):
    """What each figure of a section shows: its lines, areas, marks and words. To write it as SVG takes longer."""
    studies = analysed(section, datasets)
    beside = (studies.scaling,) if section == "paper" else ()
    module = report.EXPERIMENTS.get(section) or report.SECTIONS[section][1]
    figures = module.draw(getattr(studies, section), *beside)
    return {name: [shown(artist) for artist in figure.findobj()] for name, figure in figures.items()}


def shown(artist):
    """Where a mark lies and what a word says, as text."""
    match artist:
        case Line2D():
            return repr(artist.get_xydata().tolist())
        case Collection():
            return repr((artist.get_offsets().tolist(), [path.vertices.tolist() for path in artist.get_paths()]))
        case Patch():
            return repr(artist.get_patch_transform().transform(artist.get_path().vertices).tolist())
        case Text():
            return repr((artist.get_text(), artist.get_position()))


@pytest.mark.parametrize("section", sorted(SECTIONS - ALONE - PUBLISHED - TABLES))
def test_figures_change_with_what_they_rest_on_and_with_nothing_else(section):
    """Each dataset of the section is changed in turn; the files of data/ are those that it opens."""
    names = list(dict.fromkeys(given(section)))
    datasets = {name: stored(name) for name in {*names, "hpl_scaling"}}
    OPENED.clear()
    before = drawn(section, datasets)
    opened = {name for name in OPENED if not name.startswith(("reference/", "raw/"))}
    assert before.keys() <= exhibits.EXHIBITS.keys()
    said = {figure: exhibits.find(figure) for figure in before}
    assert {it.section for it in said.values()} == {section}
    assert {file for it in said.values() for file in it.files} == opened
    for name in names:
        after = drawn(section, {**datasets, name: otherwise(datasets[name])})
        changed = {figure for figure in before if after[figure] != before[figure]}
        assert changed == {figure for figure, it in said.items() if name in it.datasets}, name


@pytest.mark.parametrize("section", sorted(ALONE))
def test_a_section_of_one_dataset_rests_on_it(section):
    """What its study is given is what its figures are said to rest on."""
    (name,) = given(section)
    assert {it.datasets for it in exhibits.EXHIBITS.values() if it.section == section} == {(name,)}


def test_every_figure_of_a_section_is_known():
    """The names in the mapping are those of the sections; a figure that nobody knows is answered with those that are."""
    assert {it.section for it in exhibits.EXHIBITS.values()} == SECTIONS - TABLES
    assert exhibits.find("figures/share.svg".split("/")[1]) == exhibits.find("share")
    with pytest.raises(FalloffError, match="no figure 'sahre'; there are: .*amplification.*share"):
        exhibits.find("sahre")
