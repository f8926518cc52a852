"""HPL on a cluster, predicted from the rate of one node and a ping-pong: by the law of HPL's own
messages, and by HPL's own code on SimGrid. A prediction is written down before it is compared.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq, isotonic_regression, least_squares

from analysis.dataset import csv_tables, measured
from analysis.descriptions import campaigns
from analysis.laws.fit import fit
from analysis.laws.models import _hpl_steps, find
from analysis.laws.models import hpl as messages
from analysis.laws.models._hpl_steps import Algorithm, Linear
from analysis.laws.piecewise import Value, split
from analysis.laws.ping_pong import Curve, SharedLinks
from analysis.paths import MEASURED
from analysis.subjects import ping_pong_files
from analysis.subjects.twin import FittedLink, by_size
from analysis.wording import number
from runners.records.record import FalloffError, Trial
from runners.testbeds import simulated
from runners.tools import hpl

RATES = (1e6, 1e15)  # flop/s of a process: a rate outside of these is a fault
PANELS = 400  # of a run; of more panels only a part is computed
ORDERS = 3  # matrices, each at least a tenth larger, that tell a panel's rate from the products'
MOST_SIMULATED = 200  # processes: HPL on a thousand takes SimGrid hours
CASE = ["N", "NB", "P", "Q"]
EFFICIENCY_LAWS = ("constant", "amdahl", "universal_scalability", "power_law")
PREDICTIONS = MEASURED / "predictions"
NETWORK = "network"  # the name of a simulation's only one
# HPL.dat's numbers of what `Algorithm` names
BCAST, SWAP = {"1ring": 0, "1ringM": 1, "2ring": 2}, {"bin-exch": 0, "long": 1, "mix": 2}


@dataclass(frozen=True)
class ClusterModel:
    """What is given of a cluster.

    `rate` [flop/s] is that of a process' matrix products, and `panel_rate` that of all operations
    in a panel; without it a panel's products take their time alone. `between` nodes and `inside` a
    node are ping-pongs, `link` [B/s] is the rate of a node's link (0: that of the ping-pong's
    longest message), and `send` [s] the processor's time for a message. Processes fill node after
    node, in the order of the grid's rows, or `by_column`.
    """

    between: Curve
    inside: Curve
    rate: float = 1e9
    panel_rate: float | None = None
    link: float = 0.0
    send: float = 0.0
    ranks_per_node: int = 1
    by_column: bool = False
    algorithm: Algorithm = field(default_factory=Algorithm)

    def rates(self, cases: pd.DataFrame) -> np.ndarray:
        """HPL's rate [Gflop/s] of each case, a row of N, NB, P and Q."""
        return np.array([self._rate(*map(int, case)) for case in cases[CASE].values])

    def _rate(self, N: int, NB: int, P: int, Q: int) -> float:
        ranks = np.arange(P * Q)
        if self.by_column:
            ranks = ranks.reshape(Q, P).T.ravel()
        link = self.link or self.between.bandwidth
        node = ranks // self.ranks_per_node
        links = SharedLinks(self.between, self.inside, node, link, self.send)
        panel_gamma = 1 / self.panel_rate if self.panel_rate else None
        costs = links, 1 / self.rate, PANELS, panel_gamma, self.algorithm
        return float(1e-9 * hpl.operations(N) / _hpl_steps.time(N, NB, P, Q, *costs)[0])

    def calibrated(self, runs: pd.DataFrame) -> "ClusterModel":
        """The model with the rate that these runs show, rows of N, NB, P, Q and rate [Gflop/s]; of
        ORDERS matrices or more the panel's rate, too.

        Raises FalloffError if no rate gives what was measured.
        """
        logarithms = np.log(runs.rate.to_numpy(float))

        def misses(rates: np.ndarray) -> np.ndarray:
            given = dict(zip(("rate", "panel_rate"), np.exp(rates)))
            return np.log(replace(self, **given).rates(runs)) - logarithms

        orders = np.sort(runs.N.to_numpy(float))
        if (orders[1:] > 1.1 * orders[:-1]).sum() + 1 >= ORDERS:
            start = float(np.log(1e9 * (runs.rate / (runs.P * runs.Q)).max()))
            fitted = least_squares(misses, [start, start - 2], diff_step=0.02, xtol=1e-4)
            rate, panel_rate = np.exp(fitted.x).tolist()
            return replace(self, rate=rate, panel_rate=panel_rate)
        try:
            solved = brentq(lambda rate: misses(np.array([rate])).mean(), *np.log(RATES))
        except ValueError:
            raise FalloffError(
                "no rate of a node gives what HPL reached on it: are its N, grid and rate right?"
            ) from None
        return replace(self, rate=float(np.exp(solved)))

    def simulated(self, cases: pd.DataFrame) -> np.ndarray:
        """HPL's rate [Gflop/s] of each case by HPL's own code on SimGrid, whose panels cost their
        products alone. Raises FalloffError without SimGrid, or for a simulation that fails."""
        settings = {
            **campaigns.read("hpl_paper_simulated").settings,
            "THRESHOLD": -1.0,  # nothing is computed that could be checked
            "PMAP": int(self.by_column),
            "BCAST": BCAST[self.algorithm.bcast],
            "DEPTH": self.algorithm.depth,
            "SWAP": SWAP[self.algorithm.swap],
            "interconnect": NETWORK,
            "ranks_per_node": self.ranks_per_node,
        }
        free = {"dgemm_k_half": 0.0, "dgemm_mn_half": 0.0, "dtrsm_share": 1.0, "strided_s": 0.0}
        rates = {
            **free,
            "dgemm_flop_s": self.rate * self.ranks_per_node,
            "node_byte_s": float("inf"),
            "core_byte_s": float("inf"),
        }
        points = [dict(zip(CASE, map(int, case))) for case in cases[CASE].values]
        nodes = [-(-point["P"] * point["Q"] // self.ranks_per_node) for point in points]
        description = {
            "name": NETWORK,
            "nodes": max(nodes),
            "runners": ["hpl"],
            "rates": {name: {"value": value} for name, value in rates.items()},
            "network": {NETWORK: self._network()},
        }

        def rate(point: Mapping[str, int], nodes: int) -> float:
            full = {**settings, **point, "nodes": nodes}
            trial = Trial("prediction", "point", "hpl", 1, 0, full)
            return float(hpl.parse(testbed.run(trial, hpl.commands(full)))["hpl_rate"])

        with (
            simulated.open_testbed(description, {}) as testbed,
            ThreadPoolExecutor(os.cpu_count()) as pool,
        ):
            return np.array([*pool.map(rate, points, nodes)])

    def _network(self) -> dict[str, Any]:
        """The network as SimGrid has it: latency, bandwidth, and factors of both by size."""
        between, link = self.between, self.link or self.between.bandwidth
        sizes = between.sizes.astype(int).tolist()
        pieces = split({size: [time] for size, time in zip(sizes, between.times.tolist())})
        latency, bandwidth = pieces[0].offset, Value(link, link, link)
        fitted = FittedLink(latency, bandwidth, tuple(pieces), 0.0, tuple(sizes), {})
        return {
            "latency": {"value": latency.value},
            "bandwidth": {"value": link},
            "by_size": by_size(fitted),
        }


def curve(times: pd.DataFrame) -> Curve:
    """A ping-pong's curve, from rows of message_bytes and time_us: the times by least squares of
    relative errors that never fall with the size, since TCP's scatter."""
    times = times[times.message_bytes > 0].sort_values("message_bytes")
    growing = isotonic_regression(np.log(1e-6 * times.time_us.to_numpy(float))).x
    return Curve(times.message_bytes.to_numpy(float), np.exp(growing))


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


def model_of(points: pd.DataFrame) -> ClusterModel:
    """A cluster measured elsewhere, calibrated to its given `points`, or with its DGEMM rate."""
    about, times = measured.clusters()[points.cluster[0]], measured.ping_pong().groupby("curve")
    told = dict(about["model"])
    between = curve(times.get_group(about["ping_pong"]))
    inside = curve(times.get_group(told["inside"])) if "inside" in told else between
    names = ("bcast", "depth", "swap")
    model = ClusterModel(
        between,
        inside,
        1e9 * about["node"]["rate"]["value"] / about["node"]["rate"]["ranks"],
        link=told["link_byte_s"],
        send=1e-6 * told.get("send_us", 0.0),
        ranks_per_node=int(points.ranks_per_node[0]),
        by_column=told.get("by_column", False),
        algorithm=Algorithm(**{name: told[name] for name in names if name in told}),
    )
    given = points[points.role == "given"]
    return model.calibrated(given) if len(given) else model


def fitted(points: pd.DataFrame) -> pd.DataFrame:
    """What laws that are fitted to the smaller half of a cluster's `points` predict for the rest
    [Gflop/s]: a column by the law's name, a row by the index of `points`, NaN where a law predicts
    nothing. Smaller are the fewer nodes, or of one number of nodes what is given.

    Laws of efficiency over nodes are fitted to the best rate of each. A law that these points do
    not determine has no column.
    """
    nodes = np.unique(points.nodes)
    small = (points.role == "given") & (points.nodes > nodes[0])
    laws: tuple[str, ...] = ()
    if not small.any():  # the given runs are on one node, so that sizes differ in their nodes
        small, laws = points.nodes <= nodes[(len(nodes) - 1) // 2], EFFICIENCY_LAWS
    cases, rates = points[~small & (points.role == "held_out")], {}
    best, n = points[small].groupby("nodes").rate.max(), cases.nodes.to_numpy(float)
    for name in laws:
        is_constant = name == "constant"  # the rate of a node
        try:
            law = fit(find(name), best.index, best / best.index if is_constant else best)
        except FalloffError:
            continue
        rates[name] = law.model.function(n, **law.estimates) * (n if is_constant else 1.0)
    few = points[small]
    if len(few) > 2 and not messages.not_apart(few[CASE].to_numpy(float).T):
        rates["hpl"] = _fitted_messages(few, cases)
    return pd.DataFrame(rates, cases.index)


def _fitted_messages(points: pd.DataFrame, cases: pd.DataFrame) -> np.ndarray:
    """The law of HPL's messages with its three costs fitted; large grids' paths take too long to
    count, so their time is computed for each try."""

    def rates(costs: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
        alpha, beta, gamma = np.exp(costs)
        network = Linear(np.array([alpha]), np.array([beta]))
        times = [
            _hpl_steps.time(N, NB, P, Q, network, gamma, PANELS)[0]
            for N, NB, P, Q in rows[CASE].astype(int).values.tolist()
        ]
        return 1e-9 * hpl.operations(rows.N.to_numpy(float)) / np.array(times)

    start = np.log([1e-5, 1e-9, 1e-9 / (points.rate / (points.P * points.Q)).max()])
    costs = least_squares(
        lambda costs: np.log(rates(costs, points) / points.rate),
        start,
        diff_step=0.02,
        xtol=1e-4,
        ftol=1e-6,
    ).x
    return rates(costs, cases)


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


def predict(
    title: str,
    model: ClusterModel,
    cases: pd.DataFrame,
    simulate: bool = False,
    others: Mapping[str, np.ndarray] = {},
) -> Prediction:
    """Predict the cases, rows of N, NB, P and Q, by the law, and by simulation if asked; with rates
    that `others` predict."""
    rates = {"law": model.rates(cases)}
    if simulate:
        rates["simulation"] = model.simulated(cases)
    rates |= others
    given = asdict(model)
    for name in ("between", "inside"):
        given[name] = [
            [int(size), _written(1e6 * time)] for size, time in zip(*given[name].values())
        ]
    numbers = {name: _written(value) for name, value in given.items() if isinstance(value, float)}
    table = cases[CASE].reset_index(drop=True).astype(int)
    table.insert(0, "nodes", -(-table.P * table.Q // model.ranks_per_node))
    written = {name: [*map(_written, values)] for name, values in rates.items()}
    return Prediction(title, {**given, **numbers}, table.assign(**written))


def of_measured(name: str, simulate: bool = False) -> Prediction:
    """Predict the held-out points of a cluster measured elsewhere, by its name in `series`."""
    points = series()[name]
    about, cases = measured.clusters()[points.cluster[0]], points[points.role == "held_out"]
    others = fitted(points).reindex(cases.index)
    model = model_of(points)
    title = about["title"]
    if model.ranks_per_node > 1 and len(about["hpl"]["ranks_per_node"]) > 1:
        title += f", {model.ranks_per_node} processes a node"
    return predict(title, model, cases, simulate, {law: others[law].values for law in others})


def predict_all(folder: Path) -> Path:
    """Write a prediction of each cluster measured elsewhere into `folder`, simulated where that
    takes minutes; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, points in series().items():
        simulate = int((points.P * points.Q).max()) <= MOST_SIMULATED
        (folder / f"{name}.json").write_text(of_measured(name, simulate).text(), encoding="utf-8")
    return folder


def errors(folder: Path = PREDICTIONS) -> pd.DataFrame:
    """The written predictions of clusters measured elsewhere against what was measured: a row each
    held-out point, by `cluster` (the name in `series`), `title`, `family` of its network and `node`
    (the rate of one [Gflop/s]), with the columns of `Prediction.compared`."""
    tables = []
    for name, points in series().items():
        if (file := folder / f"{name}.json").exists():
            prediction = read(file)
            about = measured.clusters()[points.cluster[0]]
            tables.append(
                prediction.compared(points[points.role == "held_out"]).assign(
                    cluster=name,
                    title=prediction.title,
                    family=about["family"],
                    node=about["node"]["rate"]["value"],
                )
            )
    return pd.concat(tables, ignore_index=True)


def interval(table: pd.DataFrame, method: str = "law") -> tuple[float, float]:
    """The factors from a predicted rate to the ends of its 90 % range: quantiles of measured over
    predicted rates at the points of `errors`, each cluster with the same weight."""
    known = table.dropna(subset=[method])
    ratio = known.measured / known[method]
    weight = 1 / known.groupby("cluster").cluster.transform("size")
    order = np.argsort(ratio.values)
    below = np.cumsum(weight.values[order]) - weight.values[order] / 2
    ends = np.interp([0.05, 0.95], below / weight.sum(), ratio.values[order])
    return float(ends[0]), float(ends[1])


def _written(value: float) -> float | None:
    """A number with as many digits as are written down; None for none."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def read(file: Path) -> Prediction:
    """A written prediction; raises FalloffError if it is none, or was changed since."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        digest = content.pop("sha256")
        prediction = Prediction(**{**content, "cases": pd.DataFrame(content["cases"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FalloffError(f"{file} is no prediction that `falloff predict` wrote") from error
    if digest != _digest(content):
        raise FalloffError(f"{file} was changed after it was written: predict again")
    return prediction


# ---- of a user's own cluster ----


def asked(
    node: float | None,
    ran: str | None,
    ping_pong: Path | None,
    inside: Path | None,
    cases: Sequence[str],
    ranks_per_node: int,
    by_column: bool,
    link: float | None,
    look_ahead: bool,
    simulate: bool,
) -> Prediction:
    """The prediction that `falloff predict` was asked for; its options are the arguments.

    Raises FalloffError for what is missing or cannot be.
    """
    if node is None or ping_pong is None or not cases:
        raise FalloffError("a prediction needs --node, --ping-pong and at least one --case")
    if not node > 0 or (link is not None and not link > 0):
        raise FalloffError("--node and --link are rates above 0")
    between = _curve_of(ping_pong)
    model = ClusterModel(
        between,
        _curve_of(inside) if inside else between,
        1e9 * node / ranks_per_node,
        link=1e9 / 8 * (link or 0.0),
        ranks_per_node=ranks_per_node,
        by_column=by_column,
        algorithm=Algorithm(depth=int(look_ahead)),
    )
    if ran:
        run = _cases([ran], "--run").assign(rate=node)
        if int(run.P[0] * run.Q[0]) != ranks_per_node:
            raise FalloffError(
                f"--run {ran} has {run.P[0]} x {run.Q[0]} processes: on one node there are "
                f"{ranks_per_node} (--ranks-per-node)"
            )
        model = model.calibrated(run)
    title = f"one node of {node:g} Gflop/s, ping-pong {ping_pong.name}"
    return predict(title, model, _cases(cases, "--case"), simulate)


def _cases(words: Sequence[str], option: str) -> pd.DataFrame:
    rows = []
    for word in words:
        numbers = re.fullmatch(r"(\d{1,9}),(\d{1,9}),(\d{1,6}),(\d{1,6})", word.replace(" ", ""))
        if not numbers or not all(map(int, numbers.groups())):
            raise FalloffError(f"{option} {word}: give N,NB,P,Q as in 52360,88,2,4")
        rows.append([int(number) for number in numbers.groups()])
    return pd.DataFrame(rows, columns=CASE)


def _curve_of(file: Path) -> Curve:
    times = ping_pong_files.read(file).time.isel(series=0).mean("run")
    table = times.to_dataframe().time.dropna()
    if (table.index > 0).sum() < 2:
        raise FalloffError(f"{file} has times of one size: short and long messages are needed")
    return curve(pd.DataFrame({"message_bytes": table.index, "time_us": 1e6 * table.values}))


def measured_runs(file: Path) -> pd.DataFrame:
    """HPL's runs in a CSV file with the columns N, NB, P, Q and gflops: the median of each case, as
    `rate`. Raises FalloffError as `csv_tables` does."""
    table = csv_tables.read(file, *CASE, "gflops", whole=True)
    csv_tables.require_numbers(table, *CASE, "gflops")
    csv_tables.refuse(table, table.gflops <= 0, "column 'gflops' has to be above 0")
    return table.groupby(CASE, as_index=False).gflops.median().rename(columns={"gflops": "rate"})


def answer(prediction: Prediction, runs: pd.DataFrame | None = None) -> str:
    """A prediction for a terminal, with the errors against `runs` if there are any."""
    low, high = interval(errors())
    table = prediction.cases if runs is None else prediction.compared(runs)
    rows = pd.DataFrame(
        {
            "nodes": table.nodes,
            "N": table.N,
            "NB": table.NB,
            "grid": [f"{P} x {Q}" for P, Q in zip(table.P, table.Q)],
            "law": table.law.map(number),
            "90 % range": [f"{number(low * law)} to {number(high * law)}" for law in table.law],
        }
    )
    if "simulation" in table:
        rows["simulated"] = table.simulation.map(number)
    if runs is not None:
        rows["measured"] = table.measured.map(number)
        rows["law's error"] = [f"{100 * error:+.1f} %" for error in table.law / table.measured - 1]
    lines = [f"HPL on {prediction.title} [Gflop/s]; digest {prediction.digest}", ""]
    lines.append(rows.to_string(index=False))
    return "\n".join(lines).replace("\u00a0", " ")
