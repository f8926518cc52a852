"""A user's own MPI program: count its messages, record it, replay it on another network."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from commands import names
from commands.grammar import COUNT, Command, argument, command, option
from runners import executables
from runners.record import FalloffError


class SeveralNodes(Command):
    """Click takes one value after an option. Here --nodes takes several, as in `--nodes 32 64`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `--nodes 32 64` as `--nodes 32 --nodes 64`."""
        return super().parse_args(ctx, repeated("--nodes", args))


def repeated(name: str, words: list[str]) -> list[str]:
    """The words of a command line with an option's name before each of its values."""
    given: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return given + words[place:]
        if name in given[-2:-1] and not word.startswith("-"):
            given.append(name)
        given.append(word)
    return given


@command(
    "profile",
    cls=SeveralNodes,
    examples="""
        falloff profile -- mpirun -np 4 ./program
        falloff profile --keep mine -- mpirun -np 4 ./program
        falloff profile --replay mine
        falloff profile --replay mine --nodes 32 64
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
    "--testbed",
    type=names.TESTBED,
    default="smith",
    metavar="NAME",
    help="The simulated testbed for --replay.",
)
@option(
    "--nodes",
    type=COUNT,
    multiple=True,
    metavar="N...",
    help="Extrapolate the recording to these numbers of nodes.",
)
def profile(argv, name, replayed, testbed, nodes) -> int:
    """Count an MPI program's messages, or replay it on other networks.

    Messages are counted by call and size: falloff profile -- mpirun -np 4 ./program. The program
    needs no change, but it must use the MPI that `make setup` found and must reach MPI_Finalize.
    With Open MPI's mpirun, ranks on other hosts are counted too; under srun and MPICH's mpiexec
    they inherit LD_PRELOAD and FALLOFF_PAYLOAD from here. Rank 0 writes below the working folder,
    which all hosts must share. Not counted: persistent and one-sided communication, non-blocking
    collectives, Fortran programs under Open MPI.

    --keep records the calls in their order instead, including those of Fortran programs. --replay
    lets SimGrid replay them on a described network, also on more nodes.
    """
    if replayed:
        if argv or name:
            raise FalloffError("--replay takes a recorded program's name and runs no other")
        _replay(replayed, testbed, nodes)
        return 0
    if not argv:
        example = "`falloff profile -- mpirun -np 4 ./program`"
        raise FalloffError(f"say after `--` what to run: {example}")
    from runners import payload, recording

    library = "record.so" if name else "payload.so"
    variable = "FALLOFF_RECORD" if name else "FALLOFF_PAYLOAD"
    exit_code, printed = payload.run(list(argv), Path(executables.find(library, {})), variable)
    if name and exit_code:
        failed = f"{argv[0]} ended with exit code {exit_code}"
        print(f"falloff: {failed}: a program that fails is not recorded", file=sys.stderr)
        return exit_code
    if not printed:
        nothing = f"no {'call' if name else 'message'} of {argv[0]} was"
        reason = f"it ended before MPI_Finalize, or is no MPI program that {library} can see (--help says which)"
        print(f"falloff: {nothing} {'recorded' if name else 'counted'}: {reason}", file=sys.stderr)
        return exit_code or 1
    if not name:
        print(printed)
        return exit_code
    file = recording.keep(printed, name)
    ranks, kept = recording.read(printed), ", ".join(map(str, recording.kept(name)))
    print(f"{sum(map(len, ranks))} calls of {len(ranks)} ranks are in {file}")
    if recording.is_monitored(printed):
        print(
            "Their bytes from each rank to each other agree with Open MPI's own monitoring within 1 %"
        )
    else:
        print("Their bytes are not compared: Open MPI's monitoring has left no counts of all ranks")
    print(f"`falloff profile --replay {name}` replays it; there are recordings of {kept} ranks")
    return 0


def _replay(name: str, testbed: str, nodes: Sequence[int]) -> None:
    """Replay a program on a described network; print the times and the efficiency."""
    import experiment
    from analysis import programs, store, wording
    from commands.progress import shown
    from runners import recording

    kept = recording.kept(name)
    wanted = sorted({*kept, *nodes})
    for count in wanted:
        recording.of(name, count)  # raises now if the recording cannot be extrapolated
    plan = experiment.plan_replay(name, wanted, testbed, recording.digest(name))
    with shown() as listen:
        folder = experiment.run_campaign(plan, listen=listen)
    runs = store.read(folder)
    time = programs.replay_times(runs)
    print(f"{programs.times_table(runs, time).body}\n")
    for fall in programs.falls(runs, programs.efficiency(time)):
        print(f"- {wording.plain(str(fall))}")
    carried = ", ".join(str(count) for count in wanted if count not in kept)
    if carried:
        print(
            f"Extrapolated from recordings of {', '.join(map(str, kept))} ranks: {carried} nodes."
        )
