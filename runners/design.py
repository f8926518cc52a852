"""What a campaign decides before it runs: its primary statements in their order, looks and negative control.

    [design]
    margin = 0.05
    negative_control = 1            # nodes at which no network is used
    [[design.primary]]              # tested in this order: the next counts only if this one is as expected
    networks = ["gige", "10gige"]   # the rate on the first against that on the second
    from = 2                        # nodes
    to = 8
    expected = "falls off"
"""

from typing import Any, Dict, List, Mapping, Tuple

EXPECTED = ("falls off", "flat", "rises")  # what a primary statement may be expected to be


def resolved(campaign: Mapping[str, Any], looks: Tuple[int, ...], one_sided: float) -> Dict[str, Any]:
    """What the analysis needs to know, for the levels that the campaign has: its factors and looks, and of the design
    the primary statements whose networks and node counts are among them, and the negative control if it is."""
    factors = campaign["factors"]
    design = {**campaign["design"], "factors": factors}
    if has_statements(design):
        levels = factors.get(design.get("compared", "interconnect"), [])
        design["primary"] = [
            one for one in design["primary"]
            if set(one["networks"]) <= set(levels) and {one["from"], one["to"]} <= set(factors.get("nodes", []))
        ]  # fmt: skip
    if design.get("negative_control") not in factors.get("nodes", []):
        design.pop("negative_control", None)
    if looks:
        design.update(looks=list(looks), one_sided=one_sided)
    return design


def has_statements(design: Mapping[str, Any]) -> bool:
    """Whether the design's `primary` is a list of statements in their order, and no pair of levels."""
    return bool(design.get("primary")) and all(isinstance(one, Mapping) for one in design["primary"])


def faults(design: Mapping[str, Any]) -> List[str]:
    """What is wrong with the primary statements, if the design has such."""
    found: List[str] = []
    if not has_statements(design):
        return []
    for number, one in enumerate(design["primary"], start=1):
        missing = [key for key in ("networks", "from", "to") if key not in one]
        found += [f"primary statement {number} lacks {key!r}" for key in missing]
        if not missing and (len(one["networks"]) != 2 or not one["from"] < one["to"]):
            found.append(f"primary statement {number} needs two networks, and fewer nodes in 'from' than in 'to'")
        if one.get("expected", EXPECTED[0]) not in EXPECTED:
            found.append(f"primary statement {number} expects {one['expected']!r}; there are {', '.join(EXPECTED)}")
    return found if "margin" in design else [*found, "primary statements need a margin"]
