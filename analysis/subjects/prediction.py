"""Written predictions of HPL's rate, with what was given and a digest, and their errors on clusters
that others measured.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.dataset import measured
from analysis.paths import MEASURED
from runners.records.record import FalloffError

CASE = ["N", "NB", "P", "Q"]
PREDICTIONS = MEASURED / "predictions"


@dataclass(frozen=True)
class Prediction:
    """HPL's rates as they were predicted: what was `given`, and `cases`, rows of nodes, N, NB, P, Q
    and a rate [Gflop/s] by each method: `law`, `simulation` and others (None where there is none).
    """

    title: str
    given: Mapping[str, Any]
    cases: pd.DataFrame

    def compared(self, points: pd.DataFrame) -> pd.DataFrame:
        """The cases that `points`, rows of N, NB, P, Q and rate [Gflop/s], have, with the rate that
        was `measured`; raises FalloffError if there are none."""
        found = self.cases.merge(
            points[[*CASE, "rate"]].rename(columns={"rate": "measured"}), on=CASE
        )
        if found.empty:
            raise FalloffError(
                "none of the predicted cases was measured: N, NB, P and Q must agree"
            )
        return found

    def text(self) -> str:
        """As JSON, with the digest of all that is in it."""
        rows = self.cases.astype(object).where(self.cases.notna(), None).to_dict("records")
        content = {"title": self.title, "given": self.given, "cases": rows}
        whole = {"sha256": _digest(content), **content}
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in whole.items()]
        return "{" + ",\n".join(lines) + "}\n"

    @property
    def digest(self) -> str:
        """The first digits of the SHA-256 of all that was given and predicted."""
        return json.loads(self.text())["sha256"][:12]


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def read(file: Path) -> Prediction:
    """A written prediction; raises FalloffError if it is none, or was changed since."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        digest = content.pop("sha256")
        cases = pd.DataFrame(content["cases"])
        numbers = cases.select_dtypes("number")
        if not (numbers[["nodes", *CASE, "law"]] > 0).all(axis=None):
            raise ValueError("a case is not above 0")
        if cases.drop(columns=numbers).notna().any(axis=None):
            raise ValueError("a case is no number")
        prediction = Prediction(**{**content, "cases": cases})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FalloffError(f"{file} is no prediction that `falloff predict` wrote") from error
    if digest != _digest(content):
        raise FalloffError(f"{file} was changed after it was written: predict again")
    return prediction


def series() -> dict[str, pd.DataFrame]:
    """HPL measured elsewhere, by cluster and processes a node: the rows of `measured.hpl` that are
    given or held out, with `rate` [Gflop/s], the best of variants and the median of repeats."""
    points = measured.hpl()
    points = points[points.role != "other"]
    is_tuned = points.kind_of_runs == "variants"
    points = points.assign(rate=points.rate_best.where(is_tuned, points.rate_median))
    every = {}
    for (cluster, ranks), rows in points.groupby(["cluster", "ranks_per_node"]):
        if (rows.role == "held_out").any():
            several = points[points.cluster == cluster].ranks_per_node.nunique() > 1
            every[f"{cluster}_{ranks}" if several else cluster] = rows.reset_index(drop=True)
    return every


def errors(folder: Path = PREDICTIONS) -> pd.DataFrame:
    """The written predictions of clusters measured elsewhere against what was measured: a row each
    held-out point, by `series` (its name), `cluster`, `title`, `digest`, `family` of its network
    and `node` (the rate of one [Gflop/s]), with the columns of `Prediction.compared`."""
    tables = []
    for name, points in series().items():
        if (file := folder / f"{name}.json").exists():
            prediction = read(file)
            about = measured.clusters()[points.cluster[0]]
            tables.append(
                prediction.compared(points[points.role == "held_out"]).assign(
                    series=name,
                    cluster=points.cluster[0],
                    digest=prediction.digest,
                    title=prediction.title,
                    family=about["family"],
                    node=about["node"]["rate"]["value"],
                )
            )
    return pd.concat(tables, ignore_index=True)


def interval(table: pd.DataFrame, method: str = "law") -> tuple[float, float]:
    """The factors from a predicted rate to the ends of its 90 % range: quantiles of measured over
    predicted rates at the points of `errors`, each series with the same weight."""
    known = table.dropna(subset=[method])
    ratio = known.measured / known[method]
    weight = 1 / known.groupby("series").series.transform("size")
    order = np.argsort(ratio.values)
    below = np.cumsum(weight.values[order]) - weight.values[order] / 2
    ends = np.interp([0.05, 0.95], below / weight.sum(), ratio.values[order])
    return float(ends[0]), float(ends[1])
