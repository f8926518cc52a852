"""The record of a campaign that is resolved for a testbed: its trials in their order.

It is plain JSON (`trials.json`), so that the machine that runs the trials needs neither a TOML
reader nor what resolves descriptions (analysis/descriptions).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
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
    make up for invalid blocks. A session ends after `blocks_a_session` blocks (0: never), and looks
    are then numbers of sessions (`Folder.sessions` says what one is): the blocks of a session share
    its day.
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
        return list(chain(self.preamble, *self.blocks))


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
    plan = typed_json.typed(Plan, data)
    plan = replace(plan, name=renamed.campaign(plan.name))
    testbed = plan.testbed
    count = testbed.get("nodes")  # 0 for imported files
    if not isinstance(testbed.get("name"), str) or type(count) is not int or not 0 <= count < 1e6:
        raise ValueError("its testbed has no name, or no number of nodes")
    names = (plan.name, testbed["name"], *(trial.id for trial in plan.trials()))
    if strange := invalid_names(names):
        raise ValueError(strange[0])
    for name in ("node", "network", "networks", "rates", "rpeak"):
        typed_json.typed(Description, testbed.get(name, {}), f"testbed.{name}")
    absent = {"compared": "", "looks": [], "one_sided": 0.05, "primary": [], "blocks_a_session": 0}
    stated = {**absent, **plan.design}
    _require(stated, _DESIGN)
    factors, primary = stated["factors"], stated["primary"]
    if any(isinstance(level, (list, dict, type(None))) for level in chain(*factors.values())):
        raise ValueError("a level of its design is neither a text nor a number")
    typed_json.typed(tuple[int, ...], factors.get("nodes", []), "factors.nodes")
    of_falls = any(isinstance(statement, dict) for statement in primary)
    for statement in primary if of_falls else ():
        _require(statement, _STATEMENT)
    pairs = [statement["networks"] for statement in primary] if of_falls else [primary or [0, 0]]
    if any(len(pair) != 2 or list in map(type, pair) for pair in pairs):
        raise ValueError("its primary statements are none")
    return plan


def _require(table: Any, types: Mapping[str, Any]) -> None:
    """Raise ValueError unless a table has values of these types."""
    typed_json.typed(Description, table)
    for name, kind in types.items():
        typed_json.typed(kind, table.get(name), name)


# The parts that decide what is judged, as far as all experiments read them in the same way.
_DESIGN = {
    "factors": Mapping[str, tuple[Any, ...]],
    "compared": str,
    "margin": Optional[float],
    "baseline_nodes": Optional[int],
    "negative_control": Optional[int],
    "looks": tuple[int, ...],
    "one_sided": float,
    "blocks_a_session": int,
    "primary": tuple[Any, ...],
}
_STATEMENT = {"networks": tuple[str, ...], "from": int, "to": int}
Kind = tuple[str, tuple[Any, ...]]


def kind_of(trial: Trial) -> Kind:
    """The key that trials of equal duration share."""
    return trial.runner, tuple(trial.point.get(name) for name in ("nodes", "N", "dilation"))


def planned_s(trial: Trial, plan: Plan, tool: Tool) -> Optional[float]:
    """How long a trial of a tool takes by the rates of its testbed [s]; None where these do not
    say.
    """
    return tool.seconds(trial.point, plan.testbed) if tool.seconds else None
