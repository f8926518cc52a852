"""Latency and bandwidth of the links that HPL runs on: a benchmark of the network alone, tokens between pairs of nodes."""

import warnings
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import interconnects, short_names
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import evidence_of, known
from analysis.fitting.adequacy import follows
from analysis.fitting.batch import refit
from analysis.models import hockney
from analysis.statistics.draws import over_draws
from analysis.wording import byte_size, estimate, fixed, number, percent

DRAWS = 1000
SEED = 20261202
FIGURES = {"token_load": ("token_load",)}
SIDESTEP = 0.09  # of a doubling, between two networks
MICRO, GIGABIT = 1e-6, 1e9  # s, bit/s


@dataclass(frozen=True)
class Links:
    """The campaign of one pair of nodes and what follows from it, Hockney's latency and bandwidth of each network.

    `time` [s] is over (interconnect, token_bytes, block, run): half of a run's median round trip. `fits` holds `alpha` [s]
    and `beta` [s/B] over (interconnect, draw), fitted to mean times: draw 0 is of all runs, the others are of resampled
    ones. `parameters`, over (parameter, interconnect), has both as `value`, `low` and `high`, the 95 % percentile interval
    over the draws. Over (interconnect), `misfit` is the largest part by which a mean time of all runs differs from the
    model's, and `straight` whether the model follows the times. NaN and False where a network lacks a size.

    `load` [s] is the time one way over (block, interconnect, token_bytes, pairs) when several pairs exchange tokens at
    once, the mean over pairs and runs, None where there is none.
    """

    dataset: xr.Dataset
    time: xr.DataArray
    fits: xr.Dataset
    parameters: xr.Dataset
    misfit: xr.DataArray
    straight: xr.DataArray
    load: xr.DataArray | None = None

    @property
    def shortest(self) -> xr.DataArray:
        """The mean time of the smallest tokens [s], over (interconnect)."""
        return self.time.isel(token_bytes=0, drop=True).mean(["block", "run"])


def analyse(token_nodes: xr.Dataset, token_load: xr.Dataset | None = None) -> Links:
    """Fit the model to the means over all runs, and to those of DRAWS resamples.

    A resample draws blocks whole, the same for all networks and sizes, and within each trial of a drawn block its
    runs. With a single block it is its runs alone. Raises FalloffError when
    a dataset holds no token trial.
    """
    time = _one_way(token_nodes).transpose("interconnect", "token_bytes", "block", "run")
    means = np.concatenate([_mean(time.values)[..., None], _resampled(time.values)], axis=2)
    sizes, networks = time.token_bytes.values, {"interconnect": time.interconnect.values}
    estimates = np.stack([_fitted(sizes, of_network.T) for of_network in means])
    fits = xr.Dataset(
        {
            name: (("interconnect", "draw"), estimates[..., at])
            for at, name in enumerate(hockney.MODEL.parameters)
        },
        networks,
    )
    modelled = hockney.hockney(sizes, *estimates[:, 0].T[:, :, None])
    misfit = np.abs(means[..., 0] / modelled - 1).max(axis=1)
    straight = [_is_straight(*of_network) for of_network in zip(time.values, modelled)]
    return Links(
        dataset=token_nodes,
        time=time,
        fits=fits,
        parameters=over_draws(fits.to_array("parameter")),
        misfit=xr.DataArray(misfit, networks),
        straight=xr.DataArray(straight, networks),
        load=None if token_load is None else _one_way(token_load).mean("run"),
    )


def _one_way(dataset: xr.Dataset) -> xr.DataArray:
    """Half of the median round trip [s] of each run, mean over its pairs, over (run, block, *factors).

    The throughput would not do: few long tokens return within a window, and the last one seldom at its end.
    """
    time = dataset.token_round_trip.sel(quantile=0.5, drop=True).mean("pair") / 2
    runs = {f"run {run}": time.sel(run=run, drop=True) for run in time.run.values}
    laid_out = over_factors(dataset, runner="token_exchange", **runs).to_array("run")
    return laid_out.assign_coords(run=time.run.values).sortby("token_bytes")


def _fitted(sizes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """alpha [s] and beta [s/B], shape (draws, 2), of times [s] of shape (draws, size)."""
    # Of times with much noise the model's own guess may be no latency at all, where the fit would stay.
    return refit(hockney.OF_LOGARITHMS, sizes, np.log(times), {"alpha": times[:, 0]}).estimates


def _is_straight(time: np.ndarray, modelled: np.ndarray) -> bool:
    """Whether the model follows a network's times, shape (size, block, run).

    Their scatter grows with them: compared are the ratios to the model, each run as a repeat.
    """
    ratios = time.reshape(len(time), -1).T / modelled
    return follows(ratios, np.ones(len(modelled)), len(hockney.MODEL.parameters))


def _resampled(time: np.ndarray) -> np.ndarray:
    """Means of resampled runs, shape (interconnect, size, DRAWS), of times of shape (..., block, run)."""
    chance = np.random.default_rng(SEED)
    *cells, blocks, runs = time.shape
    drawn = chance.integers(blocks, size=(DRAWS, blocks))
    means = np.empty((*cells, DRAWS))
    for cell in np.ndindex(*cells):
        which = chance.integers(runs, size=(DRAWS, blocks, runs))
        means[cell] = _mean(time[cell][drawn[:, :, None], which])
    return means


def _mean(time: np.ndarray) -> np.ndarray:
    """The mean over the last two axes, blocks and runs, without what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mean of nothing is NaN
        return np.nanmean(time, axis=(-2, -1))


def in_words(values: xr.Dataset, decimals: int | None = None) -> str:
    """An estimate and its interval, such as "1.02 (0.99 to 1.05)", with so many decimals, or else three significant digits."""
    write = number if decimals is None else lambda value: fixed(value, decimals)
    return estimate(values.value, values.low, values.high, write)


def finding(study: Links) -> str:
    """How badly a line describes the links, in plain English (Markdown); empty where it describes them all."""
    missed = float(study.misfit.where(~study.straight).max())
    if not missed > 0:
        return ""
    return f"Latency and bandwidth describe the links badly: a message's time is up to {percent(missed, 0)} off their line."


def figures(study: Links) -> dict[str, Exhibit]:
    """The time of a message under load, where that was measured."""
    if study.load is None:
        return {}
    return {
        "token_load": Exhibit(
            "token_load",
            times_under_load(study),
            "Time of a message one way when several pairs of nodes exchange messages at once",
            Basis(
                evidence_of(study.dataset),
                study.load.sizes["block"],
                "every block shown, no intervals",
            ),
            "Time of a message over the number of pairs, a panel a size, a series a network",
            "A mark is the mean over a block's pairs and runs. All nodes share one machine's processors.",
            rests_on=FIGURES["token_load"],
        )
    }


def times_under_load(study: Links) -> Figure:
    """Time of a message one way [ms] over pairs, a panel a size, a series a network: every block."""
    times, names = 1e3 * study.load, short_names(study.dataset)
    with style.styled():
        figure, panels = drawing.new_figures(3.0, times.sizes["token_bytes"])
        for axes, size in zip(panels, times.token_bytes.values.tolist()):
            for rank, network in enumerate(times.interconnect.values.tolist()):
                values = times.sel(token_bytes=size, interconnect=network)
                places = values.pairs.values * 2 ** (SIDESTEP * (rank - 1))
                drawing.runs(axes, network, places, values, names.get(network, network))
            axes.set_yscale("log")
            drawing.log_ticks(axes.yaxis)
            drawing.doubling_axis(axes, times.pairs.values, "pairs")
            axes.set_title(f"{byte_size(size)} a message")
        panels[0].set_ylabel("time one way [ms]")
        drawing.legend_below(figure, panels, 3)
        return figure


def links_table(study: Links) -> Table:
    """Latency and bandwidth of each network's links, what they are to be, and how badly the two describe them."""
    columns = (
        "Network",
        "Latency α [µs] (95 % interval)",
        "Shortest message [µs]",
        "Bandwidth 1/β [Gbit/s] (95 % interval)",
        "The link's rate [Gbit/s]",
        "Largest misfit [%]",
    )
    rows = _rows(study)
    least, *_, most = map(byte_size, study.time.token_bytes.values.tolist())
    caption = (
        f"The links as one pair of nodes finds them, from messages of {least} to {most}. The misfit is the largest difference of "
        "a mean time from α + β s, for messages of size s. A bandwidth may exceed the link's rate: what fits into a shaper's "
        "burst passes at once"
    )
    basis = Basis(
        evidence_of(study.dataset),
        study.time.sizes["block"],
        "95 % percentile intervals over draws",
    )
    return Table("prediction-links", columns, "llrlrr", rows, caption, basis)


def _rows(study: Links) -> list[tuple[str, ...]]:
    names, described, rows = short_names(study.dataset), interconnects(study.dataset), []
    for network in study.time.interconnect.values.tolist():
        at = {"interconnect": network}
        alpha, beta = (study.parameters.sel({**at, "parameter": p}) for p in ("alpha", "beta"))
        # A longer time for a byte is less bandwidth.
        bandwidth = (8 / GIGABIT / beta).rename(low="high", high="low")
        rate = described[network].get("rate_bit_s")
        cells = (
            names[network],
            in_words(alpha / MICRO),
            number(known(study.shortest.sel(at) / MICRO)),
            in_words(bandwidth),
            "no limit" if rate is None else number(rate / GIGABIT),
            fixed(known(100 * study.misfit.sel(at)), 0),
        )
        rows.append(cells)
    return rows
