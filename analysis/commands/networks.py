"""Other networks: an MPI program is recorded and replayed, a cluster has a twin or a prediction."""

import sys
from pathlib import Path
from typing import Any

import click

from analysis import paths
from analysis.commands.grammar import (
    PROGRAM,
    REFERENCE,
    TESTBED,
    argument,
    asks_what_if,
    command,
    figure_option,
    keep_option,
    option,
)
from runners.records.journal import write_whole
from runners.records.record import FalloffError


@command(
    "profile",
    examples="""
        falloff profile -- mpirun -np 4 ./program
        falloff profile --keep mine -- mpirun -np 4 ./program
        falloff profile --replay mine
        falloff profile --replay mine --nodes 32 64
        falloff profile --replay mine --network gige 25gige --twice bandwidth --half latency
        falloff profile --replay mine --mpi openmpi
    """,
)
@argument(
    "argv",
    nargs=-1,
    metavar="[-- PROGRAM...]",
    help="The command line to run.",
)
@keep_option
@option("--replay NAME", "Replay the recording NAME.", "replayed", type=PROGRAM)
@option(
    "--on NAME",
    "The simulated testbed for --replay.",
    "--testbed",
    "testbed",
    type=TESTBED,
    default="smith",
)
@asks_what_if
@option(
    "--nodes N...",
    "Extrapolate the recording to these numbers of nodes.",
    multiple=True,
)
@option(
    "--mpi NAME",
    "Whose order of long messages --replay keeps: openmpi (over TCP), else none's.",
    type=click.Choice(["openmpi"]),
)
def profile(
    argv: tuple[str, ...],
    program: str | None,
    replayed: str | None,
    testbed: str,
    nodes: tuple[int, ...],
    mpi: str | None,
    **asked: Any,
) -> int:
    """Count an MPI program's messages, or replay it on other networks.

    Messages are counted by call and size: falloff profile -- mpirun -np 4 ./program. The answer
    ends with the share of the time in MPI. The program needs no change, but it must use the MPI
    that `make setup` found and must reach MPI_Finalize. With Open MPI's mpirun, ranks on other
    hosts are counted too; under srun and MPICH's mpiexec they inherit LD_PRELOAD and what else is
    needed from here. Rank 0 writes below the working folder, which all hosts must share.

    --keep records the calls in their order instead, including those of Fortran programs. --replay
    lets SimGrid replay them on a described network, also on more nodes, and says where the time
    goes. What-ifs: --network 25gige, --twice bandwidth, --half latency, --on mytwin. With --mpi
    openmpi long messages wait for each other as Open MPI's do over TCP.
    """
    from analysis.commands import profiling

    if replayed:
        if argv or program:
            raise FalloffError("--replay takes a recorded program's name and runs no other")
        print(*profiling.replay_report(replayed, testbed, nodes, asked, mpi), sep="\n\n")
        return 0
    if not argv:
        raise FalloffError(
            "say after `--` what to run: `falloff profile -- mpirun -np 4 ./program`"
        )
    if not program:
        exit_code, printed = profiling.count(argv)
        if printed:
            print(printed)
            return exit_code
        print(f"falloff: no message of {argv[0]} was counted: {profiling.UNSEEN}", file=sys.stderr)
        return exit_code or 1
    exit_code, lines = profiling.record(argv, program)
    if exit_code:
        print(f"falloff: {lines[0]}", file=sys.stderr)
    else:
        print(*lines, sep="\n")
    return exit_code


@command(
    "twin",
    examples="""
        falloff twin data/raw/twin_tokens-* data/raw/suspects-* data/raw/hpl_scaling-* --name mytwin
        falloff run hpl_scaling --testbed mytwin
        falloff twin mine --name mytwin --network 10gige 25gige 100gige --out mine
    """,
)
@argument(
    "campaigns",
    type=REFERENCE,
    nargs=-1,
    required=True,
    metavar="CAMPAIGN...",
    help="Folders of campaigns or imports, or names in data/reference.",
)
@option("--name NAME", "The twin's name: writes data/testbeds/NAME.toml.", required=True)
@asks_what_if
@option(
    "--out FOLDER",
    "The folder for the simulated runs.",
    default=paths.RAW,
    show_default="data/raw",
)
@option("--fit-only", "Write the description and simulate nothing.")
@figure_option("twin")
def twin(
    campaigns: tuple[str, ...], name: str, out: Path, fit_only: bool, figure: Path, **asked: Any
) -> None:
    """Fit a simulated twin to your cluster, and ask what if.

    The fit takes latency and bandwidth by message size, and a node's compute rate, from campaigns
    of one cluster. It writes them as a testbed for SimGrid. HPL is then predicted where it was run
    (the fit does not read those runs) and on networks that you do not have. Imported outputs of OSU
    or IMB and of HPL suffice.
    """
    from analysis import experiment, running
    from analysis.commands.progress import shown
    from analysis.evidence import verify
    from analysis.statements import style
    from analysis.subjects import twin_prediction
    from analysis.subjects.twin import fit, text
    from analysis.subjects.what_if import WhatIf

    datasets = experiment.named(
        [folder for campaign in campaigns for folder in verify.measured_folders(campaign)]
    )
    fitted = fit(datasets)
    for network, reason in fitted.refused.items():
        print(f"left out: {network}: {reason}".replace("\u00a0", " "), file=sys.stderr)
    points = None
    try:
        points = twin_prediction.held_out_points(datasets, fitted)
    except FalloffError:
        if not fit_only:
            raise
    file = running.write_twin(name, fitted, datasets, points)
    print(text(fitted).replace("\u00a0", " "))
    print(f"Testbed: {file}\n`falloff run hpl_scaling --testbed {name}` simulates on it.\n")
    if points is None or fit_only:
        return
    with shown() as listen:
        runs = running.simulate_twin(name, points, WhatIf(**asked), out, listen=listen)
    study = twin_prediction.predict(fitted, points, *runs)
    print(twin_prediction.text(study))
    style.save(twin_prediction.figure(study), figure)
    print(f"\nFigure: {figure}")


@command(
    "predict",
    examples="""
        falloff predict --node 14.7 --ping-pong osu.txt --case 52360,88,2,4 --out mine.json
        falloff predict --node 1016 --ping-pong osu.txt --case 419328,192,4,4 --simulate
        falloff predict mine.json --measured runs.csv
        falloff predict pi4_1
    """,
)
@argument(
    "source",
    required=False,
    metavar="[PREDICTION]",
    help="A written prediction, or a cluster of data/measured/predictions.",
)
@option("--node RATE", "What one node reaches [Gflop/s].", type=float)
@option("--run N,NB,P,Q", "HPL reached it so; without, it is the rate of matrix products.", "ran")
@option(
    "--ping-pong FILE",
    "Times of messages between two nodes: an output of OSU, IMB, HPCC or NetPIPE, or a CSV with "
    "size [B] and time_us or time_s.",
)
@option("--inside FILE", "The same inside a node, where several processes run; else as between.")
@option("--case N,NB,P,Q", "What to predict.", "cases", multiple=True)
@option("--ranks-per-node N", "Processes on each node.", default=1)
@option("--by-column", "Processes fill nodes along the grid's columns, not its rows.")
@option("--link GBIT", "A node's link [Gbit/s]; else the rate of long messages.", type=float)
@option("--look-ahead", "HPL has DEPTH 1, and the card moves the data, as over InfiniBand.")
@option("--simulate", "Run HPL's own code on SimGrid, too.")
@option("--out FILE", "Write the prediction down, with what was given and a digest.")
@option("--measured FILE", "Compare with runs: a CSV with N, NB, P, Q and gflops.")
def predict(
    source: str | None, out: Path | None, measured: Path | None, simulate: bool, **given: Any
) -> None:
    """Predict HPL from one node and a ping-pong.

    The law of HPL's own messages takes seconds a case, and longer where P is large. The range
    beside it comes from its errors on clusters that others measured. A prediction that is written
    down cannot be changed unnoticed: compare it once you have run HPL.
    """
    from analysis import running
    from analysis.subjects import predicting, prediction

    if out and out.exists():
        raise FalloffError(f"{out} exists, and a written prediction is not replaced")
    if source:
        ranks = given.pop("ranks_per_node")
        if any(given.values()) or ranks > 1 or simulate:
            raise FalloffError(f"{source} is predicted already: give no inputs beside it")
        shipped = prediction.PREDICTIONS / f"{source}.json"
        made = prediction.read(shipped if shipped.exists() else Path(source))
    else:
        made = predicting.asked(simulate=running.simulated_rates if simulate else None, **given)
    if out:  # before anything is compared
        write_whole(out, made.text())
    print(predicting.answer(made, predicting.measured_runs(measured) if measured else None))
    if out:
        then = f"falloff predict {out} --measured FILE"
        print(f"\nWritten: {out} (digest {made.digest}). Compare: {then}")
