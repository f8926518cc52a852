"""MPI programs on several networks, emulated in slow motion or replayed from a recording: the
campaign of a user's own program, whether efficiency falls off, where the time goes, what a faster
network saves, and whether a replay agrees.

Source of the factors: POP Standard Metrics for Parallel Performance Analysis (Performance
Optimisation and Productivity, a centre of excellence). Serialisation and transfer are told apart by
a run on a network without cost, after C. Rosas, J. Gimenez, J. Labarta, Scalability prediction for
fundamental performance factors, 2014.
"""

import hashlib
import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from analysis import paths
from analysis.dataset.contrasts import differences
from analysis.dataset.derive import at, over_factors
from analysis.descriptions import campaigns, testbeds
from analysis.descriptions.toml_tables import write_own
from analysis.statements import exhibit
from analysis.statements.statement import (
    Statement,
    at_place,
    judged_fall,
    named,
    of_every_point,
    value,
)
from analysis.statistics.intervals import over_blocks
from analysis.statistics.judgement import judge
from analysis.subjects.what_if import IDEAL, NOTHING, WhatIf
from analysis.wording import UNKNOWN, fixed, is_known, kinds, number
from runners.recording import recorder
from runners.recording.calls import Recording
from runners.records.record import FalloffError

LEVEL, INTERVALS = 0.90, "90 % t intervals"
FAST = "10gige"  # of which claims speak
MOST_OFF = 0.05  # of a replay's time from the emulated one
# In the order in which they are lost, with the words of tables.
FACTORS = {
    "load_balance": "Load balance [%]",
    "serialisation": "Serialisation [%]",
    "transfer": "Transfer [%]",
    "parallel": "Parallel efficiency [%]",
}
# What the time is spent on, with the colours of figures.
SHARES = {
    "computing": "#009E73",
    "imbalance": "#E69F00",
    "serialisation": "#CC79A7",
    "transfer": "#0072B2",
}

_IN_ORDER = ", which is off from it; the second number is of one that keeps Open MPI's order"

CAMPAIGN = "program"  # begins the name of each of them
_NODES = (2, 4, 8, 16, 32)  # as far as there are fewer than ranks
EXAMPLE = "falloff run program --keep NAME -- mpirun -np 8 ./program"
_TEXT = """\
# Written by `falloff run program --keep {name}`. `falloff run program_{name}` goes on with it.

extends = "common/program"
name = "program_{name}"
title = "{name} on {fewest} to {most} nodes, in slow motion"

[factors]
{networks}nodes = {nodes}
program = ["{name}"]

[settings]
command = {command}
folder = {folder}

[presets.quick]
factors = {{ nodes = {ends} }}
blocks = 3

[presets.full]
"""


def described(
    argv: Sequence[str], name: str, folder: Path, asked: WhatIf = NOTHING, testbed: str = ""
) -> str:
    """Write the campaign that runs a program in this folder on 2 to as many nodes as `argv` asks
    for ranks; its name.

    It has the networks of every such campaign, or those that are `asked` for and IDEAL. Raises
    FalloffError if the command line is none of `mpirun -np N PROGRAM ...`, or a campaign of that
    name is there and says something else.
    """
    if not name:
        raise FalloffError(f"name the program by --keep NAME: {EXAMPLE}")
    recorder.require_name(name)
    networks = ""
    if asked != NOTHING:
        common = campaigns.read(CAMPAIGN)
        usual = [str(name) for name in common.factors["interconnect"] if name != IDEAL]
        levels = asked.names(testbeds.read(testbed or common.testbed), usual)
        networks = f"interconnect = {json.dumps([*dict.fromkeys([*levels, IDEAL])])}\n"
    ranks, words = _split_launcher(argv, folder)
    nodes = [count for count in _NODES if count < ranks] + [ranks]
    text = _TEXT.format(
        name=name,
        fewest=nodes[0],
        most=nodes[-1],
        networks=networks,
        nodes=nodes,
        ends=sorted({nodes[0], nodes[-1]}),
        command=json.dumps(shlex.join(words), ensure_ascii=False),
        folder=json.dumps(str(folder), ensure_ascii=False),
    )
    return write_own(paths.CAMPAIGNS, f"{CAMPAIGN}_{name}", text, "--keep").stem


def with_digest(campaign: campaigns.Campaign) -> campaigns.Campaign:
    """A campaign of a user's own program with the digest of the program, and of the files that its
    command line names, so that another program's runs are other runs."""
    command, folder = (campaign.settings.get(key) for key in ("command", "folder"))
    if campaign.runner != CAMPAIGN or folder is None:
        return campaign
    words = shlex.split(str(command))
    files = [Path(str(folder), word) for word in (shutil.which(words[0]) or words[0], *words[1:])]
    content = hashlib.sha256()
    for file in filter(Path.is_file, files):
        with file.open("rb") as stream:
            content.update(hashlib.file_digest(stream, "sha256").digest())
    return campaign.changed(settings={**campaign.settings, "digest": content.hexdigest()[:16]})


def is_one(dataset: xr.Dataset) -> bool:
    """Whether a campaign ran one program between emulated nodes and varied only the network and the
    number of nodes.
    """
    factors = dataset.falloff.design.factors
    is_program = CAMPAIGN in dataset.runner.values and len(factors.get("program", ())) == 1
    return is_program and {*factors} <= {"interconnect", "nodes", "program"}


def _split_launcher(argv: Sequence[str], folder: Path) -> tuple[int, list[str]]:
    """The number of ranks, at least 2, and the program's own command line, its path absolute."""
    words, ranks = list(argv[1:]), 0
    if not argv or not Path(argv[0]).name.startswith(("mpirun", "mpiexec")):
        raise FalloffError(f"start the program by mpirun: {EXAMPLE}")
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-np", "-n", "-c", "--np") and words and words[0].isdigit():
            ranks = int(words.pop(0))
        elif option not in ("--oversubscribe", "--allow-run-as-root"):
            raise FalloffError(
                f"{option} of mpirun has no meaning on emulated nodes, which have one rank each: "
                f"{EXAMPLE}"
            )
    if ranks < 2 or not words:
        raise FalloffError(f"say a number of ranks from 2 and a program: {EXAMPLE}")
    if "/" in words[0]:
        words[0] = str((folder / words[0]).absolute())
    return ranks, words


def times(runs: xr.Dataset) -> xr.Dataset:
    """`time` of each program at full speed, and `mean` and `most` of what its ranks compute [s],
    over (program, block, interconnect, nodes); NaN where a trial is missing or was refused.

    Raises FalloffError without the links that have no rate, which tell what a program computes.
    """
    runner = "replay" if "replay" in runs.runner.values else "program"
    names = {"time": f"{runner}_time", "mean": "computing_mean", "most": "computing_most"}
    columns = {name: runs[reading] for name, reading in names.items()}
    laid = over_factors(runs, runner, **columns).assign_attrs(runs.attrs)
    if IDEAL not in runs.interconnect.values:
        remedy = f"add {IDEAL} to the campaign's interconnects"
        raise FalloffError(
            f"no program ran on unlimited links, which tell what it computes: {remedy}"
        )
    return laid.transpose("program", "block", "interconnect", "nodes")


def replayed(emulated: xr.Dataset, replays: xr.Dataset | None) -> xr.Dataset:
    """The `times` of a campaign of replays at the programs, networks and nodes of the `emulated`
    times; NaN where there is none.
    """
    like = emulated.isel(block=0, drop=True)
    return like.where(False) if replays is None else times(replays).mean("block").reindex_like(like)


def slower(times: xr.Dataset, recorded: Mapping[int, Recording]) -> dict[str, float]:
    """How many times as long as in the recordings, by number of ranks, a program's ranks computed
    on each network, as "gige 8": processor time varies with what else a machine does."""
    means, ratios = times["mean"].mean("block"), {}
    for nodes, ranks in recorded.items():
        computed = sum(call.seconds for calls in ranks for call in calls) / len(ranks)
        for network in times.interconnect.values.tolist():
            took = means.sel(interconnect=network, nodes=nodes).item()
            if np.isfinite(took) and computed > 0:
                ratios[f"{network} {nodes}"] = round(took / computed, 3)
    return ratios


def factors(means: xr.Dataset) -> xr.Dataset:
    """POP's factors [1] and their product `parallel`, over the dims of `times` without its blocks
    and without `IDEAL`.

    `parallel` is mean / time, `load_balance` mean / most, `serialisation` most over the time
    without a network, `transfer` that over the time with it. Ranks are taken to compute as long on
    each network as on `IDEAL`, the network without cost.
    """
    ideal, real = means.sel(interconnect=IDEAL, drop=True), means.time.drop_sel(interconnect=IDEAL)
    by_name = {
        "load_balance": ideal["mean"] / ideal.most,
        "serialisation": ideal.most / ideal.time,
        "transfer": ideal.time / real,
        "parallel": ideal["mean"] / real,
    }
    return xr.Dataset(by_name).broadcast_like(real).transpose(*real.dims)


def shares(factors: xr.Dataset) -> xr.Dataset:
    """The shares of the time [1] that are spent on each of SHARES, over the dims of the factors;
    they add up to 1.
    """
    without_network = factors.transfer * factors.serialisation
    spent = {
        "computing": factors.parallel,
        "imbalance": without_network - factors.parallel,
        "serialisation": factors.transfer - without_network,
        "transfer": 1 - factors.transfer,
    }
    return xr.Dataset(spent)


def falls(runs: xr.Dataset, times: xr.Dataset) -> list[Statement]:
    """What each program's transfer efficiency loses on each network from the fewest nodes to the
    most; primary is the largest fall of a program. The `times` are those of the runs."""
    names, margin = runs.falloff.names, runs.falloff.design.margin
    kind = "Program" if runs.falloff.evidence == "simulated" else "The emulated program"
    statements = []
    for program in times.program.values.tolist():
        time = times.time.sel(program=program)
        ran = time.nodes[time.notnull().any(["block", "interconnect"])].values
        first, last = (ran if ran.size else time.nodes.values)[[0, -1]].tolist()
        span = f"from {first} to {last} nodes" if first < last else f"beyond {last} nodes"
        transfer = np.log(time.sel(interconnect=IDEAL, drop=True) / time)
        change = differences(transfer, first, last).drop_sel(interconnect=IDEAL)
        judged = {
            network: judge(change.sel(interconnect=network).values, margin, runs.falloff.evidence)
            for network in change.interconnect.values.tolist()
        }
        largest = max(judged, key=lambda network: judged[network].fall or 0.0, default="")
        statements += [
            judged_fall(
                runs,
                f"{kind} {program} loses efficiency on {names[network]} {span}",
                judgement,
                primary=network == largest,
                values=tuple(-np.expm1(change.sel(interconnect=network).dropna("block").values)),
                series=network,
            )
            for network, judgement in judged.items()
        ]
    return statements


def savings(runs: xr.Dataset, times: xr.Dataset) -> list[Statement]:
    """What each faster network saves of a program's time on the slowest one, on the most nodes:
    means over the blocks with their intervals. The `times` are those of the runs."""
    names, nodes = runs.falloff.names, int(times.nodes.max())
    kind = "replayed" if runs.falloff.evidence == "simulated" else "emulated"
    statements = []
    for program in times.program.values.tolist():
        time = times.time.sel(program=program, nodes=nodes).drop_sel(interconnect=IDEAL)
        if time.isnull().all():
            continue
        slowest = time.mean("block").idxmax().item()
        saved = over_blocks(1 - time / time.sel(interconnect=slowest), "cost", LEVEL)
        for network in saved.drop_sel(interconnect=slowest).interconnect.values.tolist():
            at = saved.sel(interconnect=network)
            statement = value(
                runs,
                f"{names[network]} saves time of the {kind} program {program} "
                f"against {names[slowest]} on {nodes} nodes",
                "share",
                at_place(at, "mean"),
                int(at.blocks),
                "90 % t interval over the blocks",
            )
            statements.append(statement)
    return statements


def of_claims(runs: xr.Dataset, times: xr.Dataset) -> list[Statement]:
    """What claims on applications are judged by, a value for each program: how much of its transfer
    efficiency on 10GE is left on the most nodes, and what part of all that it loses there 10GE
    takes [1], by the logarithms of POP's factors."""
    found = factors(times.mean("block"))
    kept, parallel = (at(found[name], interconnect=FAST) for name in ("transfer", "parallel"))
    fewest, most = times.nodes.values[[0, -1]].tolist()
    scales = f"programs' transfer efficiency on 10GE, {most} over {fewest} nodes"
    change = kept.isel(nodes=-1) / kept.isel(nodes=0)
    barrier = f"10GE's part of what programs lose on {most} nodes"
    part = np.log(kept.isel(nodes=-1)) / np.log(parallel.isel(nodes=-1))
    return [
        named(runs, "programs_scale", scales, change, n_of="program"),
        named(runs, "barrier", barrier, part, n_of="program", is_ratio=False),
    ]


def agreement(runs: xr.Dataset, times: xr.Dataset, replays: xr.Dataset) -> list[Statement]:
    """How far the replay of each program is from its emulation at most; none without a replay."""
    statements, both = [], kinds(runs.falloff.evidence, "simulated")
    for off in off_by(times, replays).transpose("program", ...):
        points, most = int(off.notnull().sum()), float(abs(off).max())
        if points:
            statement = value(
                runs,
                f"A replay of {off.program.item()} takes as long as the emulated program",
                "error",
                (most, None, None),
                points,
                n_of="point",
                answer="yes" if most <= MOST_OFF else "no",
                margin=MOST_OFF,
                evidence=both,
            )
            statements.append(of_every_point(statement, off.drop_vars("program").notnull()))
    return statements


def off_by(times: xr.Dataset, replays: xr.Dataset) -> xr.DataArray:
    """How much longer a replay takes than the emulated program in the mean over the blocks [1],
    over (program, interconnect, nodes) without the links that have no rate; NaN where either is
    unknown."""
    return (replays.time / times.time.mean("block") - 1).drop_sel(interconnect=IDEAL)


def times_table(
    runs: xr.Dataset, times: xr.Dataset, replays: xr.Dataset, ordered: xr.Dataset | None = None
) -> exhibit.Table:
    """The time of each program on each network and number of nodes with its interval, and the
    replay's beside it; of `ordered` replays, which keep Open MPI's order, how far they are off.
    """
    names, rows = runs.falloff.names, []
    times_of = {"replayed": replays, "ordered": replays if ordered is None else ordered}
    columns = {name: given.time for name, given in times_of.items()}
    table = over_blocks(times.time, "cost", LEVEL).assign(columns)
    order = ["program", "interconnect", "nodes"]
    means = table.to_dataframe(order).dropna(subset="mean")
    for (program, network, nodes), row in means.iterrows():
        spread = f"{number(row.low)} to {number(row.high)}" if is_known(row.low) else UNKNOWN
        off, off_ordered = (_signed(row[name] / row["mean"] - 1) for name in times_of)
        emulated = number(row["mean"]), f"{spread} ({int(row.blocks)})"
        replay = number(row.replayed), off if ordered is None else f"{off}; {off_ordered}"
        rows.append((program, names[network], str(nodes), *emulated, *replay))
    return exhibit.Table(
        f"{runs.attrs['campaign'].replace('_', '-')}-times",
        (
            *("Program", "Network", "Nodes", "Emulated [s]", "Interval [s] (blocks)"),
            *("Replayed [s]", "Replay off [%]" if ordered is None else "Off; in order [%]"),
        ),
        "llrrrrr",
        rows,
        f"Time of each program at full speed: in slow motion, over the dilation, with {INTERVALS} "
        "over the blocks; and by a replay of its recording" + (ordered is not None) * _IN_ORDER,
        None,
        box="long",
    )


def _signed(part: float) -> str:
    """A part in per cent."""
    return f"{'+' if part > 0 else ''}{fixed(100 * part, 1)}"


def factors_table(runs: xr.Dataset, factors: xr.Dataset) -> exhibit.Table:
    """POP's factors of each program on each network and number of nodes [%]."""
    names, order = runs.falloff.names, ["program", "interconnect", "nodes"]
    rows = [
        (program, names[network], str(nodes), *(number(100 * at[name]) for name in FACTORS))
        for (program, network, nodes), at in factors.to_dataframe(order).iterrows()
    ]
    return exhibit.Table(
        f"{runs.attrs['campaign'].replace('_', '-')}-factors",
        ("Program", "Network", "Nodes", *FACTORS.values()),
        "llrrrrr",
        rows,
        "Factors of the parallel efficiency by POP's names, from means over the blocks; "
        "the last is their product",
        exhibit.Basis.of_dataset(runs, "without intervals"),
    )


def draw_shares(axes: Axes, shares: xr.Dataset, names: Mapping[str, str]) -> None:
    """Stack the shares [%] over nodes: a group of bars for each level of the other dim, with its
    name above.

    `shares` is over (interconnect, nodes) or (program, nodes); `names` are the short names of
    networks.
    """
    (grouped,) = (dim for dim in shares.dims if dim != "nodes")
    nodes, groups = shares.nodes.values.tolist(), shares[grouped].values.tolist()
    starts = (len(nodes) + 0.8) * np.arange(len(groups))
    places = np.add.outer(starts, np.arange(len(nodes))).ravel()
    below = np.zeros(len(places))
    for name, color in SHARES.items():
        height = np.nan_to_num(100 * shares[name].transpose(grouped, "nodes").values.ravel())
        axes.bar(places, height, 0.85, below, color=color, label=name, linewidth=0)
        below = below + height
    axes.set_xticks(places, [*map(str, nodes)] * len(groups))
    above = axes.secondary_xaxis("top")
    above.set_xticks(starts + (len(nodes) - 1) / 2, [names.get(group, group) for group in groups])
    above.tick_params(length=0)
    above.spines["top"].set_visible(False)
    axes.set_ylim(0, 100)
    axes.grid(axis="x", visible=False)
