"""How predictions are made: of clusters that others measured, and of a user's own."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import paths
from analysis.dataset import csv_tables, measured, store
from analysis.dataset.points import setting_columns
from analysis.laws.fit import fit
from analysis.laws.models import _hpl_steps, _linear, find
from analysis.laws.models import hpl as messages
from analysis.laws.models._hpl_steps import Algorithm, Linear
from analysis.laws.ping_pong import Curve
from analysis.subjects import ping_pong_files, twin, twin_prediction
from analysis.subjects.cluster_model import ClusterModel, curve
from analysis.subjects.prediction import CASE, Prediction, errors, interval, series
from analysis.wording import number
from runners.records.journal import write_whole
from runners.records.record import FalloffError
from runners.tools import hpl

Simulate = Callable[..., Sequence[float]]  # of a testbed's description and HPL's points

SHORT, LONG = 64, 2**16  # B: of messages that tell the latency, and the bandwidth
BEYOND = 4  # times the rows or columns that were seen: no law is asked for more
MOST_SIMULATED = 200  # processes: HPL on a thousand takes SimGrid hours
LARGEST, MOST_PREDICTED = 50_000_000, 100_000  # N and processes that fit in some GB of memory
STEP, LEAST = 1e-5, np.array([1e-8, 1e-12, 1e-13])  # of a cost, as a part and at least [s]
EFFICIENCY_LAWS = ("constant", "amdahl", "universal_scalability", "power_law")


def model_of(points: pd.DataFrame) -> ClusterModel:
    """A cluster measured elsewhere, calibrated to its given `points`, or with its DGEMM rate."""
    about, times = measured.clusters()[points.cluster[0]], measured.ping_pong().groupby("curve")
    told = dict(about["model"])
    between = curve(times.get_group(about["ping_pong"]))
    inside = curve(times.get_group(told["inside"])) if "inside" in told else between
    model = ClusterModel(
        between,
        inside,
        1e9 * about["node"]["rate"]["value"] / about["node"]["rate"]["ranks"],
        link=told["link_byte_s"],
        send=1e-6 * told.get("send_us", 0.0),
        ranks_per_node=int(points.ranks_per_node[0]),
        by_column=told.get("by_column", False),
        algorithm=_algorithm(told),
    )
    given = points[points.role == "given"]
    return model.calibrated(given) if len(given) else model


def _algorithm(told: Mapping) -> Algorithm:
    """HPL's settings in the table `model` of a cluster's description."""
    names = ("bcast", "depth", "swap")
    return Algorithm(**{name: told[name] for name in names if name in told})


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
    if cases.empty:
        return pd.DataFrame(index=cases.index)
    best, n = points[small].groupby("nodes").rate.max(), cases.nodes.to_numpy(float)
    for name in laws:
        is_constant = name == "constant"  # the rate of a node
        try:
            law = fit(find(name), best.index, best / best.index if is_constant else best)
        except FalloffError:
            continue
        rates[name] = law.model.function(n, **law.estimates) * (n if is_constant else 1.0)
    few = points[small | (points.role == "given")]
    if len(few) > 2 and not messages.not_apart(few[CASE].to_numpy(float).T):
        near = (cases.P <= BEYOND * few.P.max()) & (cases.Q <= BEYOND * few.Q.max())
        algorithm = _algorithm(measured.clusters()[points.cluster[0]]["model"])
        fitted_rates = _fitted_messages(few, cases[near], algorithm)
        rates["hpl"] = pd.Series(fitted_rates, cases.index[near]).reindex(cases.index).values
    return pd.DataFrame(rates, cases.index)


def _fitted_messages(points: pd.DataFrame, cases: pd.DataFrame, algorithm: Algorithm) -> np.ndarray:
    """The law of HPL's messages with its three costs fitted. Large grids have too many paths to
    count them all, so only the longest one is, at costs that get better."""
    seconds = 1e-9 * hpl.operations(points.N.to_numpy(float)) / points.rate.to_numpy(float)
    costs = np.array([1e-5, 1e-9, 1e-9 / (points.rate / (points.P * points.Q)).max()])
    for _ in range(messages.TRIES):
        along = np.array([_longest_path(case, costs, algorithm) for case in points[CASE].values])
        before, costs = costs, _linear.nonnegative(along / seconds[:, None], np.ones(len(along)))
        if np.allclose(costs, before, rtol=1e-3):
            break
    times = np.array([_longest_path(case, costs, algorithm) @ costs for case in cases[CASE].values])
    return 1e-9 * hpl.operations(cases.N.to_numpy(float)) / times


def _longest_path(case: np.ndarray, costs: np.ndarray, algorithm: Algorithm) -> np.ndarray:
    """Messages, bytes and flops on the longest path at these costs [s], from what a little more of
    each cost adds to the time."""
    steps = STEP * np.maximum(costs, LEAST)
    alpha, beta, gamma = (costs + np.vstack([np.zeros(3), np.diag(steps)])).T
    network = Linear(alpha, beta)
    N, NB, P, Q = map(int, case)
    time, *more = _hpl_steps.time(N, NB, P, Q, network, gamma, N, algorithm=algorithm)
    return (np.array(more) - time) / steps


def predict(
    title: str,
    model: ClusterModel,
    cases: pd.DataFrame,
    simulate: Simulate | None = None,
    others: Mapping[str, np.ndarray] = {},
) -> Prediction:
    """Predict the cases, rows of N, NB, P and Q, by the law, and by what runs a
    simulation (`running.simulated_rates`) if it is given; with rates that `others` predict."""
    rates = {"law": model.rates(cases)}
    if simulate:
        rates["simulation"] = np.array(simulate(*model.simulation(cases)))
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


def of_measured(name: str, simulate: Simulate | None = None) -> Prediction:
    """Predict the held-out points of a cluster measured elsewhere, by its name in `series`."""
    points = series()[name]
    about, cases = measured.clusters()[points.cluster[0]], points[points.role == "held_out"]
    others = fitted(points).reindex(cases.index)
    model = model_of(points)
    title = about["title"]
    if model.ranks_per_node > 1 and len(about["hpl"]["ranks_per_node"]) > 1:
        title += f", {model.ranks_per_node} processes a node"
    return predict(title, model, cases, simulate, {law: others[law].values for law in others})


def predict_all(folder: Path, simulate: Simulate) -> Path:
    """Write a prediction of each cluster measured elsewhere, and of our emulated one, into
    `folder`, simulated where that takes minutes; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, points in series().items():
        is_small = int((points.P * points.Q).max()) <= MOST_SIMULATED
        prediction = of_measured(name, simulate if is_small else None)
        write_whole(folder / f"{name}.json", prediction.text())
    for name, prediction in of_emulated():
        write_whole(folder / f"emulated_{name}.json", prediction.text())
    return folder


def of_emulated() -> Iterator[tuple[str, Prediction]]:
    """Our emulated cluster by the same law, for each network: its nodes' rate and messages by size
    are given, and HPL on several nodes is predicted."""
    folders = [next(paths.REFERENCE.glob(f"{name}-*")) for name in twin_prediction.EXAMPLE]
    runs = [store.read(folder) for folder in folders]
    fitted = twin.fit(runs)
    for network, cases in twin_prediction.held_out_points(runs, fitted).groupby("interconnect"):
        link = fitted.links[network]
        times = [piece.at(size) for piece in link.pieces for size in piece.sizes]
        line = Curve(np.array(link.sizes, float), np.array(times))
        table = cases.mean("block").squeeze("interconnect").to_dataframe().reset_index()
        model = ClusterModel(line, line, fitted.rate.value)
        yield network, predict(f"Emulated, {network}", model, table)


def _written(value: float) -> float | None:
    """A number with as many digits as are written down; None for none."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


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
    simulate: Simulate | None,
) -> Prediction:
    """The prediction that `falloff predict` was asked for; its options are the arguments.

    Raises FalloffError for what is missing or cannot be.
    """
    if node is None or ping_pong is None or not cases:
        raise FalloffError("a prediction needs --node, --ping-pong and at least one --case")
    if not all(0 < rate < np.inf for rate in (node, 1.0 if link is None else link)):
        raise FalloffError("--node and --link are finite rates above 0")
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
        N, NB, P, Q = map(int, numbers.groups())
        if N > LARGEST or P * Q > MOST_PREDICTED:
            most = f"N {LARGEST:,} and {MOST_PREDICTED:,} processes"
            raise FalloffError(f"{option} {word}: at most {most} can be walked through")
        rows.append([N, NB, P, Q])
    return pd.DataFrame(rows, columns=CASE)


def _curve_of(file: Path) -> Curve:
    times = ping_pong_files.read(file).time.isel(series=0).mean("run")
    table = times.to_dataframe().time.dropna()
    if not (table.index <= SHORT).any() or table.index.max() < LONG:
        need = f"up to {SHORT} B and of {LONG // 2**10} KiB or more"
        raise FalloffError(f"{file} does not tell what messages cost: times are needed of {need}")
    return curve(pd.DataFrame({"message_bytes": table.index, "time_us": 1e6 * table.values}))


def measured_runs(file: Path) -> pd.DataFrame:
    """HPL's runs in a CSV file with the columns N, NB, P, Q and gflops: the median of each case, as
    `rate`; rows without one are left out. Raises FalloffError as `csv_tables` does."""
    table = csv_tables.read(file, whole=True)
    if not {*CASE, "gflops"} <= {*table}:
        there = ", ".join(map(str, table.columns))
        raise FalloffError(f"{file} needs the columns N, NB, P, Q and gflops; it has: {there}")
    table = table.dropna(subset=[*CASE, "gflops"])
    for name in setting_columns(table, *CASE, "gflops"):
        if table[name].nunique(dropna=False) > 1:
            raise FalloffError(f"{file} has several values of {name}: compare the rows of one")
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
