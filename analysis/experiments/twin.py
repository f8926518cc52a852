"""Twin: whether a simulation that was fitted to a cluster's micro-benchmarks predicts its HPL, and what other networks would do."""

from collections.abc import Iterator
from dataclasses import dataclass

import xarray as xr

from analysis import twin as twins
from analysis import twin_prediction
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin
from analysis.twin_prediction import Prediction
from analysis.wording import estimate, number, percent

READ = (
    "twin_held_out",
    "twin_what_if",
    "token_nodes",
    "token_load",
    "suspects",
    "hpl_scaling",
)
FIGURES = {"twin": READ}


@dataclass(frozen=True)
class Study:
    """The prediction, and the dataset of the simulated points that were held out."""

    dataset: xr.Dataset
    prediction: Prediction


def analyse(
    twin_held_out: xr.Dataset,
    twin_what_if: xr.Dataset,
    token_nodes: xr.Dataset,
    token_load: xr.Dataset,
    suspects: xr.Dataset,
    hpl_scaling: xr.Dataset,
) -> Study:
    """Fit the twin anew to the micro-benchmarks, and hold what was simulated on it against HPL's runs.

    Raises FalloffError where no twin can be fitted, or a simulation failed.
    """
    run = (token_nodes, token_load, suspects, hpl_scaling)
    fitted = twins.fit(run)
    points = twin_prediction.held_out_points(run, fitted)
    found = twin_prediction.predict(fitted, points, twin_held_out, twin_what_if)
    return Study(twin_held_out, found)


def finding(study: Study) -> str:
    """How well the twin predicts, and what it was fitted to, in plain English (Markdown)."""
    links = study.prediction.twin.links.values()
    gained = _best(study.prediction)
    parameters = f"It was fitted to {len(links)} networks and never saw HPL on several nodes."
    return " ".join(filter(None, (twin_prediction.finding(study.prediction), parameters, gained)))


def _best(prediction: Prediction) -> str:
    """What the most useful change of a network would gain: a sentence, empty without a what-if."""
    as_is = {(rate.network, rate.nodes): rate.rate for rate in prediction.what_if}
    gains = [
        (rate.rate / as_is[network, rate.nodes] - 1, rate)
        for network in prediction.twin.links
        for rate in prediction.what_if
        if rate.network.startswith(f"{network}_") and (network, rate.nodes) in as_is
    ]
    if not gains:
        return ""
    gain, rate = max(gains, key=lambda each: each[0])
    return f"Of the changes asked for, {rate.words} would gain most: {percent(gain)} on {rate.nodes} nodes."


def findings(study: Study) -> Iterator[Finding]:
    """The error of each prediction; primary is the largest on each network."""
    source, largest = origin("twin", study.dataset), {}
    for point in study.prediction.held_out:
        name = point.predicted.network
        largest[name] = max(largest.get(name, 0.0), abs(point.error))
    for point in study.prediction.held_out:
        rate = point.predicted
        yield of_estimate(
            source,
            f"The twin's HPL rate is that of the cluster: {rate.words}, {rate.nodes} nodes",
            "error",
            "1",
            point.error,
            (point.low, point.high),
            T_INTERVAL,
            n=point.blocks,
            n_of=f"{study.prediction.twin.evidence} block",  # the twin itself has no scatter
            answer=point.answer,
            primary=abs(point.error) == largest[rate.network],
        )


def figures(study: Study) -> dict[str, Exhibit]:
    """Rates measured, predicted and asked for."""
    return {
        "twin": Exhibit(
            "twin",
            twin_prediction.draw(study.prediction),
            "HPL's rate a node on the cluster, on its twin, and on networks that are not there",
            Basis("simulated"),
            "Rates over nodes, a panel for each network: crosses measured, marks simulated",
            f"Crosses: means of {study.prediction.twin.evidence} runs, which the fit never read. Bars: every fitted number at the worse "
            "or better end of its range.",
            rests_on=FIGURES["twin"],
        )
    }


def table(study: Study) -> Table:
    """The errors at the held-out points."""
    rows = []
    for point in study.prediction.held_out:
        rate = point.predicted
        cells = rate.words, str(rate.nodes), number(point.measured), str(point.blocks)
        error = estimate(point.error, point.low, point.high, percent)
        rows.append((*cells, estimate(rate.rate, rate.low, rate.high), error, point.answer))
    columns = (
        "Network",
        "Nodes",
        "Measured [Gflop/s]",
        "Blocks",
        "Twin [Gflop/s]",
        "Error [%]",
        "3 %",
    )
    caption = f"HPL on several nodes, held out; the error with its {T_INTERVAL}"
    return Table("twin-held-out", columns, "lrrrrrl", rows, caption)
