"""Run a program inside the CPU quota of the node it is on: enter_quota.py STATE PROGRAM [ARGUMENT ...]

The node is known by its hostname. Only what comes through here is limited: starting MPI is not
part of what is measured. It stands alone, so that the interpreter starts in milliseconds.
"""

import os
import sys


def main() -> None:
    """Join the node's cgroups, stay on its processor, become the program."""
    state, *program = sys.argv[1:]
    with open(os.path.join(state, os.uname().nodename, "quota"), encoding="utf-8") as file:
        processor, *entrances = file.read().splitlines()
    for entrance in entrances:
        with open(entrance, "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
    # Under a quota, migrating between cores made HPL twice as slow and unsteady.
    os.sched_setaffinity(0, {int(processor)})
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
