"""mpirun starts this instead of rsh and of a rank. It imports nothing of ours, so the interpreter
starts in milliseconds.

rank.py agent STATE HOST COMMAND ...      become the command, inside the node whose address is HOST
rank.py join STATE PROGRAM [ARGUMENT ...] run the program, on the processor of the node that it is
on

By rsh's convention the command is one string for a shell. Open MPI's command, without a prefix, is
a plain list of words, so it is split as a shell would split it. A rank knows its node by its
hostname. It adds a line to the node's file `guests`, and at its end one to `times`: how long it was
ready to run and had no processor, by the kernel's count, and its CPU time [s]. If there is a file
`processor`, it stays on that processor. A file `share` holds the share of the others' rate that a
paced node has.
"""

import os
import shlex
import sys


def main(role: str, state: str, words: list) -> None:
    """Become the program, or run it and end as it does."""
    if role == "agent":
        node = os.path.join(state, words[0])
        enter = ["nsenter", f"--net={node}/net", f"--uts={node}/uts", "--"]
        os.execvp(enter[0], enter + shlex.split(" ".join(words[1:])))
    node = os.path.join(state, os.uname().nodename)
    with open(os.path.join(node, "guests"), "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    place = os.path.join(node, "processor")
    if os.path.exists(place):
        with open(place, encoding="utf-8") as file:
            os.sched_setaffinity(0, {int(file.read())})
    share = os.path.join(node, "share")
    if os.path.exists(share):
        with open(share, encoding="utf-8") as file:
            os.environ["PACE_SHARE"] = file.read()
    program = os.fork()
    if not program:
        os.execvp(words[0], words)
    # What has ended keeps its record until it is collected.
    os.waitid(os.P_PID, program, os.WEXITED | os.WNOWAIT)
    waited = float("nan")  # a kernel that does not say
    if os.path.exists(f"/proc/{program}/schedstat"):
        with open(f"/proc/{program}/schedstat", encoding="ascii") as file:
            waited = int(file.read().split()[1]) / 1e9
    _, status, used = os.wait4(program, 0)
    with open(os.path.join(node, "times"), "a", encoding="ascii") as file:
        file.write(f"{waited} {used.ru_utime + used.ru_stime}\n")
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
