"""Models of a curve y(x): one short file each, found by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from runners.records.record import unknown

Values = np.ndarray
Number = Any  # a float, or an array of them
# How a parameter of this unit is read: its symbol, a factor, a power and the unit.
_READ_AS = {
    "s": ("α", 1e6, 1, "us"),
    "s/B": ("1/β", 1e-6, -1, "MB/s"),
    "s/flop": ("1/γ", 1e-9, -1, "Gflop/s"),
}


@dataclass(frozen=True, eq=False)
class Model:
    """A curve: `function(x, ...)`, whose further arguments name the parameters.

    `equation` is LaTeX and `source` is its reference. `bounds` holds (lowest, highest) for each
    parameter. `guess(x, y)` returns start values from which a local solver finds the global
    optimum. x has shape (points,), or (quantities, points) for a curve of several quantities.
    `units` are the parameters' own for a y in SI units; empty where they depend on y's.
    `not_apart(x)` says why these x do not tell the parameters apart, whatever y; empty if they may.
    Parameters of shape (fits, 1) give curves of shape (fits, points).
    """

    title: str
    equation: str
    source: str
    function: Callable[..., np.ndarray]
    bounds: Mapping[str, tuple[float, float]]
    guess: Callable[[np.ndarray, np.ndarray], Mapping[str, float]]
    units: Mapping[str, str] = field(default_factory=dict)
    not_apart: Callable[[np.ndarray], str] = lambda x: ""

    @property
    def name(self) -> str:
        """The name of the curve's function, and of the model's file."""
        return self.function.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of the function's signature."""
        return tuple(self.bounds)

    def readable(
        self, parameter: str, value: float, low: float, high: float
    ) -> tuple[str, str, float, float, float]:
        """A parameter's symbol and unit, its value and interval, as people read them: the time of a
        byte or a flop as a rate, which is infinite for none."""
        as_is = parameter, 1.0, 1, ""
        symbol, factor, power, unit = _READ_AS.get(self.units.get(parameter, ""), as_is)
        with np.errstate(divide="ignore"):
            ends = factor * np.array([value, *(low, high)[::power]], float) ** power
        return symbol, unit, *ends.tolist()


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
