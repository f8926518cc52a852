"""`report.toml`: what the author of a report says of it and of the cluster."""

import json
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from runners.record import FalloffError, unknown_key

NAME = "report.toml"
NUMBERS = ("en", "de")  # a decimal point, a decimal comma
TITLE = "Does this cluster's efficiency fall off with its interconnect?"


@dataclass(frozen=True)
class ReportFacts:
    """Title, authors, affiliation and date of a report; facts about the `cluster`, a word and a text or number
    each; the campaigns that are its `sections`, in this order (none given: all); and the language of its `numbers`,
    one of NUMBERS."""

    title: str = ""
    authors: tuple[str, ...] = ()
    affiliation: str = ""
    date: str = ""
    introduction: str = ""
    sections: tuple[str, ...] = ()
    numbers: str = "en"
    cluster: dict[str, Any] = field(default_factory=dict)


def read(folder: Path) -> ReportFacts:
    """The facts in a folder's report.toml; without the file none. Raises FalloffError naming every
    fault."""
    file = folder / NAME
    if not file.exists():
        return ReportFacts()
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FalloffError(f"{file} is not valid TOML: {error}") from None
    known = [each.name for each in fields(ReportFacts)]
    faults = [unknown_key("", name, known) for name in found if name not in known]
    for name, value in found.items():
        if name in ("authors", "sections"):
            if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
                faults.append(f'{name} is a list of texts, such as {name} = ["hpl"]')
        elif name == "cluster":
            if not isinstance(value, dict) or any(isinstance(one, dict) for one in value.values()):
                faults.append("[cluster] has a word and a text or number in each line")
        elif name == "numbers" and value not in NUMBERS:
            faults.append(unknown_key("numbers = ", str(value), NUMBERS))
        elif name in known and not isinstance(value, str) and name != "date":
            faults.append(f"{name} is a text in quotes")
    if faults:
        raise FalloffError(f"{file}: {'; '.join(faults)}")
    about = {name: value if name == "cluster" else _plain(value) for name, value in found.items()}
    return ReportFacts(**about)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else str(value)


def in_words(value: Any) -> str:
    """A fact of the cluster as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(in_words, value))
    return json.dumps(value) if isinstance(value, bool) else str(value)
