"""What the sources' claims and the explorer take from the experiments, one module each; the notebooks are their analysis.

A module has `analyse(campaign, ...) -> Study`, which the claims read. Its parameters are the campaigns that it needs: its
own first, then others, with the default None if it can do without.

For the explorer a module may define `OPENS`, by campaign: the `y`, `x` and `series` of the first view, and levels of other
factors.
"""

import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import xarray as xr


def every() -> Iterator[ModuleType]:
    """Every module of this folder, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return (import_module(f"{__name__}.{name}") for name in names)


def campaigns(module: ModuleType) -> dict[str, bool]:
    """The campaigns that an experiment reads, its own first, each with whether it is required."""
    parameters = inspect.signature(module.analyse).parameters.values()
    return {parameter.name: parameter.default is parameter.empty for parameter in parameters}


class Studies:
    """The study of every experiment, as an attribute with its name. It is made on first access, and
    None without data.

    `data` has the datasets by campaign.
    """

    def __init__(self, data: Mapping[str, xr.Dataset]) -> None:
        self.datasets = data

    def __getattr__(self, name: str) -> Any:
        module = import_module(f"{__name__}.{name}")
        needed = campaigns(module)
        given = {campaign: self.datasets.get(campaign) for campaign in needed}
        lacks = any(needed[campaign] and given[campaign] is None for campaign in needed)
        study = None if lacks else module.analyse(**given)
        setattr(self, name, study)
        return study
