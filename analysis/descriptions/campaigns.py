"""Campaigns, as the files of data/campaigns describe them.

The design is decided before a campaign runs: primary statements in their order, margin and negative
control.

    [design]
    margin = 0.05
    negative_control = 1            # nodes at which no network is used
    [[design.primary]]              # tested in this order: the next counts only if this one is so
    networks = ["gige", "10gige"]   # the rate on the first against that on the second
    from = 2                        # nodes
    to = 8
    expected = "falls off"
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from analysis import paths
from analysis.descriptions.toml_tables import (
    MEMBERS,
    Blocks,
    Count,
    Name,
    NotNegative,
    Positive,
    Ruled,
    Setting,
    Settings,
    Share,
    TomlTable,
    Whole,
    described,
    extended,
    fault,
    must_be,
    parse,
    refuse,
)
from runners.records.description_rules import Rule, one_of
from runners.records.plan import LEAST_BLOCKS, WITHOUT_MESSAGES, Stopping
from runners.records.record import FalloffError, unknown_key
from runners.tools import names as tool_names

ALL_NODES = "all"  # a level of `nodes`: all that the testbed has
# A preset, or a campaign that extends, changes their keys.
MERGED = ("factors", "settings", "design")


def _distinct(levels: list) -> list:
    if len(set(map(str, levels))) < len(levels):
        raise ValueError
    return levels


def _ascending(looks: list[int]) -> list[int]:
    if looks != sorted(set(looks)):
        raise ValueError
    return looks


def _counted(factors: dict[str, list]) -> dict[str, list]:
    nodes = factors.get("nodes", [])
    if not all(level == ALL_NODES or type(level) is int and level > 0 for level in nodes):
        what = f'whole numbers from 1 or "{ALL_NODES}" of the testbed'
        refuse([fault(("nodes",), nodes, f"must be a list of distinct levels, {what}")])
    return factors


Levels = Annotated[
    list[Setting],
    Field(min_length=1),
    AfterValidator(_distinct),
    must_be("a list of distinct levels"),
]
Factors = Annotated[dict[str, Levels], AfterValidator(_counted)]
_Two = Field(min_length=2, max_length=2)
Link = Annotated[list[Count], _Two]
Looks = Annotated[
    list[Annotated[int, Field(ge=LEAST_BLOCKS)]],
    AfterValidator(_ascending),
    must_be(f"looks that ascend from {LEAST_BLOCKS}"),
]
Level = Annotated[float, Ruled(Rule("a level above 0 and below 0.5", (float,), above=0, below=0.5))]


class PlannedStatement(TomlTable):
    """A statement about the change of a rate from few nodes to many."""

    networks: Annotated[list[Name], _Two, must_be("two networks")]
    """the rate on the first is compared with that on the second"""
    start: Count = Field(alias="from")
    """the fewer nodes"""
    to: Count
    """the more nodes"""
    expected: Annotated[str, Ruled(one_of(["falls off", "flat", "rises"]))] = "falls off"

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.start >= self.to:
            raise ValueError(f"from = {self.start} must be fewer nodes than to = {self.to}")
        return self


def _of_primary(value: Any) -> str:
    return MEMBERS[0] if isinstance(value, (Mapping, PlannedStatement)) else MEMBERS[1]


Compared = list[
    Annotated[
        Annotated[PlannedStatement, Tag(MEMBERS[0])] | Annotated[Setting, Tag(MEMBERS[1])],
        Discriminator(_of_primary),
    ]
]


class StatedDesign(TomlTable):
    """The parts of a design that the analysis reads as the campaign states them."""

    compared: Name = "interconnect"
    """the factor whose levels are compared"""
    control: Setting | None = None
    """the level that shows what the machine itself does"""
    margin: NotNegative | None = None
    """a relative change up to this counts as none"""
    baseline_nodes: Count | None = None
    """the nodes of which the efficiency is 1"""
    negative_control: Count | None = None
    """the nodes at which no network is used"""
    without_messages: dict[str, Positive] | None = None
    """by nodes: what HPL reaches where messages take no time, of the nodes' rate"""
    baseline: (
        Annotated[Setting | Settings, must_be("a level, or the settings of a point")] | None
    ) = None
    """the level, or the point, that the others are compared with"""
    changes: dict[str, Settings] | None = None
    """by name: how a point differs from the baseline"""
    false_alarms: Share | None = None
    """the share of campaigns that may accuse anybody falsely"""
    fewest_nodes: Count | None = None
    published: dict[str, list[Name]] | None = None
    smallest: Share | None = None
    """the slowdown that the campaign is to find"""
    tolerance: Share | None = None
    """a slowdown up to this counts as none"""
    topologies: dict[str, list[Name]] | None = None
    """the paths of each topology"""


class PlannedDesign(StatedDesign):
    """What is decided before the run: what is compared, and how."""

    primary: Compared = []
    """two levels, the first compared with the second; or statements, tested in their order"""
    secondary: Compared = []

    @property
    def statements(self) -> list[PlannedStatement]:
        """The primary statements; empty if `primary` is a pair of levels."""
        return [compared for compared in self.primary if isinstance(compared, PlannedStatement)]


class Rules(TomlTable):
    """Rules that end a campaign, as far as a table states them; `runners.records.plan.Stopping`
    says what they mean."""

    blocks: Blocks | None = None
    """the largest number of blocks"""
    time_budget_s: Annotated[NotNegative, must_be("seconds, 0 for any")] | None = None
    looks: Looks | None = None
    """the numbers of valid blocks, or of sessions with `blocks_a_session`, after which the campaign
    is judged"""
    one_sided: Level | None = None
    """the nominal one-sided level of each look"""
    blocks_a_session: Whole | None = None
    """blocks after which a session ends; 0: never"""

    def record(self) -> Stopping:
        """The rules as the record that a plan has."""
        return Stopping(**{**self.plain(), "looks": tuple(self.looks or ())})

    def of_blocks(self, blocks: int) -> "Rules":
        """These rules with so many blocks and without looks."""
        return self.unset("looks").unset("one_sided").changed(blocks=blocks)


class Preset(Rules):
    """What a preset changes: stopping rules, and keys of factors, settings and design."""

    factors: Factors = {}
    settings: Settings = {}
    design: PlannedDesign = PlannedDesign()


class Survey(TomlTable, extra="allow"):
    """A tool that measures links before the first block; further keys are its settings."""

    __pydantic_extra__: dict[str, Setting]
    runner: Name
    links: Annotated[list[Link], must_be("pairs of nodes")]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of its tool."""
        return dict(self.model_extra or {})

    def of_settings(self, settings: Mapping[str, Any]) -> "Survey":
        """The same survey with these settings instead."""
        return Survey(runner=self.runner, links=self.links, **settings)

    def within(self, nodes: int) -> "Survey":
        """The same survey of the links between the first nodes."""
        return self.changed(links=[link for link in self.links if max(link) <= nodes])


class Campaign(TomlTable):
    """A campaign: what is varied, with which settings, how it is designed and when it ends."""

    extends: Name | None = None
    """the campaign whose tables this one completes; factors, settings and design key by key"""
    name: Name
    title: Name
    """what the campaign asks, in a line"""
    runner: Name
    """the benchmark tool, a file in runners/tools"""
    testbed: Name = "emulated"
    """the testbed that it is for, a file in data/testbeds"""
    seed: Annotated[int, must_be("a whole number")]
    """of the order of the trials in each block"""
    grouped_by: Name | None = None
    """the factor whose levels stay together in a block"""
    factors: Factors
    """what is varied: every combination of the levels is a point"""
    levels: dict[str, dict[str, Settings]] = {}
    """by factor, or factors with a space between: the settings that each level entails"""
    settings: Settings
    """the settings of all points"""
    survey: list[Survey] = []
    warm_up: list[Settings] = []
    """for each, the first point with these settings is run once and discarded"""
    design: PlannedDesign
    stopping: Rules
    """when the campaign ends, unless the preset says otherwise"""
    presets: dict[str, Preset] = {}

    @field_validator("runner")
    @classmethod
    def _is_tool(cls, value: str, info: ValidationInfo) -> str:
        runners = (info.context or {}).get("runners", ())
        if runners and value not in runners:
            raise ValueError(unknown_key("", value, runners))
        return value

    @field_validator("factors")
    @classmethod
    def _some(cls, factors: dict[str, list]) -> dict[str, list]:
        if not factors:
            raise ValueError("is empty: name at least one")
        return factors

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Each preset's campaign has stopping rules and statements that hold together."""
        levels = {name: [*stated] for name, stated in self.factors.items()}
        for preset in self.presets.values():
            for name, more in preset.factors.items():
                levels.setdefault(name, []).extend(more)
        wrong = [*_misfits(self.design, self.stopping, (), levels)]
        for name, preset in self.presets.items():
            design = self.design.with_changes(preset.design)
            rules = self.stopping.with_changes(preset)
            its_levels = levels if preset.design.model_fields_set else {}
            wrong += _misfits(design, rules, ("presets", name), its_levels)
        refuse(wrong)
        return self


def _misfits(
    design: PlannedDesign, rules: Rules, place: tuple[str, ...], levels: Mapping[str, list]
) -> Iterator[Any]:
    """The faults of a design and its rules; `levels` are those of each factor, in the campaign or a
    preset.
    """
    if rules.blocks is None:
        yield fault((*place, "stopping", "blocks"), None, "is missing")
    elif rules.looks and rules.looks[-1] * (rules.blocks_a_session or 1) > rules.blocks:
        words = f"must go up to its {rules.blocks} blocks at most"
        yield fault((*place, "stopping", "looks"), rules.looks, words)
    if design.statements and design.margin is None:
        yield fault((*place, "design", "margin"), None, "is missing: primary statements need one")
    if len(design.primary) != (len(design.statements) or 2) and design.primary:
        words = "must be two levels, or statements"
        yield fault((*place, "design", "primary"), len(design.primary), words)
    every = [*chain.from_iterable(levels.values())]
    nodes = [] if ALL_NODES in every else levels.get("nodes", [])
    networks = chain.from_iterable(statement.networks for statement in design.statements)
    pairs = [*networks] or design.primary
    baseline = design.baseline.values() if isinstance(design.baseline, dict) else [design.baseline]
    changes = (settings.values() for settings in (design.changes or {}).values())
    for key, named, possible in (
        ("primary", pairs, levels.get(design.compared, every)),
        ("control", [design.control] if pairs else [], every),
        ("baseline", baseline, every),
        ("changes", chain.from_iterable(changes), every),
        ("baseline_nodes", [design.baseline_nodes], nodes),
        ("negative_control", [design.negative_control], nodes),
    ):
        strange = [name for name in named if name not in (None, WITHOUT_MESSAGES, *possible)]
        if strange and possible:
            words = f"must be among {', '.join(map(str, dict.fromkeys(possible)))}"
            yield fault((*place, "design", key), strange[0], words)


def checked(table: Mapping[str, Any], file: str = "", runners: Collection[str] = ()) -> Campaign:
    """A campaign from a parsed file; raises FalloffError naming every fault. `runners` are the
    known tools; without them any name is accepted."""
    return parse(Campaign, table, described("campaign", table, file), runners=runners)


def read(name: str) -> Campaign:
    """The campaign of a file in data/campaigns, with what it extends; raises FalloffError naming
    every fault in it."""
    return checked(extended(paths.CAMPAIGNS, name, "campaign", joined), name, tool_names())


def joined(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The file `base` with the changes of a file that extends it: some tables key by key, all else
    as a whole.
    """
    both = {
        key: {**base[key], **changes[key]}
        for key in MERGED
        if isinstance(base.get(key), dict) and isinstance(changes.get(key), dict)
    }
    return {**base, **changes, **both}


def for_preset(campaign: Campaign, preset: str) -> Campaign:
    """A campaign with a preset's stopping rules, and with its levels, settings and design if the
    preset has some.

    An empty preset name leaves the campaign as it is. Raises FalloffError for an unknown preset.
    """
    if not preset:
        return campaign
    if preset not in campaign.presets:
        wrong = unknown_key("preset ", preset, campaign.presets)
        raise FalloffError(f"campaign {campaign.name}: {wrong}")
    changes = campaign.presets[preset]
    return campaign.changed(
        factors={**campaign.factors, **changes.factors},
        settings={**campaign.settings, **changes.settings},
        design=campaign.design.with_changes(changes.design),
        stopping=campaign.stopping.with_changes(changes),
    )
