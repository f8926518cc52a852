"""The record of a campaign that is resolved for a testbed: its trials in their order.

It is plain JSON (`trials.json`), so that the machine that runs the trials needs neither a TOML
reader nor what resolves descriptions (analysis/descriptions).
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Optional, Union

from runners.records import renamed, typed_json
from runners.records.record import Description, Tool, Trial, is_name

LEAST_BLOCKS = 2  # the fewest blocks with an interval
WITHOUT_MESSAGES = "without_messages"  # a statement may compare with this part of the design


@dataclass(frozen=True)
class Stopping:
    """When a campaign ends, always at a whole block: at whichever rule is met first.

    `blocks` is the largest number of blocks. `time_budget_s` (0: none) covers everything from the
    first trial on. `looks` are the numbers of valid blocks, ascending, after which the campaign is
    judged, each time at the nominal one-sided level `one_sided`. It ends when all of its primary
    statements are decided, at the latest at the last look. `blocks` may exceed the last look, to
    make up for invalid blocks. A session pauses after `blocks_a_session` blocks (0: never), so that
    an interval over blocks holds between sessions, too.
    """

    blocks: int
    time_budget_s: float = 0.0
    looks: tuple[int, ...] = ()
    one_sided: float = 0.05
    blocks_a_session: int = 0


@dataclass(frozen=True)
class Plan:
    """A campaign resolved for one testbed: a preamble, and the blocks in order.

    `design` is what the analysis needs to know (margin, contrasts ...), fixed before the run.
    `digest` identifies the trials: two plans mix only if their digests are equal. If looks are
    planned, the digest covers everything that can end the campaign, so that no campaign continues
    after its end was seen. Without looks, data never end a campaign, and more blocks may follow.
    """

    name: str
    title: str
    digest: str
    testbed: Description
    interconnects: Mapping[str, Description]
    design: Mapping[str, Any]
    stopping: Stopping
    preamble: tuple[Trial, ...]
    blocks: tuple[tuple[Trial, ...], ...]

    @property
    def repeats_itself(self) -> bool:
        """Whether every block gives the same: it is simulated."""
        return self.testbed["kind"] == "simulated"

    def trials(self) -> list[Trial]:
        """All trials in the order in which they run."""
        return list(itertools.chain(self.preamble, *self.blocks))


def invalid_names(names: Iterable[str]) -> list[str]:
    """Why invalid names are invalid, a line each."""
    wanted = "a name has letters, digits, blanks and _.,+@=- alone"
    return [f"{name[:40]!r}: {wanted}" for name in names if not is_name(name)]


def plan_to_json(plan: Plan) -> str:
    """The plan as the text of `trials.json`."""
    return json.dumps(asdict(plan), indent=1)


def plan_from_json(text: Union[str, bytes]) -> Plan:
    """The inverse of `plan_to_json`; raises ValueError if the text is not a plan."""
    data = typed_json.parsed(text)
    if isinstance(data, dict) and isinstance(data.get("stopping"), dict):
        data["stopping"].pop("precision", None)  # in older plans
    plan = typed_json.record(Plan, data)
    plan = replace(plan, name=renamed.campaign(plan.name))
    testbed = plan.testbed
    count = testbed.get("nodes")  # 0 for imported files
    if not isinstance(testbed.get("name"), str) or type(count) is not int or not 0 <= count < 1e6:
        raise ValueError("its testbed has no name, or no number of nodes")
    names = (plan.name, testbed["name"], *(trial.id for trial in plan.trials()))
    if strange := invalid_names(names):
        raise ValueError(strange[0])
    tables = [testbed.get(name, {}) for name in ("node", "network", "networks", "rates", "rpeak")]
    if not all(isinstance(table, dict) for table in tables):
        raise ValueError("of its testbed, node, network, networks, rates or rpeak is no table")
    stated = _Design.__dataclass_fields__.keys() & plan.design.keys()
    design = typed_json.record(_Design, {name: plan.design[name] for name in stated})
    levels = [level for levels in design.factors.values() for level in levels]
    if any(isinstance(level, (list, dict)) or level is None for level in levels):
        raise ValueError("a level of its design is neither a text nor a number")
    if not all(type(count) is int for count in design.factors.get("nodes", ())):
        raise ValueError("a number of nodes of its design is no whole number")
    if not _are_statements(plan.design.get("primary", [])):
        raise ValueError("its primary statements are none")
    return plan


@dataclass(frozen=True)
class _Design:
    """The part of a design that decides what is judged, as far as all experiments read it in the
    same way."""

    factors: Mapping[str, tuple[Any, ...]]
    compared: str = "interconnect"
    margin: Optional[float] = None
    baseline_nodes: Optional[int] = None
    negative_control: Optional[int] = None
    looks: tuple[int, ...] = ()
    one_sided: float = 0.05


def _are_statements(primary: Any) -> bool:
    """Whether these are two levels, or tables with two networks and two numbers of nodes."""
    if not isinstance(primary, list):
        return False
    if not any(isinstance(statement, dict) for statement in primary):
        return len(primary) in (0, 2) and not any(
            isinstance(statement, list) for statement in primary
        )
    return all(
        isinstance(statement, dict)
        and isinstance(statement.get("networks"), list)
        and [type(name) for name in statement["networks"]] == [str, str]
        and type(statement.get("from")) is type(statement.get("to")) is int
        for statement in primary
    )


Kind = tuple[str, tuple[Any, ...]]


def kind_of(trial: Trial) -> Kind:
    """The key that trials of equal duration share."""
    return trial.runner, tuple(trial.point.get(name) for name in ("nodes", "N", "dilation"))


def planned_s(trial: Trial, plan: Plan, tool: Tool) -> Optional[float]:
    """How long a trial of a tool takes by the rates of its testbed [s]; None where these do not
    say.
    """
    return tool.seconds(trial.point, plan.testbed) if tool.seconds else None
