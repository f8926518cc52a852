"""Everything that is derived from the token campaign: latency, contention, claims and whole samples."""

import json
from dataclasses import dataclass

import xarray as xr

from analysis.inference.repeats import Repeats, repeats
from analysis.studies.token_claims import Claim, claims, is_host_bound
from analysis.studies.token_latency import Added, Latency, added, latency
from analysis.studies.token_pairs import Pairs, contention
from analysis.studies.token_passage import Passage, passage
from analysis.studies.token_points import Excess, Place, places, points


@dataclass(frozen=True)
class Sample:
    """Every run on a path with the most pairs and the largest token, system throughput [B/s].

    `limit` [B/s] is what the path's wires let the producers write, `busy` the share of its processors' time
    that the machine was; `host_bound` whether that limits it, and not the wires.
    """

    place: Place
    runs: Repeats
    limit: float
    busy: float
    host_bound: bool


@dataclass(frozen=True)
class TokenExchange:
    """The campaign's dataset and all that follows from it.

    `points` are those of `token_points.points`, without the trials of `excesses` and those that `passage` finds
    astray; `places` are of its paths.
    Latencies are of one pair, contention and claims of the largest token, claims and samples of the most
    pairs too. `today` is of a shorter run, made anew.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    places: tuple[Place, ...]
    excesses: tuple[Excess, ...]
    passage: Passage
    latencies: tuple[Latency, ...]
    added: tuple[Added, ...]
    contention: tuple[Pairs, ...]
    claims: tuple[Claim, ...]
    samples: tuple[Sample, ...]
    today: "TokenExchange | None" = None

    @property
    def most_pairs(self) -> int:
        """The most pairs that were planned."""
        return int(self.points.pairs.max())

    @property
    def largest_token(self) -> int:
        """The largest token that was planned [B]."""
        return int(self.points.token_bytes.max())


def analyse(dataset: xr.Dataset, today: xr.Dataset | None = None) -> TokenExchange:
    """Derive all of it, of today's run too; raises FalloffError when there is no token trial."""
    design = json.loads(dataset.attrs["design"])
    passed = passage(dataset)
    found, excesses = points(dataset, passed.astray)
    known = places(dataset)
    largest = found.isel(token_bytes=-1)
    crowded = largest.isel(pairs=-1)
    # Of one pair; NaN where it was not planned.
    alone = found.round_trip.sel(quantile=0.5).reindex(pairs=[1]).isel(pairs=0)
    latencies = tuple(latency(it, alone.sel(path=it.path)) for it in known)
    return TokenExchange(
        dataset=dataset,
        points=found,
        places=known,
        excesses=excesses,
        passage=passed,
        latencies=latencies,
        added=added(latencies, design["added"]["against"]),
        contention=tuple(contention(it, largest.throughput.sel(path=it.path)) for it in known),
        claims=claims(design["claims"], known, crowded),
        samples=tuple(_sample(it, crowded.sel(path=it.path)) for it in known),
        today=None if today is None else analyse(today),
    )


def _sample(place: Place, crowded: xr.Dataset) -> Sample:
    runs = repeats(crowded.runs.values.ravel())
    return Sample(place, runs, float(crowded.limit), float(crowded.busy.mean()), is_host_bound(crowded))
