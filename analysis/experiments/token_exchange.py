"""Pairs of nodes exchange tokens: do the network topologies compare as the early Beowulf's study says?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, published, style
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import token_models
from analysis.experiments.token_models import MB, MBIT, TokenModels
from analysis.findings import T_INTERVAL, Finding, known, of_estimate, origin
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED, judge_range
from analysis.statistics.repeats import Repeats, repeats
from analysis.attributes import short_names
from analysis.token_points import Excess, Passage, Place, passage, places, points
from analysis.token_readings import readings
from analysis.wording import (
    HARD_SPACE,
    UNKNOWN,
    between,
    byte_size,
    counted,
    fixed,
    number,
    percent,
)

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "token_claims": ("token_exchange", "published/beowulf.toml"),
}
OPENS = {"token_exchange": {"token_bytes": 8192}}

NOT_RUN, HOST_BOUND = "not run", "host-bound"
# The machine limits a topology, and not its wires, when these carry less than the first while its processors are busy
# for more than the second of the time.
LITTLE_CARRIED, NEARLY_BUSY = 0.75, 0.85

# Topologies, in the words of the study.
NOUNS = {
    "shared_wire": "one wire that all share",
    "local_wire": "local wires",
    "local_router": "local wires of the routed mesh",
    "remote_switch": "switched remote wires",
    "remote_router": "routed remote wires",
    "bonded": "bonded local wires",
    "bonded_switch": "bonded, switched remote wires",
    "bonded_shared": "the dual net",
}
Pair = tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """The study's claim that the throughput of one topology over another's lies in a range, at one `rate` [bit/s].

    `rate` is None where nothing was run for it. `kind` is that of `judge_range`, of the geometric-mean ratio; it is
    HOST_BOUND whatever the ratio where the machine limits either topology, and NOT_RUN where a path is missing;
    `reason` names them. `of_bests` is the ratio of the best runs, as the source took it, and `of_wires` that of what
    the two topologies' wires can carry. Unknown is NaN.
    """

    about: str
    of: str
    against: str
    rate: float | None
    at_least: float
    at_most: float
    kind: str
    reason: str = ""
    ratios: tuple[float, ...] = ()
    ratio: float = np.nan
    interval_90: Pair = (np.nan, np.nan)
    interval_95: Pair = (np.nan, np.nan)
    of_bests: float = np.nan
    of_wires: float = np.nan
    blocks: int = 0


@dataclass(frozen=True)
class Sample:
    """Every run on a path with the most pairs and the largest token, system throughput [B/s].

    `limit` [B/s] is what the path's wires let the producers write, `busy` [1] the share of its processors' time
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
    astray; `places` are of its paths. Claims and samples are of the most pairs and the largest token. `models` are of
    one pair's latency and of contention. `today` is of a shorter run, made anew.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    places: tuple[Place, ...]
    excesses: tuple[Excess, ...]
    passage: Passage
    models: TokenModels
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

    @property
    def rate(self) -> float:
        """The rate of the study's wires [bit/s]."""
        return published.beowulf()["wires"]["rate"]["value"]

    @property
    def at_rate(self) -> tuple[Claim, ...]:
        """The claims at the rate of the study's wires, and those for which nothing was run."""
        return tuple(claim for claim in self.claims if claim.rate in (self.rate, None))


def analyse(token_exchange: xr.Dataset, today: xr.Dataset | None = None) -> TokenExchange:
    """Derive all of it, of today's run too; raises FalloffError when there is no token trial."""
    design = attributes.design(token_exchange)
    passed = passage(token_exchange)
    found, excesses = points(token_exchange, passed.astray)
    planned = places(token_exchange)
    crowded = found.isel(token_bytes=-1, pairs=-1)
    return TokenExchange(
        dataset=token_exchange,
        points=found,
        places=planned,
        excesses=excesses,
        passage=passed,
        models=token_models.analyse(token_exchange, found, planned, design["added"]["against"]),
        claims=claims(design["claims"], planned, crowded),
        samples=tuple(_sample(place, crowded.sel(path=place.path)) for place in planned),
        today=None if today is None else analyse(today),
    )


def claims(
    design: Mapping[str, Mapping[str, Any]], planned: tuple[Place, ...], at: xr.Dataset
) -> tuple[Claim, ...]:
    """Judge the design's claims at each rate.

    `at` holds `throughput` (block, path), `runs` (run, block, path) and `limit` (path), all in B/s, and
    `busy` (block, path), the share of its processors' time that the machine was busy, NaN where it is not known.
    """
    judged = []
    for about, asked in design.items():
        of, against = (_by_rate(planned, asked[end]) for end in ("of", "against"))
        both = sorted(of.keys() & against.keys())
        for rate in both:
            fields = _judged(at, of[rate], against[rate], asked)
            judged.append(Claim(about, **asked, rate=rate, **fields))
        if not both:
            reason = _missing(asked, of, against)
            judged.append(Claim(about, **asked, rate=None, kind=NOT_RUN, reason=reason))
    return tuple(judged)


def _by_rate(planned: tuple[Place, ...], topology: str) -> dict[float, Place]:
    return {place.rate: place for place in planned if place.topology == topology}


def _missing(asked: Mapping[str, Any], of: Mapping, against: Mapping) -> str:
    """Why two topologies cannot be compared."""
    if of and against:
        return "the two were not run at the same rate"
    missing = [asked[end] for end, run in (("of", of), ("against", against)) if not run]
    return f"{' and '.join(missing)} was not run"


def _judged(at: xr.Dataset, of: Place, against: Place, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a claim that follow from the throughputs of its two topologies."""
    above, below = (at.sel(path=place.path) for place in (of, against))
    in_blocks = (above.throughput / below.throughput).values
    judged = judge_range(in_blocks, asked["at_least"], asked["at_most"], ratios=True)
    fields = {
        "kind": judged.kind,
        "reason": judged.reason,
        "ratios": tuple(in_blocks[np.isfinite(in_blocks)].tolist()),
        "of_wires": float(above.limit / below.limit),
        "ratio": judged.estimate,
        "interval_90": judged.interval_90,
        "interval_95": judged.interval_95,
        "blocks": judged.n,
    }
    if not judged.n:
        return fields | {"reason": "no block has both readings"}
    fields["of_bests"] = float(above.runs.max() / below.runs.max())
    limited = [place.topology for place in (of, against) if is_host_bound(at.sel(path=place.path))]
    if judged.n > 1 and limited:
        reason = f"the machine limits {' and '.join(limited)}, not the wires"
        fields |= {"kind": HOST_BOUND, "reason": reason}
    return fields


def is_host_bound(here: xr.Dataset) -> bool:
    """Whether the machine and not its wires limits a path; `here` is as `at` of `claims`, of one path."""
    carried = float(mean_over(here.throughput, "block", "rate") / here.limit)
    return carried < LITTLE_CARRIED and float(here.busy.mean()) > NEARLY_BUSY


def _sample(place: Place, crowded: xr.Dataset) -> Sample:
    runs = repeats(crowded.runs.values.ravel())
    busy, limit = float(crowded.busy.mean()), float(crowded.limit)
    return Sample(place, runs, limit, busy, is_host_bound(crowded))


def finding(study: TokenExchange) -> str:
    """The study's claims at its own rate, and what its printed throughput counts, in plain English (Markdown)."""
    compared = [claim for claim in study.at_rate if np.isfinite(claim.ratio)]
    if not compared:
        reason = study.at_rate[0].reason if study.at_rate else "nothing was run at its rate"
        return f"**The study's topologies cannot be compared**: {reason}. {_of_printed()}"
    decided = [claim for claim in compared if claim.kind in (SUPPORTED, CONTRADICTED)]
    said = [
        *_of_first(study, decided),
        _of_counts(study.at_rate),
        *(_of_contradicted(claim) for claim in decided[1:] if claim.kind == CONTRADICTED),
        _of_limit(study),
        *_of_left_out(study),
        *_of_today(study),
        _of_printed(),
    ]
    return " ".join(filter(None, said))


def _of_first(study: TokenExchange, decided: list[Claim]) -> Iterator[str]:
    evidence = f"{_evidence(study)} evidence"
    if not decided:
        blocks = counted(study.points.sizes["block"], "block")
        yield f"**Whether the study's ratios are found again is open** ({blocks}, {evidence})."
        return
    first = decided[0]
    yield f"**At {_mbit(study.rate)} the {_ratio(first)}** ({_rests_on(first)}, {evidence})."
    yield f"The study says: {_said(first)}. The wires alone would give {fixed(first.of_wires, 2)}."
    of, against = (f"{_noun(name)} to {_filled(study, name)}" for name in (first.of, first.against))
    yield f"Median runs fill {of} and {against}."
    yield f"The best runs, which the study kept, give {fixed(first.of_bests, 2)}."


def _filled(study: TokenExchange, topology: str) -> str:
    """The share of what a topology's wires carry at the study's rate that its median run does."""
    shares = [
        sample.runs.median / sample.limit
        for sample in study.samples
        if (sample.place.topology, sample.place.rate) == (topology, study.rate)
    ]
    return percent(known(shares[0]), 0)


def _of_counts(told: tuple[Claim, ...]) -> str:
    kinds = [claim.kind for claim in told]
    named = (SUPPORTED, CONTRADICTED, UNDECIDED, HOST_BOUND, NOT_RUN)
    counts = {kind: kinds.count(kind) for kind in named if kind in kinds}
    *most, last = [f"{n} {'is' if n == 1 else 'are'} {kind}" for kind, n in counts.items()]
    listed = f"{', '.join(most)} and {last}" if most else last
    return f"Of the study's {counted(len(told), 'statement')} {listed}."


def _of_contradicted(claim: Claim) -> str:
    return f"The {_ratio(claim)} (95 % interval {_ends(claim)}). The study says: {_said(claim)}."


def _of_limit(study: TokenExchange) -> str:
    limited = [claim for claim in study.claims if claim.kind == HOST_BOUND]
    if not limited:
        return ""
    rates = " and ".join(_mbit(rate) for rate in sorted({claim.rate for claim in limited}))
    ratios = counted(len(limited), "ratio")
    return (
        f"At {rates} the machine's processors limit {ratios}, so that these say nothing of wires."
    )


def _of_left_out(study: TokenExchange) -> Iterator[str]:
    """Whether tokens went where they should, and what was left out."""
    trials, astray = counted(study.passage.trials, "trial"), int(study.passage.astray.sum())
    if astray:
        yield f"**{astray} of {trials} are left out**: their tokens took another way than described."
    elif study.passage.trials:
        yield f"Byte counters confirm the way of the tokens in all {trials}."
    if study.excesses:
        yield f"**{counted(len(study.excesses), 'trial')} left out**: the pairs wrote more than the wires carry."


def _of_today(study: TokenExchange) -> Iterator[str]:
    """What a shorter run of today gives for the claims at the study's rate."""
    for claim in study.today.at_rate if study.today else ():
        if claim.blocks:
            yield f"In today's shorter run the {_ratio(claim)} ({_rests_on(claim)})."


def _of_printed() -> str:
    throughput = published.beowulf()["throughput"]["local_wire"]["value"]
    of_one, of_both = readings()[:2]
    if of_one.possible or not of_both.possible:
        return ""
    return (
        f"The study's {number(throughput / MB, 2)} MB/s must count what both ends wrote: one end alone would need "
        f"{percent(of_one.framed, 0)} of its {of_one.wires} wires (published evidence)."
    )


def _ratio(claim: Claim) -> str:
    ratio = fixed(claim.ratio, 2)
    return f"throughput of {_noun(claim.of)} is {ratio} times that of {_noun(claim.against)}"


def _noun(topology: str) -> str:
    return NOUNS.get(topology, topology.replace("_", " "))


def _said(claim: Claim) -> str:
    """Such as "about 4 times the dual net"."""
    return claim.about.split(": ")[-1]


def _rests_on(claim: Claim) -> str:
    interval = "" if np.isnan(claim.interval_95[0]) else f"95 % interval {_ends(claim)}, "
    return interval + counted(claim.blocks, "block")


def findings(study: TokenExchange) -> Iterator[Finding]:
    """Every claim at every rate, as data."""
    source = origin("token_exchange", study.dataset)
    for claim in study.claims:
        at = "" if claim.rate is None else f" at {claim.rate / MBIT:g} Mbit/s"
        further = {"n": claim.blocks, "answer": claim.kind, "reason": claim.reason}
        yield of_estimate(
            source,
            f"{claim.about}{at}",
            "ratio",
            "1",
            claim.ratio,
            claim.interval_95,
            T_INTERVAL,
            **further,
        )


def claims_over_ranges(study: TokenExchange) -> Figure:
    """Each claim's ratio at the study's rate, of every block and on average, and the range that supports it."""
    told = study.at_rate
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.42 * len(told))
        look = style.Look(style.INK, "o", "-")
        beside = {"weight": "bold", "va": "center", "transform": axes.get_yaxis_transform()}
        for row, claim in enumerate(told):
            width = claim.at_most - claim.at_least
            axes.barh(
                row, width, 0.75, claim.at_least, color=style.MARGIN, label="supports the claim"
            )
            blocks = {"color": style.FAINT, "markersize": 3.5, "label": "a block"}
            axes.plot(claim.ratios, np.full(len(claim.ratios), row - 0.2), look.marker, **blocks)
            ends, label = (claim.ratio, *claim.interval_95), "mean and 95 % interval"
            drawing.interval_across(axes, look, row + 0.12, *ends, label)
            axes.text(1.02, row, claim.kind, **beside)
        drawing.rows(axes, [claim.about.replace(": ", ":\n") for claim in told])
        axes.set(xlabel="ratio of throughputs [1]", xlim=(0, None))
        drawing.legend_below(figure, axes, 3)
        return figure


def figures(study: TokenExchange) -> dict[str, Exhibit]:
    """Ratios beside the study's claims, and the models' figures."""
    ratios = Exhibit(
        "token_claims",
        claims_over_ranges(study),
        f"Ratios of throughputs at the study's {_mbit(study.rate)}, {_crowd(study)}",
        _basis(study, "95 % t intervals of geometric means"),
        "Ratios with intervals beside the ranges that support the study's claims",
        "The shaded range supports the claim and was decided before the run.",
        rests_on=FIGURES["token_claims"],
    )
    return {"token_claims": ratios, **token_models.figures(study.models)}


def claims_table(study: TokenExchange) -> Table:
    """Every claim at every rate with its verdict."""
    caption = (
        f"The study's claims as ratios of throughputs, {_crowd(study)}. Beside them stand the ratio of the "
        "best runs, as the study took it, and that of what the wires can carry. A claim is supported if its "
        "90 % interval lies in the range, contradicted if the 95 % interval lies outside. It is host-bound if "
        f"a topology carries less than {percent(LITTLE_CARRIED, 0)} of what its wires can, with the processors "
        f"busy for over {percent(NEARLY_BUSY, 0)} of the time"
    )
    columns = (
        *("Claim (range)", "Rate [Mbit/s]", "Ratio (95 % interval)"),
        *("Best runs", "Wires", "Blocks", "Verdict"),
    )
    rows = [_claim_row(claim) for claim in study.claims]
    basis = _basis(study, "geometric means with 95 % t intervals")
    return Table("token-claims", columns, "lrlrrrl", rows, caption, basis)


def _claim_row(claim: Claim) -> tuple[str, ...]:
    interval = "" if np.isnan(claim.interval_95[0]) else f" ({_ends(claim)})"
    return (
        f"{claim.about} ({between((claim.at_least, claim.at_most), 2)})",
        UNKNOWN if claim.rate is None else f"{claim.rate / MBIT:g}",
        fixed(known(claim.ratio), 2) + interval,
        fixed(known(claim.of_bests), 2),
        fixed(known(claim.of_wires), 2),
        str(claim.blocks),
        claim.kind,
    )


def readings_table() -> Table:
    """The printed throughput as a share of what wires carry, for each way to count the tokens written."""
    throughput = published.beowulf()["throughput"]["local_wire"]["value"]
    caption = (
        f"What the study counted: its {number(throughput / MB, 2)} MB/s as a share of what wires carry. A token "
        "crosses the wires twice, there and back, and whether both writes count is not said. Throughputs here "
        "count the producers' writes alone, which is half; ratios are the same"
    )
    columns = ("Tokens written by", "Wires", "Tokens alone", "With headers", "Possible")
    rows = [
        (
            reading.writes,
            f"{reading.wires} of {_mbit(reading.rate)}",
            percent(reading.share, 0),
            percent(reading.framed, 0),
            "yes" if reading.possible else "no",
        )
        for reading in readings()
    ]
    return Table("token-readings", columns, "llrrl", rows, caption, Basis("published"))


def samples_table(study: TokenExchange) -> Table:
    """Best, median and worst run on every path beside what its wires carry."""
    names = short_names(study.dataset)
    caption = (
        f"Every run with {_crowd(study)}; of such a sample the study kept the best. The share is the median's "
        "of what the wires carry. Busy are the processors, in bold where they and not the wires are the limit"
    )
    columns = (
        *("Path", "Best [MB/s]", "Median [MB/s]", "Worst [MB/s]"),
        *("Share of the wires", "Busy", "Runs"),
    )
    rows = [_sample_row(names[sample.place.path], sample) for sample in study.samples]
    basis = _basis(study, "all runs of all blocks")
    return Table("token-samples", columns, "lrrrrrr", rows, caption, basis)


def _sample_row(name: str, sample: Sample) -> tuple[str, ...]:
    runs, busy = sample.runs, percent(known(sample.busy), 0)
    megabytes = [number(known(value / MB)) for value in (runs.maximum, runs.median, runs.minimum)]
    return (
        name,
        *megabytes,
        percent(known(runs.median / sample.limit), 0),
        f"**{busy}**" if sample.host_bound else busy,
        str(runs.n),
    )


def _crowd(study: TokenExchange) -> str:
    return f"{counted(study.most_pairs, 'pair')} and tokens of {byte_size(study.largest_token)}"


def _mbit(rate: float) -> str:
    return f"{rate / MBIT:g}{HARD_SPACE}Mbit/s"


def _ends(claim: Claim) -> str:
    return between(claim.interval_95, 2)


def _evidence(study: TokenExchange) -> str:
    return origin("token_exchange", study.dataset)["evidence"]


def _basis(study: TokenExchange, intervals: str) -> Basis:
    return Basis(_evidence(study), study.points.sizes["block"], intervals)


def _printed(design: Mapping) -> pd.DataFrame:
    """The throughput [B/s] that the source printed for the most pairs and the largest token."""
    source = published.beowulf()
    found, exchange = source["throughput"]["local_wire"], source["exchange"]
    levels = {
        "pairs": exchange["most_pairs"]["value"],
        "token_bytes": exchange["largest_token"]["value"],
    }
    told = f"{source['source']['short']}, {found['where']}"
    return pd.DataFrame(
        [{"path": "local_wire_10m", **levels, "value": found["value"], "text": told}]
    )


PRINTED = {("token_exchange", "token_throughput"): _printed}
