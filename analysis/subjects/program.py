"""An unchanged program on emulated nodes in slow motion: whether its efficiency falls off with the network, where its time
goes, what a faster network saves, and whether a replay of its recording agrees."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from analysis import exhibit, parallel_efficiency
from analysis.attributes import short_names
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors
from analysis.statements import (
    Statement,
    basis_in_words,
    estimated,
    judged_fall,
    of_every_point,
    origin,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import t_interval
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, judge
from analysis.subjects import replay
from analysis.what_if import IDEAL
from analysis.wording import fixed, number, percent, percent_range
from runners.calls import Recording
from runners.record import FalloffError

INTERVALS = "90 % t intervals"
LEVEL = 0.90
MOST_OFF = 0.05  # of a replay's time from the emulated one
_DOES = {FALLS_OFF: "falls off", FLAT: "stays flat", RISES: "rises"}


def times(runs: xr.Dataset) -> xr.Dataset:
    """`time` of the program at full speed, and `mean` and `most` of what its ranks compute [s], over (block, interconnect,
    nodes); NaN where a trial is missing or was refused. `program` is a scalar coordinate.

    Raises FalloffError for several programs, or without the links that have no rate.
    """
    return at_only_level(_laid_out(runs), "program")


def _laid_out(runs: xr.Dataset) -> xr.Dataset:
    """`times` over (program, block, interconnect, nodes)."""
    names = {"time": "program_time", "mean": "computing_mean", "most": "computing_most"}
    columns = {name: runs[reading] for name, reading in names.items()}
    laid = over_factors(runs, runner="program", **columns).assign_attrs(runs.attrs)
    if IDEAL not in laid.interconnect.values:
        remedy = f"add {IDEAL} to the campaign's interconnects"
        raise FalloffError(f"the program did not run on {IDEAL} links: {remedy}")
    return laid.transpose("program", "block", "interconnect", "nodes")


def by_program(*campaigns: xr.Dataset | None) -> dict[str, xr.Dataset]:
    """The runs of each program in these campaigns, by its name; None is a campaign that did not run."""
    return {
        name: runs.isel(trial=(runs.program == name).values)
        for runs in campaigns
        if runs is not None
        for name in dict.fromkeys(runs.program.values.tolist())
    }


def times_of_each(campaigns: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """`times` of each program, over (program, block, interconnect, nodes), from its runs (`by_program`).

    Raises FalloffError for a program that did not run on unlimited links.
    """
    each = [_laid_out(runs).sel(program=[name]) for name, runs in campaigns.items()]
    return xr.concat(each, "program", join="outer", combine_attrs="drop")


def replays_of_each(times: xr.Dataset, runs: xr.Dataset | None) -> xr.Dataset:
    """`programs.replays` of a campaign, over the programs, networks and nodes of `times`; NaN where there is none."""
    like = times.isel(block=0, drop=True)
    if runs is None:
        return like.where(False)
    return replay.replays(runs).drop_vars("block", errors="ignore").reindex_like(like)


def slower(times: xr.Dataset, recorded: Mapping[int, Recording]) -> dict[str, float]:
    """How many times as long as in the recordings, by number of ranks, ranks computed on each network, as "gige 8": processor
    time varies with what else a machine does."""
    means, found = times["mean"].mean("block"), {}
    for nodes, ranks in recorded.items():
        own = sum(call.seconds for calls in ranks for call in calls) / len(ranks)
        for network in times.interconnect.values.tolist():
            took = means.sel(interconnect=network, nodes=nodes).item()
            if np.isfinite(took) and own > 0:
                found[f"{network} {nodes}"] = round(took / own, 3)
    return found


def factors(times: xr.Dataset) -> xr.Dataset:
    """POP's factors [1] over (interconnect, nodes), from the means over the blocks."""
    means = times.mean("block", skipna=True)
    return parallel_efficiency.factors(means.time, means["mean"], means.most)


def falls(runs: xr.Dataset, times: xr.Dataset) -> list[Statement]:
    """What the program's transfer efficiency loses on each network from the fewest nodes to the most; primary is the largest
    fall."""
    source, names, margin = origin(runs), short_names(runs), designs.read(runs).margin
    ran = times.dropna("nodes", how="all", subset=["time"])
    times = ran if ran.sizes["nodes"] else times
    transfer = np.log(times.time.sel(interconnect=IDEAL, drop=True) / times.time)
    first, last = int(times.nodes.min()), int(times.nodes.max())
    span = f"from {first} to {last} nodes" if first < last else f"beyond {last} nodes"
    change = differences(transfer, first)
    judged = {
        network: judge(change.sel(interconnect=network).values, margin, source["evidence"])
        for network in times.interconnect.values.tolist()
        if network != IDEAL
    }
    largest = max(judged, key=lambda network: judged[network].fall or 0.0, default="")
    program = times.program.item()
    return [
        judged_fall(
            source,
            f"The emulated program {program} loses efficiency on {names[network]} {span}",
            verdict,
            primary=network == largest,
            values=tuple((-np.expm1(change.sel(interconnect=network).dropna("block"))).values),
            series=network,
            sentence=_fall_in_words(
                program, names[network], verdict, transfer.sel(interconnect=network)
            ),
        )
        for network, verdict in judged.items()
    ]


def _fall_in_words(program: str, name: str, verdict, transfer: xr.DataArray) -> str:
    first, last = int(transfer.nodes.min()), int(transfer.nodes.max())
    start, end = np.exp(transfer.mean("block")).sel(nodes=[first, last]).values
    if first == last:
        return (
            f"Whether `{program}` falls off on {name} is open: it ran on {last} nodes only, and a fall needs two numbers of "
            f"nodes. Its transfer efficiency is {percent(end)} there."
        )
    if verdict.answer not in _DOES:
        return f"Whether `{program}` falls off on {name} from {first} to {last} nodes is open. {verdict.reason}"
    return (
        f"**`{program}` {_DOES[verdict.answer]} on {name}**: its transfer efficiency is {percent(start)} on {first} nodes and "
        f"{percent(end)} on {last}, a fall of {percent(verdict.fall)} ({basis_in_words(verdict)})."
    )


def saved(runs: xr.Dataset, times: xr.Dataset, replayed: xr.DataArray | None) -> list[Statement]:
    """What each faster network saves of the program's time on the slowest one, on the most nodes, by the blocks' means with
    their intervals; the replay's number stands beside it."""
    at = times.time.drop_sel(interconnect=IDEAL)
    at = at.sel(nodes=int(at.nodes.max()))
    if at.isnull().all() or at.sizes["interconnect"] < 2:
        return []
    names, program, nodes = short_names(runs), times.program.item(), at.nodes.item()
    means = at.mean("block")
    slowest = means.interconnect.values[np.argmax(means.values)]
    return [
        _saving(
            origin(runs),
            program,
            (names[network], names[slowest]),
            1 - at.sel(interconnect=network) / at.sel(interconnect=slowest),
            _replayed_saving(replayed, network, slowest, nodes),
        )
        for network in at.interconnect.values.tolist()
        if network != slowest
    ]


def _saving(
    source: dict, program: str, names: tuple[str, str], each: xr.DataArray, replayed: float | None
) -> Statement:
    values, nodes = each.dropna("block").values, each.nodes.item()
    estimate = t_interval(values, LEVEL) if len(values) else (np.nan,) * 3
    ends = percent_range(tuple(map(float, estimate[1:])))
    interval = f" (90 % interval {ends}, {len(values)} blocks)" if len(values) > 1 else ""
    beside = "" if replayed is None else f"; by the replay it saves {percent(replayed)}"
    return estimated(
        source,
        f"{names[0]} saves time of the emulated program {program} against {names[1]} on {nodes} nodes",
        "share",
        estimate,
        n=len(values),
        kind="90 % t interval over the blocks",
        sentence=f"**{names[0]} saves {percent(float(estimate[0]))} of `{program}`'s time on {names[1]}** on {nodes} nodes{interval}{beside}.",
    )


def _replayed_saving(replayed: xr.DataArray | None, network: str, slowest: str, nodes: int):
    try:
        one, other = (
            replayed.sel(interconnect=name, nodes=nodes).item() for name in (network, slowest)
        )
    except (AttributeError, KeyError):
        return None
    return 1 - one / other if np.isfinite(one / other) else None


def replayed(replays: xr.Dataset | None, program: str) -> xr.DataArray | None:
    """The time of a program [s] over (interconnect, nodes) in `programs.replays`; None if it was not replayed."""
    if replays is None or program not in replays.program.values:
        return None
    return replays.time.sel(program=program, drop=True)


def agreement(
    runs: xr.Dataset, times: xr.Dataset, replayed: xr.DataArray | None
) -> list[Statement]:
    """How far the replay is from the emulation at most; nothing without a replay."""
    if replayed is None:
        return []
    off = off_by(times, replayed)
    known = abs(off.values[np.isfinite(off.values)])
    if not len(known):
        return []
    program, within = times.program.item(), int((known <= MOST_OFF).sum())
    statement = estimated(
        origin(runs),
        f"A replay of {program} takes as long as the emulated program",
        "error",
        (float(known.max()), None, None),
        n=len(known),
        n_of="point",
        words="within" if known.max() <= MOST_OFF else "beyond",
        margin=MOST_OFF,
        sentence=f"The replay of `{program}`'s recording is within {percent(MOST_OFF, 0)} of the emulation at {within} of {len(known)} points, "
        f"and at most {percent(known.max())} off.",
    )
    return [of_every_point(statement, off.notnull())]


def off_by(times: xr.Dataset, replayed: xr.DataArray) -> xr.DataArray:
    """How much longer a replay takes than the emulated program in the mean over the blocks [1], over (interconnect, nodes)
    without the links that have no rate; NaN where either is unknown."""
    off = replayed / times.time.mean("block") - 1
    return off.drop_sel(interconnect=IDEAL, errors="ignore")


def network_off_by(times: xr.Dataset, replayed: xr.DataArray) -> xr.DataArray:
    """By how much more a network adds in a replay than it adds in the emulated program [1], as a share of the emulated time, over
    (interconnect, nodes); a network adds the time on it less the time on unlimited links."""

    def added(time: xr.DataArray) -> xr.DataArray:
        return time.drop_sel(interconnect=IDEAL) - time.sel(interconnect=IDEAL, drop=True)

    emulated = times.time.mean("block")
    return (added(replayed) - added(emulated)) / emulated


def missed_term(times: xr.Dataset, replays: xr.Dataset) -> tuple[float, str, int, str] | None:
    """Where a replay is furthest off, and what differs most there: by how much it is off [1], the network, the number of
    nodes, and the factor of the parallel efficiency with both its values. None without a point that both have.

    `times` and `replays` are of one program. Ranks of the replay compute as long as the emulated ones did, so that the factors
    of both have the ratio of the times as their product.
    """
    off = off_by(times, replays.time)
    if off.isnull().all():
        return None
    at = off.isel(abs(off).argmax(...))
    network, nodes = at.interconnect.item(), at.nodes.item()
    ours = factors(times).sel(interconnect=network, nodes=nodes)
    theirs = parallel_efficiency.factors(replays.time, replays["mean"], replays.most)
    theirs = theirs.sel(interconnect=network, nodes=nodes)
    parts = [name for name in parallel_efficiency.FACTORS if name != "parallel"]
    most = max(parts, key=lambda name: abs(np.log(theirs[name].item() / ours[name].item())))
    both = f"{percent(ours[most].item())}, replayed {percent(theirs[most].item())}"
    return at.item(), network, nodes, f"{most.replace('_', ' ')}: {both}"


def agreement_table(
    campaigns: Mapping[str, xr.Dataset], times: xr.Dataset, replays: xr.Dataset
) -> exhibit.Table:
    """How far each program's replay is from its emulation, where most, and which factor differs most there. `times` and
    `replays` are over (program, ...); `campaigns` are the runs of each program."""
    rows = []
    for program, runs in campaigns.items():
        at, at_replay = times.sel(program=program), replays.sel(program=program)
        missed = missed_term(at, at_replay)
        if missed is None:
            continue
        most, network, nodes, term = missed
        of_network = network_off_by(at, at_replay.time)
        rows.append(
            (
                program,
                _within(off_by(at, at_replay.time)),
                f"{_signed(most)} ({short_names(runs)[network]}, {nodes} nodes)",
                term,
                _within(of_network),
                _signed(of_network.isel(abs(of_network).argmax(...)).item())
                if of_network.notnull().any()
                else "",
            )
        )
    return exhibit.Table(
        "replays-agreement",
        (
            "Program",
            f"Within {percent(MOST_OFF, 0)}",
            "Most off [%]",
            "What differs most there",
            f"Network's part within {percent(MOST_OFF, 0)}",
            "Network's part, most off [%]",
        ),
        "lrllrr",
        rows,
        f"Replays against the emulated programs: at how many points of network and nodes the times differ by at most {percent(MOST_OFF, 0)}, "
        "the largest difference, and the factor of the parallel efficiency that differs most there, emulated and replayed. The network's part is what a network "
        "adds to the time on unlimited links, as a share of the emulated time. Emulated times are means over the blocks",
        None,
        widths=(11, 8, 20, 26, 14, 14),
    )


def _within(off: xr.DataArray) -> str:
    return f"{int((abs(off) <= MOST_OFF).sum())} of {int(off.notnull().sum())}"


def times_table(
    runs: xr.Dataset, times: xr.Dataset, replayed: xr.DataArray | None
) -> exhibit.Table:
    """The time on each network and number of nodes with its interval, and the replay's beside it."""
    columns = (
        "Network",
        "Nodes",
        "Emulated [s]",
        "Interval [s]",
        "Blocks",
        "Replayed [s]",
        "Replay off [%]",
    )
    return exhibit.Table(
        f"{runs.attrs['campaign'].replace('_', '-')}-times",
        columns,
        "lrrrrrr",
        list(_time_rows(runs, times, replayed)),
        f"Time of {times.program.item()} at full speed: in slow motion, over the dilation; and by a replay of its recording",
        exhibit.Basis.of_dataset(runs, INTERVALS),
    )


def each_times_table(
    campaigns: Mapping[str, xr.Dataset], times: xr.Dataset, replays: xr.Dataset
) -> exhibit.Table:
    """`times_table` of several programs: `times` and `replays` are over (program, ...), `campaigns` are the runs of each."""
    rows = []
    for program, runs in campaigns.items():
        at = {"program": program}
        for network, nodes, mean, spread, n, *beside in _time_rows(
            runs, times.sel(at), replays.time.sel(at)
        ):
            rows.append((program, network, nodes, mean, f"{spread} ({n})".strip(), *beside))
    return exhibit.Table(
        "programs-times",
        (
            "Program",
            "Network",
            "Nodes",
            "Emulated [s]",
            "Interval [s] (blocks)",
            "Replayed [s]",
            "Replay off [%]",
        ),
        "llrrrrr",
        rows,
        f"Time of each program at full speed: in slow motion, over the dilation, with {INTERVALS} over the blocks; and by a replay of its recording",
        None,
        long=True,
    )


def _time_rows(runs: xr.Dataset, times: xr.Dataset, replayed: xr.DataArray | None):
    names = short_names(runs)
    for network in times.interconnect.values.tolist():
        for nodes in times.nodes.values.tolist():
            values = times.time.sel(interconnect=network, nodes=nodes).dropna("block").values
            if not len(values):
                continue
            mean, low, high = (float(value) for value in t_interval(values, LEVEL))
            spread = f"{number(low)} to {number(high)}" if len(values) > 1 else ""
            row = (names[network], str(nodes), number(mean), spread, str(len(values)))
            yield (*row, *_beside(replayed, network, nodes, mean))


def _beside(replayed: xr.DataArray | None, network: str, nodes: int, emulated: float):
    try:
        value = replayed.sel(interconnect=network, nodes=nodes).item()
    except (AttributeError, KeyError):
        return "", ""
    off = value / emulated - 1
    return (number(value), _signed(off)) if np.isfinite(off) else ("", "")


def _signed(off: float) -> str:
    return f"{'+' * (off > 0)}{fixed(100 * off, 1)}"


def spent(runs: xr.Dataset, factors: xr.Dataset) -> str:
    """What the time is spent on, on the most nodes and each network, in a sentence; empty where it is unknown."""
    names, nodes = short_names(runs), int(factors.nodes.max())
    shares = parallel_efficiency.shares(factors.sel(nodes=nodes))
    parts = [
        f"{percent(at.computing.item())} computing, {parallel_efficiency.in_words(at)} on {names[network]}"
        for network in shares.interconnect.values.tolist()
        if np.isfinite((at := shares.sel(interconnect=network)).computing)
    ]
    return f"On {nodes} nodes the time is {'; '.join(parts)}." if parts else ""


def factors_table(runs: xr.Dataset, factors: xr.Dataset) -> exhibit.Table:
    """POP's factors on each network and number of nodes [%]."""
    names = short_names(runs)
    rows = [
        (
            names[network],
            str(nodes),
            *parallel_efficiency.in_percent(factors.sel(interconnect=network, nodes=nodes)),
        )
        for network in factors.interconnect.values.tolist()
        for nodes in factors.nodes.values.tolist()
    ]
    return exhibit.Table(
        f"{runs.attrs['campaign'].replace('_', '-')}-factors",
        ("Network", "Nodes", *parallel_efficiency.FACTORS.values()),
        "lrrrrr",
        rows,
        "Factors of the parallel efficiency by POP's names, from means over the blocks; the last is their product",
        exhibit.Basis.of_dataset(runs, "without intervals"),
    )
