"""The experiments, a module each.

A module has `analyse(campaign, ..., today=None) -> Study`, whose parameters are the campaigns that it reads: its own first,
then what is shown beside it, with None as default where it does without. `today` (of another campaign `today_NAME`) is a
shorter run to be compared with the campaign. `finding(study)` says in words (Markdown) what was found, `findings(study)` as
data; `figures(study)` are its figures by label, and `FIGURES` names the campaigns and files of data/ that each rests on.

For the explorer a module may say in `OPENS` by campaign what its page begins with: `y`, `x`, `series` of a view, and levels
of other factors.
"""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import xarray as xr

from runners.record import unknown

TODAY = "today"


def modules() -> Iterator[ModuleType]:
    """Every experiment, by name; a module without findings is a part of another."""
    return (module for module in _all() if hasattr(module, "findings"))


def _all() -> Iterator[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return (import_module(f"{__name__}.{name}") for name in names)


def campaigns(module: ModuleType) -> dict[str, bool]:
    """The campaigns that an experiment reads, its own first, and whether it cannot do without each."""
    parameters = inspect.signature(module.analyse).parameters.values()
    return {
        parameter.name: parameter.default is parameter.empty
        for parameter in parameters
        if not parameter.name.startswith(TODAY)
    }


def all_campaigns() -> list[str]:
    """The campaigns that any experiment reads, each once."""
    return list(dict.fromkeys(name for module in modules() for name in campaigns(module)))


def compared(module: ModuleType) -> dict[str, str]:
    """The campaigns of which a run of today is compared with the reference, and the parameters that take it."""
    first = next(iter(campaigns(module)), "")
    return {
        first if name == TODAY else name.removeprefix(f"{TODAY}_"): name
        for name in inspect.signature(module.analyse).parameters
        if name.startswith(TODAY)
    }


@dataclass(frozen=True)
class Traced:
    """A figure by its label: the `module` whose `analyse` and `figures` make it, and the campaigns and files of data/ that
    it rests on."""

    label: str
    module: str
    campaigns: tuple[str, ...]
    files: tuple[str, ...]


def traced() -> dict[str, Traced]:
    """All figures, by label."""
    return {
        label: Traced(
            label,
            module.__name__,
            tuple(name for name in rests_on if "." not in name),
            tuple(name for name in rests_on if "." in name),
        )
        for module in _all()
        for label, rests_on in getattr(module, "FIGURES", {}).items()
    }


def find_figure(label: str) -> Traced:
    """The figure of a label, also as a file's name; raises FalloffError that names all figures when there is none."""
    figures = traced()
    name = label.removesuffix(".svg").removeprefix("fig:").replace("-", "_")
    if name not in figures:
        raise unknown("figure", label, figures)
    return figures[name]


class Studies:
    """The study of every experiment, as an attribute of its name, made when it is first asked for; None without its data.

    `read(campaign)` gives a dataset, or None where there is none.
    """

    def __init__(self, read: Callable[[str], xr.Dataset | None]) -> None:
        self._read = cache(read)

    def __getattr__(self, name: str) -> Any:
        module = import_module(f"{__name__}.{name}")
        needed = campaigns(module)
        given = {campaign: self._read(campaign) for campaign in needed}
        lacks = any(needed[campaign] and given[campaign] is None for campaign in needed)
        study = None if lacks else module.analyse(**given)
        setattr(self, name, study)
        return study

    @property
    def datasets(self) -> dict[str, xr.Dataset]:
        """Every campaign of which there are data, by name."""
        read = {name: self._read(name) for name in all_campaigns()}
        return {name: dataset for name, dataset in read.items() if dataset is not None}
