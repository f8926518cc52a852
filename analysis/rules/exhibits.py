"""What each figure and table of the report declares of itself, from exhibits.toml."""

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from runners.record import FalloffError

FILE = Path(__file__).parent / "exhibits.toml"
KINDS = ("cost", "rate", "ratio", "count", "description")
SUMMARIES = ("mean", "median", "fit", "all", "")


@dataclass(frozen=True)
class Exhibit:
    """One figure or table: the fields are explained in exhibits.toml. What it does not declare is empty."""

    label: str
    shows: tuple[str, ...]
    of: tuple[str, ...] = ()
    whichever: bool = False
    repeated: str = ""
    summary: str = ""
    deterministic: str = ""
    base: str = ""
    absolute: str = ""
    bound: str = ""
    lines: tuple[str, ...] = ()
    subset: str = ""
    tail: str = ""
    when: str = ""


@cache
def exhibits(file: Path = FILE) -> dict[str, Exhibit]:
    """All exhibits by label; raises FalloffError for what the file should not hold."""
    try:
        groups = tomllib.loads(file.read_text(encoding="utf-8"))["exhibit"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise FalloffError(f"{file} holds no exhibits: {error}") from None
    found: dict[str, Exhibit] = {}
    for group in groups:
        labels = group.pop("labels", [])
        faults = [name for name in group if name not in {it.name for it in fields(Exhibit)}]
        faults += [kind for kind in group.get("shows", ["no kind"]) if kind not in KINDS]
        faults += [] if group.get("summary", "") in SUMMARIES else [group["summary"]]
        faults += [label for label in labels if label in found] + ([] if labels else ["no labels"])
        if faults:
            where = f"{file}, exhibit {', '.join(labels)}"
            raise FalloffError(f"{where}: {', '.join(map(repr, faults))} cannot stand there")
        values = {name: tuple(it) if isinstance(it, list) else it for name, it in group.items()}
        found |= {label: Exhibit(label, **values) for label in labels}
    return found
