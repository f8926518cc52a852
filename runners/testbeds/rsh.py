"""Open MPI's launch agent, in place of rsh: rsh.py STATE HOST COMMAND ...

By rsh's convention the command is one string for a shell. Open MPI's, without a prefix, is a plain
list of words, so it is split as a shell would split it and no shell is needed.
"""

import os
import shlex
import sys


def main() -> None:
    """Become the command, inside the node whose address is HOST."""
    state, host, *command = sys.argv[1:]
    node = os.path.join(state, host)
    enter = ["nsenter", f"--net={node}/net", f"--uts={node}/uts", "--"]
    os.execvp(enter[0], enter + shlex.split(" ".join(command)))


if __name__ == "__main__":
    main()
