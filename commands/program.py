"""A user's own MPI program: count its messages, record it, replay it on another network."""

import sys
from collections.abc import Sequence

import click

from commands import names
from commands.grammar import COUNT, CommandWithExamples, argument, command, option
from runners.record import FalloffError

SEVERAL = ("--nodes", "--network")


class SeveralValues(CommandWithExamples):
    """Click takes one value after an option. Here some take several, as in `--nodes 32 64`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `--nodes 32 64` as `--nodes 32 --nodes 64`."""
        return super().parse_args(ctx, repeated(SEVERAL, args))


def repeated(names: Sequence[str], words: list[str]) -> list[str]:
    """The words of a command line with an option's name before each of its values."""
    given: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return given + words[place:]
        if len(given) > 1 and given[-2] in names and not word.startswith("-"):
            given.append(given[-2])
        given.append(word)
    return given


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
@option("--keep", "name", metavar="NAME", help="Record the MPI calls under NAME.")
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
@option(
    "--network",
    "networks",
    multiple=True,
    metavar="NAME...",
    help="Replay on these networks of the testbed; by default gige and 10gige.",
)
@option("--twice", metavar="WHAT", help="Replay also with twice the bandwidth or latency.")
@option("--half", metavar="WHAT", help="Replay also with half the bandwidth or latency.")
@option(
    "--nodes",
    type=COUNT,
    multiple=True,
    metavar="N...",
    help="Extrapolate the recording to these numbers of nodes.",
)
def profile(argv, name, replayed, testbed, networks, twice, half, nodes) -> int:
    """Count an MPI program's messages, or replay it on other networks.

    Messages are counted by call and size: falloff profile -- mpirun -np 4 ./program. The answer ends
    with the share of the time in MPI. The program needs no change, but it must use the MPI that `make setup` found and must reach MPI_Finalize. With Open
    MPI's mpirun, ranks on other hosts are counted too; under srun and MPICH's mpiexec they inherit
    LD_PRELOAD and what else is needed from here. Rank 0 writes below the working folder, which all
    hosts must share.

    --keep records the calls in their order instead, including those of Fortran programs. --replay
    lets SimGrid replay them on a described network, also on more nodes, and says where the time
    goes. What-ifs: --network 25gige, --twice bandwidth, --half latency, --on mytwin.
    """
    from analysis.what_if import WhatIf
    from commands import profiling

    if replayed:
        if argv or name:
            raise FalloffError("--replay takes a recorded program's name and runs no other")
        asked = [(word, what) for word, what in (("twice", twice), ("half", half)) if what]
        what_ifs = [WhatIf.named(word, what) for word, what in asked]
        print(*profiling.replay_report(replayed, testbed, nodes, networks, what_ifs), sep="\n\n")
        return 0
    if not argv:
        raise FalloffError(
            "say after `--` what to run: `falloff profile -- mpirun -np 4 ./program`"
        )
    if not name:
        exit_code, printed = profiling.count(argv)
        if printed:
            print(printed)
            return exit_code
        print(f"falloff: no message of {argv[0]} was counted: {profiling.UNSEEN}", file=sys.stderr)
        return exit_code or 1
    exit_code, lines = profiling.record(argv, name)
    if exit_code:
        print(f"falloff: {lines[0]}", file=sys.stderr)
    else:
        print(*lines, sep="\n")
    return exit_code
