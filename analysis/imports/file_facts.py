"""What the paths and headers of benchmark outputs say about their runs: the network, the nodes, the
repeat and when it ran.

`results/1gbe/n02/run1/HPL.out` and `hpl_10g_8nodes_rep3.txt` both name all three. A number is taken
for a number of nodes only if the outputs themselves do not contradict it.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from analysis import paths

# No letter or digit beside what is looked for: an underscore separates words in names of files.
_BEGIN, _END = r"(?<![^\W_])(?<!\d\.)", r"(?![^\W_])"


def _word(pattern: str, beside: str = "") -> re.Pattern:
    """A pattern that matches whole words; `beside` is what must or must not follow."""
    return re.compile(rf"{_BEGIN}(?:{pattern}){_END}{beside}", re.I)


# A number of G is a network's only at a rate that Ethernet has, and not beside a word of memory or
# sizes.
_ETHERNET = _word(
    r"(1|2\.5|5|10|25|40|50|56|100|200|400|800)[ _-]?gb?"
    r"|(\d+(?:\.\d+)?)[ _-]?(?:(?:ge|gbe|gig|gige|gbit|gbps|gbase-?\w+|gigabit)"
    r"(?:[ _-]?(?:ethernet|eth))?|gb?[ _-]?(?:ethernet|eth))"
)
_SIZE = r"(?:mem|memory|ram|swap|disk|cache|size|sizes|buf|buffer|msg|message|hugepages?)"
_MEMORY = _word(rf"{_SIZE}[ _=-]?\d[\d.]*[gm]i?b?"), _word(rf"\d[\d.]*[gm]i?b?[ _-]?{_SIZE}")
_GIGABIT = _word(r"gige|gbe|gigabit|gigabit-?ethernet|1000base-?\w+")
_FAST = _word(r"fast[ _-]?ethernet|100base-?\w+|100[ _-]?m(?:b|bit|bps)?")
_LANES_NAMED = "(sdr|ddr|qdr|fdr|edr|hdr|ndr)"
_INFINIBAND = _word(
    rf"(?:ib|infiniband)[ _-]?{_LANES_NAMED}|{_LANES_NAMED}[ _-]?(?:ib|infiniband)?|ib|infiniband"
)
_OTHER_FABRIC = _word(r"(omni-?path|opa|slingshot|aries|myrinet|tofu|loopback|shm)")
_PROTOCOL = _word(r"(roce(?:v?2)?|rdma|iwarp|ipoib|tcp)")
# The data rate of four lanes [Gbit/s].
_LANES = {"sdr": 8, "ddr": 16, "qdr": 32, "fdr": 54.5, "edr": 100, "hdr": 200, "ndr": 400}

_NODE = r"(?:nodes?|nds?|n|hosts?|servers?|machines?)"
_NODES = (
    _word(rf"(?:nnodes|{_NODE})[ _=-]?0*(\d{{1,5}})"),
    _word(rf"0*(\d{{1,5}})[ _-]?{_NODE}"),
)
_EACH = _word(r"(?:ppn|rpn|tpn)[ _=-]?0*(\d{1,4})"), _word(r"0*(\d{1,4})[ _-]?(?:ppn|rpn|tpn)")
_PROCESS = r"(?:nprocs?|np|procs?|process(?:es)?|ntasks|tasks|ranks)"
_PROCESSES = (
    _word(rf"{_PROCESS}[ _=-]?0*(\d{{1,6}})"),
    _word(rf"0*(\d{{1,6}})[ _-]?{_PROCESS}", r"(?![ _-]?(?:per|a|each)[ _-])"),
)
_REPEAT = _word(
    r"(?:runs?|rep|repeat|repetition|r|iter|iteration|trial|try|t|sample|attempt|take|pass)"
    r"[ _=#-]?0*(\d{1,4})"
)
_BLOCK = _word(r"(?:block|blk)[ _=-]?0*(\d{1,4})")
_PAIR = _word(r"([a-z][a-z-]*?0*\d+)(?:-to-|_to_|--|-|_)([a-z][a-z-]*?0*\d+)")

_HEADER_NODES = re.compile(
    r"^[ \t#]*(?:SLURM_(?:JOB_NUM_NODES|NNODES|JOB_NODES)=|SBATCH\s+(?:--nodes[= ]|-N\s*)"
    r"|PBS -l (?:select|nodes)=|(?:number of )?nodes\s*[:=]\s*)(\d{1,5})\b",
    re.M | re.I,
)
_HEADER_EACH = re.compile(
    r"(?:SLURM_N?TASKS_PER_NODE=|--n?tasks-per-node[= ]|\s-(?:npernode|ppn|perhost) |ppr:|:ppn="
    r"|:mpiprocs=)(\d{1,4})\b"
)
_HEADER_PROCESSES = re.compile(
    r"(?:SLURM_(?:NTASKS|NPROCS)=|\b(?:mpirun|mpiexec|mpiexec\.hydra|srun)\b[^\n]*?\s"
    r"(?:--?np?|--ntasks)[ =])(\d{1,6})\b"
)
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MOMENT = re.compile(
    rf"^.{{0,60}}?\b{_WEEKDAY},? (?:(\w{{3}}) +(\d{{1,2}})|(\d{{1,2}}) (\w{{3}}))"
    r"(?: (\d{4}))? (\d\d:\d\d:\d\d)( [AP]M)?(?: [A-Z]{3,5})?(?: (\d{4}))?(?: ([+-]\d{4}))?\b",
    re.M,
)
_ISO = re.compile(
    r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?:[T_ -]?([0-2]\d)[:h-]?([0-5]\d)[:m-]?([0-5]\d)?"
    r"(Z|\+\d\d:?\d\d|-\d\d:\d\d)?)?(?!\d)"
)
_BEGINNING = 200_000  # characters of an output in which its header is looked for

ORDINARY_MTU = 1500  # bytes, of Ethernet unless somebody set another


@dataclass(frozen=True)
class Facts:
    """What is known of one output; unknown is None or empty.

    `network` is a name as in data/interconnects.toml where that has it. `repeat` numbers the runs
    of one point; `block` is a repeat that the path itself calls a block. `moment` is local time,
    ISO 8601, with its offset from UTC if that is known. `pair` is the path between two hosts.
    `processes` are of outputs that do not print theirs. `nodes_from` says where the number of nodes
    is from.
    """

    network: str = ""
    nodes: int | None = None
    ranks_per_node: int | None = None
    block: int | None = None
    repeat: int | None = None
    moment: str = ""
    pair: str = ""
    nodes_from: str = ""
    processes: int | None = None


@dataclass(frozen=True)
class OutputFile:
    """A tool's output: its path, its text, and the settings of its results (of HPL N, P and Q)."""

    name: str
    text: str
    results: Sequence[Mapping[str, Any]] = ()
    is_collective: bool = False  # of a tool between two hosts, but of all nodes

    @property
    def processes(self) -> int | None:
        """P x Q, if all results have the same."""
        counts = {
            result["P"] * result["Q"] for result in self.results if "P" in result and "Q" in result
        }
        return counts.pop() if len(counts) == 1 else None


def facts(outputs: Sequence[OutputFile], is_pair: bool = False) -> list[Facts]:
    """What paths and headers say of each output; `is_pair`: a tool between two hosts wrote them.

    What one path leaves open is judged from all together: a folder for each network, numbers that
    grow as the processes do.
    """
    of_files = [_alone(output, is_pair) for output in outputs]
    if not is_pair:
        of_files = _without_host_names(outputs, of_files)
        of_files = _counted_by_processes(outputs, of_files)
    of_files = _by_folder(outputs, of_files)
    return _numbered(outputs, of_files)


def network_named(text: str) -> str:
    """The network named in a path, the last one if there are several; empty if none."""
    fabric = ""
    for part in reversed(text.split("/")):
        name = ""
        for size in _MEMORY:
            part = size.sub("", part)
        if ethernet := _ETHERNET.findall(part):
            name = _of_gigabits(float("".join(ethernet[-1])))
        elif _GIGABIT.search(part):
            name = _of_gigabits(1)
        elif _FAST.search(part):
            name = "fast_ethernet"
        elif infiniband := _INFINIBAND.search(part):
            lanes = infiniband[1] or infiniband[2] or ""
            name = f"{lanes.lower()}_infiniband" if lanes else "infiniband"
        elif other := _OTHER_FABRIC.search(part):
            name = other[1].lower().replace("omni-path", "opa").replace("omnipath", "opa")
        protocol = _PROTOCOL.search(part)
        transport = protocol[1].lower() if protocol else fabric
        if name:
            return f"{name}_{transport}" if transport else name
        if transport != "tcp":  # which any network may carry
            fabric = transport
    return fabric


def repeat_named(path: str) -> int:
    """The number of a run that a path names, as in run1 or rep-2; 0 if none."""
    return _last([_REPEAT, _BLOCK], _stem(path)) or 0


def described(network: str) -> dict[str, Any]:
    """The description of a network by its name: as in data/interconnects.toml, else what the name
    says, and at least the name itself."""
    if network in _interconnects():
        return _interconnects()[network]
    base, _, protocol = network.partition("_")
    ethernet = re.fullmatch(r"(\d+(?:\.\d+)?)gige", base)
    lanes = protocol.startswith("infiniband") and _LANES.get(base)
    if ethernet or base == "gige":
        rate = float(ethernet[1]) if ethernet else 1.0
        of = f" ({protocol})" if protocol else ""
        short = "GigE" if rate == 1 else f"{rate:g}GE"
        return {
            "name": f"{rate:g} Gigabit Ethernet{of}",
            "short": f"{short}{of}",
            "rate_bit_s": rate * 1e9,
            "mtu": ORDINARY_MTU,
        }
    if lanes:
        return {
            "name": f"{base.upper()} InfiniBand",
            "short": f"{base.upper()} IB",
            "rate_bit_s": lanes * 1e9,
        }
    if network == "fast_ethernet":
        return {"name": "Fast Ethernet", "short": "FastE", "rate_bit_s": 1e8, "mtu": ORDINARY_MTU}
    return {"name": network, "short": network}


def blocks_by_date(points: Sequence[Any], moments: Sequence[str]) -> list[int] | None:
    """The block of each run, if the dates show that the runs were made in blocks: the first run of
    every point before the second of any. None if they do not show it, as where two runs of a point
    have one date, or only some dates have an offset from UTC."""
    times = [datetime.fromisoformat(moment) for moment in moments if moment]
    has_offsets = len({time.tzinfo is None for time in times}) == 1
    if not all(moments) or not has_offsets or len(set(zip(points, times))) < len(times):
        return None
    number: dict[Any, int] = defaultdict(int)
    blocks = [0] * len(points)
    for place in sorted(range(len(points)), key=lambda run: times[run]):
        number[points[place]] += 1
        blocks[place] = number[points[place]]
    # The order of runs with the same date is unknown and does not matter.
    in_order = [block for _, block in sorted(zip(times, blocks))]
    is_complete = len(set(number.values())) == 1 and len(number) > 1 and max(blocks) > 1
    return blocks if is_complete and in_order == sorted(in_order) else None


@cache
def _interconnects() -> dict[str, dict[str, Any]]:
    return tomllib.loads(paths.INTERCONNECTS.read_text(encoding="utf-8"))


def _of_gigabits(rate: float) -> str:
    return "gige" if rate == 1 else f"{rate:g}gige"


def _alone(output: OutputFile, is_pair: bool) -> Facts:
    """The facts in the path and the header of a single output."""
    path, header = _stem(output.name), output.text[:_BEGINNING]
    per_node = _last(_EACH, path) or _number(_HEADER_EACH.search(header))
    block, repeat = _last([_BLOCK], path), _last([_REPEAT], path)
    pairs = _PAIR.findall(path) if is_pair else []
    pair = next(("-".join(names) for names in reversed(pairs) if _are_hosts(*names)), "")
    nodes, source = None, ""
    if not pair and (not is_pair or output.is_collective):
        orders = {result["N"] for result in output.results if "N" in result}
        named = [number for number in _all(_NODES, path) if _may_be_nodes(number, orders, output)]
        if named:
            nodes, source = named[-1], "path"
        elif nodes := _number(_HEADER_NODES.search(header)):
            source = "header"
    processes = None
    if is_pair and not any("processes" in result for result in output.results):
        processes = _last(_PROCESSES, path) or _number(_HEADER_PROCESSES.search(header))
    moment, network = _moment(output), network_named(path)
    return Facts(network, nodes, per_node, block, repeat, moment, pair, source, processes)


def _may_be_nodes(number: int, orders: set, output: OutputFile) -> bool:
    """A number of nodes is not HPL's N, and each node has at least one process."""
    processes = output.processes
    return number > 0 and number not in orders and (processes is None or number <= processes)


def _are_hosts(host: str, other: str) -> bool:
    """Whether two words are names of two hosts of one cluster."""
    prefix = re.match("[a-z-]*", host.lower())
    return bool(prefix and prefix[0] and other.lower().startswith(prefix[0])) and host != other


def _without_host_names(outputs: Sequence[OutputFile], of_files: list[Facts]) -> list[Facts]:
    """Numbers in names of hosts are no numbers of nodes: then all have the same processes."""
    by_path = [item.nodes_from == "path" for item in of_files]
    nodes = {item.nodes for item, is_named in zip(of_files, by_path) if is_named}
    processes = {output.processes for output, is_named in zip(outputs, by_path) if is_named}
    if len(nodes) <= 2 or len(processes) != 1 or None in processes:
        return of_files
    return [
        replace(item, nodes=None, nodes_from="") if is_named else item
        for item, is_named in zip(of_files, by_path)
    ]


def _counted_by_processes(outputs: Sequence[OutputFile], of_files: list[Facts]) -> list[Facts]:
    """A bare number in the same place of every path is the number of nodes if the processes are
    the same multiple of it everywhere."""
    open_ = [place for place, item in enumerate(of_files) if item.nodes is None]
    numbers = [_bare_numbers(outputs[place].name) for place in open_]
    processes = [outputs[place].processes or 0 for place in open_]
    if 0 in processes or len(set(processes)) < 2:
        return of_files
    for column in zip(*numbers):
        shares = {0.0} if 0 in column else {total / n for total, n in zip(processes, column)}
        if len(shares) == 1 and max(shares) >= 1 and max(shares).is_integer():
            counted = list(of_files)
            for place, nodes in zip(open_, column):
                counted[place] = replace(of_files[place], nodes=nodes, nodes_from="path")
            return counted
    return of_files


def _by_folder(outputs: Sequence[OutputFile], of_files: list[Facts]) -> list[Facts]:
    """Without a known network in any path, the only level of folders that differs and names nothing
    else is taken for the network."""
    if any(item.network for item in of_files) or len(of_files) < 2:
        return of_files
    folders = [output.name.split("/")[:-1] for output in outputs]
    if len({len(folder) for folder in folders}) != 1:
        return of_files
    other_number = re.compile(
        "|".join(p.pattern for p in (*_NODES, *_EACH, *_PROCESSES, _REPEAT, _BLOCK)), re.I
    )
    levels = []
    for names in zip(*folders):
        is_name = all(
            not other_number.search(name) and re.search(r"[^\W\d_]", name) for name in names
        )
        if len(set(names)) > 1 and is_name:
            levels.append(names)
    if len(levels) != 1:
        return of_files
    return [replace(item, network=name[:60]) for item, name in zip(of_files, levels[0])]


def _numbered(outputs: Sequence[OutputFile], of_files: list[Facts]) -> list[Facts]:
    """A last bare number in the file's name numbers the repeats, if it tells the runs of each point
    apart."""
    open_ = [
        place for place, item in enumerate(of_files) if item.repeat is None and item.block is None
    ]
    numbers = {place: _bare_numbers(outputs[place].name.split("/")[-1]) for place in open_}
    if not open_ or not all(numbers.values()):
        return of_files
    runs, numbered = defaultdict(list), list(of_files)
    for place in open_:
        item, number = of_files[place], numbers[place][-1]
        if number == item.nodes and len(_bare_numbers(outputs[place].name)) == 1:
            return of_files
        runs[item.network, item.nodes, item.processes, item.pair].append(number)
        numbered[place] = replace(item, repeat=number)
    are_apart = all(len(set(run)) == len(run) and max(run) <= 999 for run in runs.values())
    return numbered if are_apart and max(map(len, runs.values())) > 1 else of_files


def _bare_numbers(name: str) -> list[int]:
    """The numbers in a path with no letter beside them, from left to right."""
    return _all([_word(r"(\d{1,6})")], _stem(name))


def _stem(name: str) -> str:
    """A path without the last suffix, unless that is part of a word such as `2.5gbe`."""
    return re.sub(r"\.(?:out|txt|log|dat|json|csv|res|o\d*|e\d*)$", "", name, flags=re.I)


def _all(patterns: Iterable[re.Pattern], path: str) -> list[int]:
    """All numbers that a pattern finds, from left to right."""
    places = sorted(
        (match.start(), int(match[1])) for pattern in patterns for match in pattern.finditer(path)
    )
    return [number for _, number in places]


def _last(patterns: Iterable[re.Pattern], path: str) -> int | None:
    numbers = _all(patterns, path)
    return numbers[-1] if numbers else None


def _number(match: re.Match | None) -> int | None:
    return int(match[1]) if match else None


def _moment(output: OutputFile) -> str:
    """When an output's run began, by its text, else by its path; empty if unknown."""
    for match in _MOMENT.finditer(output.text[:_BEGINNING]):
        month, day, year = match[1] or match[4], match[2] or match[3], match[5] or match[8]
        clock = "%I:%M:%S %p" if match[7] else "%H:%M:%S"
        words, form = f"{day} {month} {year} {match[6]}{match[7] or ''}", f"%d %b %Y {clock}"
        if match[9]:
            words, form = f"{words} {match[9]}", f"{form} %z"
        try:
            return datetime.strptime(words, form).isoformat()
        except ValueError:  # no year, or no month's name
            continue
    if since_1970 := _number(re.search(r'"timesecs":\s*(\d{9,10})\b', output.text[:_BEGINNING])):
        return datetime.fromtimestamp(since_1970, UTC).replace(tzinfo=None).isoformat()
    for match in reversed(list(_ISO.finditer(_stem(output.name)))):
        year, month, day, hour, minute, second, offset = match.groups()
        if hour:
            with suppress(ValueError):
                written = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{offset or ''}"
                return datetime.fromisoformat(written).isoformat()
    return ""
