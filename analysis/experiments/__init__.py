"""The experiments, a module each.

A module has `analyse(campaign, ..., today=None) -> Study`, whose parameters are the campaigns that it reads: its own first,
then what is shown beside it, with None as default where it does without. `today` (of another campaign `today_NAME`) is a
shorter run to be compared with the campaign. `finding(study)` says in words (Markdown) what was found, `findings(study)` as
data; `figures(study)` are its figures by label.
"""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

TODAY = "today"


def modules() -> Iterator[ModuleType]:
    """Every experiment, by name."""
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        module = import_module(f"{__name__}.{found.name}")
        if hasattr(module, "analyse"):
            yield module


def campaigns(module: ModuleType) -> dict[str, bool]:
    """The campaigns that an experiment reads, its own first, and whether it cannot do without each."""
    parameters = inspect.signature(module.analyse).parameters.values()
    known = [parameter for parameter in parameters if not parameter.name.startswith(TODAY)]
    return {parameter.name: parameter.default is parameter.empty for parameter in known}


def compared(module: ModuleType) -> dict[str, str]:
    """The campaigns of which a run of today is compared with the reference, and the parameters that take it."""
    own = next(iter(campaigns(module)), "")
    names = [name for name in inspect.signature(module.analyse).parameters if name.startswith(TODAY)]
    return {name.removeprefix(f"{TODAY}_") if name != TODAY else own: name for name in names}
