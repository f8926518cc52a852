"""The experiments, one module each.

A module has `analyse(campaign, ..., today=None) -> Study`. Its parameters are the campaigns that it
reads: its own first, then those shown beside it, with the default None if it can do without.
`today` (for another campaign `today_NAME`) is a shorter run to compare with the campaign.
`finding(study)` states the result in words (Markdown), `findings(study)` as data. `figures(study)`
are its figures by label, and `FIGURES` names the campaigns and files of data/ behind each.

For the explorer a module may define `OPENS`, by campaign: the `y`, `x` and `series` of the first
view, and levels of other factors.
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
    """Every experiment, by name. A module without findings is part of another experiment."""
    return (module for module in _all() if hasattr(module, "findings"))


def _all() -> Iterator[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return (import_module(f"{__name__}.{name}") for name in names)


def campaigns(module: ModuleType) -> dict[str, bool]:
    """The campaigns that an experiment reads, its own first, each with whether it is required."""
    parameters = inspect.signature(module.analyse).parameters.values()
    return {
        parameter.name: parameter.default is parameter.empty
        for parameter in parameters
        if not parameter.name.startswith(TODAY)
    }


def all_campaigns() -> list[str]:
    """All campaigns that any experiment reads, without duplicates."""
    return list(dict.fromkeys(name for module in modules() for name in campaigns(module)))


def compared(module: ModuleType) -> dict[str, str]:
    """The campaigns whose run of today is compared with the reference, and the parameters that take
    it."""
    first = next(iter(campaigns(module)), "")
    return {
        first if name == TODAY else name.removeprefix(f"{TODAY}_"): name
        for name in inspect.signature(module.analyse).parameters
        if name.startswith(TODAY)
    }


@dataclass(frozen=True)
class Traced:
    """A figure by its label: the `module` whose `analyse` and `figures` make it, and the campaigns
    and files of data/ behind it."""

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
    """The figure with this label or file name; raises FalloffError naming all figures if there is
    none."""
    figures = traced()
    name = label.removesuffix(".svg").removeprefix("fig:").replace("-", "_")
    if name not in figures:
        raise unknown("figure", label, figures)
    return figures[name]


class Studies:
    """The study of every experiment, as an attribute with its name. It is made on first access, and
    None without data.

    `read(campaign)` returns a dataset, or None if there is none.
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
        """Every campaign with data, by name."""
        read = {name: self._read(name) for name in all_campaigns()}
        return {name: dataset for name, dataset in read.items() if dataset is not None}
