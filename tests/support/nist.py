"""NIST's statistical reference data sets for nonlinear regression, in files as NIST lays them out.

The files hold the text and numbers of NIST's, taken from public copies of them; only blanks may
differ.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.laws.models import Model

FOLDER = Path(__file__).parents[1] / "certified"
NUMBER = r"[-+]?\d[\d.]*(?:E[-+]?\d+)?"
FUNCTIONS = {
    "BoxBOD": lambda x, b1, b2: b1 * (1 - np.exp(-b2 * x)),
    "DanWood": lambda x, b1, b2: b1 * x**b2,
    "Eckerle4": lambda x, b1, b2, b3: b1 / b2 * np.exp(-0.5 * ((x - b3) / b2) ** 2),
    "Lanczos3": lambda x, b1, b2, b3, b4, b5, b6: (
        b1 * np.exp(-b2 * x) + b3 * np.exp(-b4 * x) + b5 * np.exp(-b6 * x)
    ),
    "MGH09": lambda x, b1, b2, b3, b4: b1 * (x**2 + x * b2) / (x**2 + x * b3 + b4),
    "MGH10": lambda x, b1, b2, b3: b1 * np.exp(b2 / (x + b3)),
    "MGH17": lambda x, b1, b2, b3, b4, b5: b1 + b2 * np.exp(-x * b4) + b3 * np.exp(-x * b5),
    "Misra1a": lambda x, b1, b2: b1 * (1 - np.exp(-b2 * x)),
    "Misra1b": lambda x, b1, b2: b1 * (1 - (1 + b2 * x / 2) ** -2),
    "Misra1c": lambda x, b1, b2: b1 * (1 - (1 + 2 * b2 * x) ** -0.5),
    "Misra1d": lambda x, b1, b2: b1 * b2 * x / (1 + b2 * x),
    "Nelson": lambda x, b1, b2, b3: b1 - b2 * x[0] * np.exp(-b3 * x[1]),
    "Rat42": lambda x, b1, b2, b3: b1 / (1 + np.exp(b2 - b3 * x)),
    "Rat43": lambda x, b1, b2, b3, b4: b1 / (1 + np.exp(b2 - b3 * x)) ** (1 / b4),
    "Roszman1": lambda x, b1, b2, b3, b4: b1 - b2 * x - np.arctan(b3 / (x - b4)) / np.pi,
    "Thurber": lambda x, b1, b2, b3, b4, b5, b6, b7: (
        (b1 + b2 * x + b3 * x**2 + b4 * x**3) / (1 + b5 * x + b6 * x**2 + b7 * x**3)
    ),
}


@dataclass(frozen=True)
class DataSet:
    """A model that guesses one of NIST's starts, x of shape (points,) or (quantities, points), and
    y of shape (points,).

    `estimates` and `deviations` are the certified values, keyed by parameter; `sigma` is the
    certified residual standard deviation. Nelson's model is one of log y.
    """

    model: Model
    x: np.ndarray
    y: np.ndarray
    estimates: dict[str, float]
    deviations: dict[str, float]
    sigma: float


def read(name: str, start: int) -> DataSet:
    """The data set called `name`, from NIST's first or second start (0 or 1)."""
    text = (FOLDER / f"{name}.dat").read_text()
    first, last = map(int, re.search(r"Data +\(lines (\d+) to (\d+)\)", text).groups())
    y, *x = np.array([line.split() for line in text.splitlines()[first - 1 : last]], float).T
    rows = re.findall(rf"^ *(b\d) = +{f'({NUMBER}) +' * 3}({NUMBER})$", text, re.M)
    *starts, estimates, deviations = (
        {row[0]: float(row[column]) for row in rows} for column in range(1, 5)
    )
    anywhere = dict.fromkeys(estimates, (-np.inf, np.inf))
    model = Model(name, "", "", FUNCTIONS[name], anywhere, lambda x, y: starts[start])
    sigma = float(re.search(rf"Residual Standard Deviation: +({NUMBER})", text)[1])
    y = np.log(y) if "log[y]" in text else y
    return DataSet(model, x[0] if len(x) == 1 else np.array(x), y, estimates, deviations, sigma)
