"""Models of a curve y(x): one short file each, found by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from runners.records.record import unknown

Values = np.ndarray
Number = Any  # a float, or an array of them


@dataclass(frozen=True, eq=False)
class Model:
    """A curve: `function(x, ...)`, whose further arguments name the parameters.

    `equation` is LaTeX and `source` is its reference. `bounds` holds (lowest, highest) for each
    parameter. `guess(x, y)` returns start values from which a local solver finds the global
    optimum. x has shape (points,), or (quantities, points) for a curve of several quantities.
    Parameters of shape (fits, 1) give curves of shape (fits, points).
    """

    title: str
    equation: str
    source: str
    function: Callable[..., np.ndarray]
    bounds: Mapping[str, tuple[float, float]]
    guess: Callable[[np.ndarray, np.ndarray], Mapping[str, float]]

    @property
    def name(self) -> str:
        """The name of the curve's function, and of the model's file."""
        return self.function.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of the function's signature."""
        return tuple(self.bounds)


# Common names of models, and their files.
ALIASES = {"usl": "universal_scalability", "latency_bandwidth": "hockney"}


def names() -> list[str]:
    """The names of all models: the files in this folder, without shared helpers."""
    return sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))


def find(name: str) -> Model:
    """The model called `name`, or by one of ALIASES; raises FalloffError naming the existing
    ones."""
    module = ALIASES.get(name.lower(), name.lower())
    if module not in names():
        raise unknown("model", name, [*names(), *ALIASES])
    return import_module(f"{__name__}.{module}").MODEL
