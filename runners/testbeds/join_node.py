"""Run a rank on the node it is on: join_node.py STATE PROGRAM [ARGUMENT ...]

The node is known by its hostname: a line in its file `guests` says that a rank came in, and where its file `processor`
says so the rank stays on that. It stands alone, so that the interpreter starts in milliseconds.
"""

import os
import sys


def main() -> None:
    """Say so, stay on the node's processor, become the program."""
    state, *program = sys.argv[1:]
    node = os.path.join(state, os.uname().nodename)
    with open(os.path.join(node, "guests"), "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    place = os.path.join(node, "processor")
    if os.path.exists(place):
        with open(place, encoding="utf-8") as file:
            os.sched_setaffinity(0, {int(file.read())})
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
