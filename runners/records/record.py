"""The frozen records that travel from a campaign to a dataset.

A `Trial` is resolved data; a runner turns it into `Command`s; a testbed executes them into
a `Transcript`; the runner's `parse` turns that into `Readings`. Nothing here touches a tool.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple, Optional

from runners.records import renamed
from runners.records.description_rules import Rule

_ADDRESS = re.compile(r"\{node(\d+)\}")

# How the reason begins why a trial that other work disturbed is no measurement.
BUSY = "machine-busy"

# Names of campaigns, testbeds and trials: folders and files have these names, and commands use
# them.
_NAME = re.compile(r"\w[\w .,+@=-]{0,99}")

Settings = Mapping[str, Any]  # str, int, float or bool, which JSON and TOML share, by name
Description = Mapping[str, Any]  # a table of a file in data/, such as that of a testbed, complete
# By name a number or text; a list holds one for each node, interval or size. Tool.readings and the
# schema have their dimensions and units.
Readings = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """One execution of one runner: a point of the campaign within a block.

    `role` is `point` (of the design), `survey` (the testbed measures itself) or `warm_up`
    (discarded). Blocks count from 1; block 0 precedes the first. `point` is flat and complete: the
    levels of all factors and every fixed setting.
    """

    id: str
    role: str
    runner: str
    block: int
    order: int
    point: Settings


@dataclass(frozen=True)
class Command:
    """One program to execute, as an argv list whose first word names a tool.

    With `ranks` it is an MPI program of that many processes, `ranks_per_node` on each of the first
    nodes; otherwise it runs on node `node` (nodes count from 1). `{node3}` in an argument stands
    for the address of node 3. `files` are written into its working folder first. A `background`
    command is a server: it has started when the TCP port `listens` accepts connections, and ends
    with the trial.
    """

    argv: tuple[str, ...]
    ranks: int = 0
    ranks_per_node: int = 1
    node: int = 1
    files: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0
    background: bool = False
    listens: int = 0

    @property
    def nodes(self) -> int:
        """The number of nodes that it takes, including those that its arguments name."""
        named = [int(number) for word in self.argv for number in _ADDRESS.findall(word)]
        return max([-(-self.ranks // self.ranks_per_node) if self.ranks else self.node, *named])

    def arguments(self, address: Callable[[int], str]) -> list[str]:
        """The words after the tool's name, with each node's `address` in its place."""
        return [_ADDRESS.sub(lambda match: address(int(match[1])), word) for word in self.argv[1:]]


@dataclass(frozen=True)
class Execution:
    """The record of one command.

    `tool` is the command's first word, `argv` the executed line, launchers included. `exit_code` is
    None if the command was stopped at its limit (`timed_out`), 0 for a server that the testbed
    ended. `start` is in seconds since the epoch, `wall_s` in seconds.
    """

    tool: str
    argv: tuple[str, ...]
    stdout: str
    stderr: str
    exit_code: Optional[int]
    start: float
    wall_s: float
    timed_out: bool = False


@dataclass(frozen=True)
class Transcript:
    """Everything known about one trial, written to disk before anything is parsed.

    `effective` are the settings that the testbed read back for those asked for (`requested`), and
    perhaps more. `counters` are lists over nodes (bytes sent ...) and numbers (CPU time of the
    machine ...). `fault` is the testbed's own failure, `unavailable` the reason why the trial did
    not begin; each may be empty.
    """

    trial: Trial
    testbed: str
    evidence: str
    executions: tuple[Execution, ...]
    requested: Settings
    effective: Settings
    counters: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    unavailable: str = ""


@dataclass(frozen=True)
class Result:
    """One result in an output: its readings and the settings that it names; or why it is `refused`,
    and of which of KINDS that refusal is.

    `note` is something that a reader of a usable result must know, such as lines that were not
    understood. Raises Unreadable if a number is not finite, because no measurement is, whatever a
    damaged output says.
    """

    readings: Readings
    settings: Settings = field(default_factory=dict)
    refused: str = ""
    kind: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        _require_finite(self.readings)


@dataclass(frozen=True)
class Quantity:
    """What a dataset says of a setting or a reading: its meaning, and its unit ("1" of a pure
    number, none of a text).

    `dims` are those of data/schema.toml, the trial first. `values` are all that a text may be,
    where that is known.
    """

    long_name: str
    units: str = ""
    dims: tuple[str, ...] = ("trial",)
    values: tuple[str, ...] = ()


class Mark(NamedTuple):
    """How a file is recognised: a regular expression (with `^` at each line) of what only such a
    file has, and what it is.

    A `weak` mark is looked for only where no other is found.
    """

    pattern: str
    what: str
    weak: bool = False


@dataclass(frozen=True)
class Tool:
    """One benchmark tool: how it is driven, read and recognised. All functions are pure.

    `commands(point)` gives the commands of a trial, or raises FalloffError for a point that the
    tool cannot run. `results(text)` reads any output of the tool, also one that no campaign of ours
    made. `parse_trial(transcript)` is given where a trial's readings are not simply those of its
    one result. Both raise Unreadable, with the reason, when an output is not whole or contradicts
    itself, and InvalidRun when it is no measurement of what was asked for.

    `settings` are those of a point that the tool reads, each with the rule for its value
    (`description_rules`). `factors` are those of them that a campaign may vary, or that a file
    names: the coordinates of a dataset; `readings` are its variables. `seconds(point, testbed)` is
    how long a run takes by the rates that a testbed's description has. `marks` are of its outputs,
    in which those of the tools that it `contains` may stand; `result_line` is of the line of a long
    output that has the result. `aliases` are other names of it, `packages` the Debian packages that
    bring it.
    """

    name: str
    commands: Callable[[Settings], list[Command]]
    results: Callable[[str], list[Result]]
    settings: Mapping[str, Rule] = field(default_factory=dict)
    readings: Mapping[str, Quantity] = field(default_factory=dict)
    factors: Mapping[str, Quantity] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    result_line: str = ""
    contains: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    seconds: Optional[Callable[[Settings, Description], Optional[float]]] = None
    parse_trial: Optional[Callable[[Transcript], Readings]] = None

    def parse(self, transcript: Transcript) -> Readings:
        """The readings of a trial; raises Unreadable as `results` does, and InvalidRun if the
        output has other settings than the trial's point."""
        if self.parse_trial:
            return self.parse_trial(transcript)
        return self.only_result(transcript)

    def only_result(self, transcript: Transcript) -> Readings:
        """The readings of the one result that a trial's last command printed; raises as `parse`."""
        results = self.results(transcript.executions[-1].stdout)
        if len(results) != 1:
            raise Contradictory(f"{len(results)} results of {self.name} in one output")
        (result,) = results
        if result.refused:
            raise KINDS[result.kind](result.refused)
        point = transcript.trial.point
        for name, value in result.settings.items():
            if value != point.get(name, value):
                raise InvalidRun(
                    f"{self.name} ran with {name} {value}, {point[name]} was asked for"
                )
        return result.readings


class FalloffError(Exception):
    """A fault that the user can fix: the message says what, where and the remedy."""

    def _render_traceback_(self) -> list[str]:
        """The text that Jupyter shows instead of a traceback."""
        return [f"falloff: {self}"]


class Unreadable(FalloffError):
    """A tool's output without the expected result. The message says why; `kind` is the sort of
    reason.

    One of the subclasses below is raised.
    """

    kind: str

    def with_kind(self) -> str:
        """The kind with the reason, in the form that `falloff import` prints."""
        return f"{self.kind}: {self}"


class Cut(Unreadable):
    """A part is missing: the run was stopped, or its output cut off."""

    kind = "cut"


class Contradictory(Unreadable):
    """The output contradicts itself: numbers disagree, a number is impossible, or outputs are
    mixed."""

    kind = "contradictory"


class Foreign(Unreadable):
    """The output is not from this tool."""

    kind = "foreign"


class Unsupported(Unreadable):
    """The output is from this tool, but of a test or in a form that is not read."""

    kind = "unsupported"


class Failed(Unreadable):
    """The output is complete and says itself that there is no result: the tool failed, or measured
    nothing."""

    kind = "failed"


class InvalidRun(Failed):
    """The tool ran to its end, but the result must not be used: its own check failed, or it ran
    with other settings."""


KINDS = {each.kind: each for each in (Cut, Contradictory, Foreign, Unsupported, Failed)}


def is_name(text: str) -> bool:
    """Whether a text is a valid name of a campaign, a testbed or a trial."""
    return bool(_NAME.fullmatch(text))


def unknown(kind: str, name: str, choices: Iterable[str]) -> FalloffError:
    """The error for an unknown name: the name that was probably meant, and all known names."""
    names = sorted(choices)
    present, near = renamed.present(name), nearest(name, names)
    if present:
        return FalloffError(f"{kind} {name!r} is called {present!r} now")
    guess = f" (did you mean {near!r}?)" if near else ""
    return FalloffError(
        f"there is no {kind} {name!r}{guess}; there are: {', '.join(names) or 'none'}"
    )


def unknown_key(place: str, key: str, names: Iterable[str]) -> str:
    """The fault of a key that nothing reads: the key that was probably meant, else all known
    keys."""
    near = nearest(key, names)
    remedy = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
    return f"{place}{key} is unknown; {remedy}"


def nearest(name: str, names: Iterable[str]) -> str:
    """The known name that a misspelt one probably means, empty if none is similar."""
    return next(iter(difflib.get_close_matches(str(name), list(names), 1)), "")


def faulty(what: str, faults: Sequence[str]) -> FalloffError:
    """The error for a description with faults: all of them, one per line."""
    if len(faults) == 1:
        return FalloffError(f"{what}: {faults[0]}")
    return FalloffError("\n  ".join([f"{what} has {len(faults)} faults:", *faults]))


@dataclass(frozen=True)
class Outcome:
    """A trial's verdict on itself: `ok`, or why it has no readings.

    Raises Unreadable as `Result`.
    """

    status: str
    reason: str
    readings: Readings = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_finite(self.readings)


def judge(transcript: Transcript, parse: Callable[[Transcript], Readings]) -> Outcome:
    """Decide whether a transcript is a valid measurement, and read it if so.

    The status is `ok`, `unavailable` (too few nodes are left), `fault` (the testbed failed),
    `timeout`, `failed` (exit code), `busy` (other work on the machine disturbed it), `invalid`
    (other settings than asked for, or the tool's own check failed) or `unreadable`.
    """
    if transcript.unavailable:
        return Outcome("unavailable", transcript.unavailable)
    if transcript.fault:
        return Outcome("fault", transcript.fault)
    if not transcript.executions:
        return Outcome("unreadable", "nothing was executed")
    # Programs killed by a signal come first: programs that lose a partner fail, too, and may have
    # started earlier.
    for execution in sorted(transcript.executions, key=lambda item: (item.exit_code or 0) >= 0):
        tool = execution.tool
        if execution.timed_out:
            return Outcome(
                "timeout", f"{tool} still ran after {execution.wall_s:.0f} s and was stopped"
            )
        if execution.exit_code != 0:
            cause = _cause(execution.stderr.strip() or execution.stdout.strip())
            message = f": {cause[:200]}" if cause else ""
            return Outcome("failed", f"{tool} ended with exit code {execution.exit_code}{message}")
    mismatches = mismatch(transcript.requested, transcript.effective)
    if mismatches:
        return Outcome("invalid", "; ".join(mismatches))
    if transcript.effective.get("busy"):
        return Outcome("busy", f"{BUSY}: {transcript.effective['busy']}")
    try:
        return Outcome("ok", "", parse(transcript))
    except InvalidRun as error:
        return Outcome("invalid", str(error))
    except Unreadable as error:
        return Outcome("unreadable", str(error))
    except (FalloffError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        about = f"{type(error).__name__}: {str(error)[:100]}"
        return Outcome("unreadable", f"its settings or executions are damaged ({about})")


def _cause(text: str) -> str:
    """The line that says why a program failed: its last one, or where that is a ruler, as of Open
    MPI, the first words of what is framed; empty without any."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and not re.search(r"\w", lines[-1]):
        lines = [line for line in lines if re.search(r"\w", line)][:1]
    return lines[-1] if lines else ""


def mismatch(requested: Settings, effective: Settings) -> list[str]:
    """Every setting that differs from what was asked for; empty if all agree."""
    return [
        f"{name} is {effective.get(name, 'unknown')}, {value} was asked for"
        for name, value in sorted(requested.items())
        if effective.get(name) != value
    ]


def _require_finite(readings: Readings) -> None:
    for name, value in readings.items():
        if not _is_finite(value):
            raise Contradictory(f"{name} is no finite number")


def _is_finite(value: Any) -> bool:
    """Whether a number is finite, or all numbers in a list are; anything else counts as finite."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
