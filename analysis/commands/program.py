"""A user's own MPI program: count its messages, record it, replay it on another network."""

import sys

from analysis.commands import names
from analysis.commands.grammar import (
    COUNT,
    SeveralValues,
    argument,
    asks_what_if,
    command,
    keep_option,
    option,
)
from runners.records.record import FalloffError


@command(
    "profile",
    cls=SeveralValues,
    examples="""
        falloff profile -- mpirun -np 4 ./program
        falloff profile --keep mine -- mpirun -np 4 ./program
        falloff profile --replay mine
        falloff profile --replay mine --nodes 32 64
        falloff profile --replay mine --network gige 25gige --twice bandwidth --half latency
    """,
)
@argument(
    "argv",
    nargs=-1,
    metavar="[-- PROGRAM...]",
    help="The command line to run.",
)
@keep_option
@option(
    "--replay",
    "replayed",
    type=names.PROGRAM,
    metavar="NAME",
    help="Replay the recording NAME.",
)
@option(
    "--on",
    "--testbed",
    "testbed",
    type=names.TESTBED,
    default="smith",
    metavar="NAME",
    help="The simulated testbed for --replay.",
)
@asks_what_if
@option(
    "--nodes",
    type=COUNT,
    multiple=True,
    metavar="N...",
    help="Extrapolate the recording to these numbers of nodes.",
)
def profile(argv, program, replayed, testbed, asked, nodes) -> int:
    """Count an MPI program's messages, or replay it on other networks.

    Messages are counted by call and size: falloff profile -- mpirun -np 4 ./program. The answer
    ends with the share of the time in MPI. The program needs no change, but it must use the MPI
    that `make setup` found and must reach MPI_Finalize. With Open MPI's mpirun, ranks on other
    hosts are counted too; under srun and MPICH's mpiexec they inherit LD_PRELOAD and what else is
    needed from here. Rank 0 writes below the working folder, which all hosts must share.

    --keep records the calls in their order instead, including those of Fortran programs. --replay
    lets SimGrid replay them on a described network, also on more nodes, and says where the time
    goes. What-ifs: --network 25gige, --twice bandwidth, --half latency, --on mytwin.
    """
    from analysis.commands import profiling

    if replayed:
        if argv or program:
            raise FalloffError("--replay takes a recorded program's name and runs no other")
        print(*profiling.replay_report(replayed, testbed, nodes, asked), sep="\n\n")
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
