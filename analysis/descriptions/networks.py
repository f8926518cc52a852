"""Interconnects and paths, as data/interconnects.toml and data/paths.toml describe them."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from analysis import paths
from analysis.descriptions.toml_tables import (
    Count,
    Name,
    NotNegative,
    Positive,
    TomlTable,
    Word,
    YesOrNo,
    must_be,
    parse,
    plain,
    read_toml,
    text,
)

Rate = Annotated[Positive, must_be("bit/s as a number, such as 1e9")]
# A host's name has no underscore.
Place = Annotated[str, text(r"[A-Za-z0-9][A-Za-z0-9-]*", "a name of letters, digits and -")]
Node = Count
End = Annotated[Node | Place, must_be("a node or a device")]


class Interconnect(TomlTable):
    """An interconnect: its rate on the wire, and the largest packet."""

    name: Name
    short: Name
    """the name in figures and tables"""
    rate_bit_s: Rate | None = None
    """on the wire [bit/s]; without it nothing is shaped"""
    mtu: Count
    """the MTU [B]"""
    source: Name


class PathLink(TomlTable):
    """A link of a path."""

    start: Annotated[Node | Place | list[Node], must_be("a node, a list of nodes or a device")] = (
        Field(alias="from")
    )
    """a node, a list of nodes (a link for each) or a device"""
    to: End
    rate_bit_s: Rate | None = None
    """on the wire, from -> to [bit/s]; default: the path's own"""
    rate_back_bit_s: Rate | None = None
    """on the wire, to -> from [bit/s]; default: as rate_bit_s"""
    delay_s: NotNegative | None = None
    """one way, each way [s]"""
    mtu: Count | None = None
    """of both ends of this link [B], if it is less than the trial's or the device's"""


class Path(Interconnect):
    """A network between nodes: a graph of nodes, hubs, switches and routers."""

    links: list[PathLink] = []
    switches: dict[Place, Count] = {}
    """each with its MTU [B]"""
    routers: dict[Place, Count] = {}
    """each with its MTU [B]"""
    hubs: dict[Word, list[End]] = {}
    """the nodes and devices on each shared wire"""
    bonded: YesOrNo = False
    """each node sends frames over all its links or wires in turn"""
    offloads: YesOrNo = False
    """the kernel may segment and aggregate"""


def interconnects() -> dict[str, Interconnect]:
    """The described interconnects by name; raises FalloffError naming every fault of the file."""
    file = paths.INTERCONNECTS
    return parse(dict[str, Interconnect], read_toml(file, "interconnects"), str(file))


def network_paths() -> dict[str, Path]:
    """The described paths by name; raises FalloffError naming every fault of the file."""
    return parse(dict[str, Path], read_toml(paths.PATHS, "paths"), str(paths.PATHS))


def between(of_testbed: Mapping[str, TomlTable]) -> dict[str, dict[str, Any]]:
    """All described interconnects and paths as plain tables, and those of a testbed's
    `networks`."""
    described = plain({**interconnects(), **network_paths()})
    for name, network in of_testbed.items():
        described[name] = {
            "name": name,
            "short": name,
            **described.get(name, {}),
            **network.plain(),
        }
    return described
