"""The keys of a cluster's description, and how the value of each should be."""

import ipaddress
import re
from typing import Any, Callable, Dict, Tuple

# Whether a value is as it should be, and how it should be, in words.
Rule = Tuple[Callable[[Any], bool], str]


def _text(pattern: str, meaning: str) -> Rule:
    whole = re.compile(pattern)
    return lambda value: isinstance(value, str) and bool(whole.fullmatch(value)), meaning


def _list(rule: Rule, meaning: str) -> Rule:
    return lambda value: isinstance(value, list) and all(map(rule[0], value)), meaning


def _number(meaning: str, least: float = 0, kinds: tuple = (int, float)) -> Rule:
    def holds(value: Any) -> bool:
        return isinstance(value, kinds) and not isinstance(value, bool) and value > least

    return holds, meaning


def _one_of(*values: str) -> Rule:
    return lambda value: value in values, f"one of {', '.join(values)}"


def _subnet(value: Any) -> bool:
    try:
        return isinstance(value, str) and "/" in value and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


# These end in command lines on other machines, and some of them in lists with commas or blanks between.
_HOST = _text(r"[A-Za-z0-9][A-Za-z0-9._-]*", "host names")
WORD = _text(r"[!-~]+", "words without blanks")
PATH = _text(r"[A-Za-z0-9_~/.][A-Za-z0-9_~/.,+@=-]*", "a path without blanks")
_NAME = _text(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a name")
_NAMES = _text(r"[A-Za-z0-9_][A-Za-z0-9_.,@+-]*", "a name, or several with commas between them")
_LINE = _text(r"[ -~]+", "a line of text")
_COUNT = _number("a whole number from 1", kinds=(int,))
_SOME = _number("a number above 0")
_TABLE: Rule = (lambda value: isinstance(value, dict), "a table")
_BUFFER: Rule = (
    lambda value: isinstance(value, list) and len(value) == 3 and all(map(_COUNT[0], value)),
    "least, first and most bytes",
)
_MAY_SET = ("mtu", "congestion_control", "rmem", "wmem")
UNKNOWN = "unknown"


def _or_unknown(rule: Rule) -> Rule:
    return lambda value: value == UNKNOWN or rule[0](value), f'{rule[1]}, or "{UNKNOWN}"'


KEYS: Dict[str, Dict[str, Rule]] = {
    "": {
        "name": _NAME,
        "kind": _one_of("cluster"),
        "extends": _NAME,
        "launcher": _one_of("ssh", "slurm"),
        "hosts": _list(_HOST, "a list of host names"),
        "nodes": _COUNT,
        "python": _text(r"[A-Za-z0-9_/.][A-Za-z0-9_/.+-]*", "the name of a program, or its path"),
        "modules": _list(_text(r"[A-Za-z0-9][A-Za-z0-9._+/-]*", ""), "a list of names of environment modules"),
        "scratch": _text(r"/[A-Za-z0-9_/.-]*", "the absolute path of a folder for temporary files"),
        "ranks_per_node": _COUNT,
        "threads": _COUNT,
        "binding": _list(WORD, "a list of words for mpirun"),
        "memory_bytes": _SOME,
        "matrix_share": (lambda value: isinstance(value, float) and 0 < value < 1, "a share between 0 and 1"),
        "may_set": _list(_one_of(*_MAY_SET), f"a list of some of {', '.join(_MAY_SET)}"),
        "runners": _list(_NAME, "a list of names of tools"),
        **{table: _TABLE for table in ("ssh", "slurm", "rpeak", "tcp", "networks", "tools", "settings", "levels")},
    },
    "ssh": {"config": PATH},
    "slurm": {
        "partition": _NAMES,
        "time_limit_s": _SOME,
        "account": _NAMES,
        "options": _list(_text(r"--[!-~]+", ""), "a list of options of sbatch"),
    },
    "rpeak": {
        "value": _or_unknown(_SOME),
        "unit": _one_of("flop/s"),
        "source": _LINE,
        "cores": _or_unknown(_COUNT),
        "flop_per_cycle": _or_unknown(_SOME),
        "clock_hz": _or_unknown(_SOME),
        "clock": _or_unknown(_one_of("base", "AVX", "turbo")),
    },
    "tcp": {"congestion_control": _NAME, "rmem": _BUFFER, "wmem": _BUFFER},
    "networks": {
        "name": _LINE,
        "short": _LINE,
        "source": _LINE,
        "subnet": (_subnet, "a subnet as 10.1.0.0/24"),
        "interface": _text(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}", "the name of an interface"),
        "rdma": _text(r"[A-Za-z0-9_]+:[0-9]+", "a device and its port, as mlx5_0:1"),
        "rate_bit_s": _SOME,
        "mtu": _COUNT,
        "switch": _LINE,
        "mpi": _list(WORD, "a list of words for mpirun"),
        "environment": _TABLE,
    },
}
