"""`report.toml`: what the author of a report says of it and of the cluster."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from analysis.descriptions.toml_tables import Setting, TomlTable, must_be, parse, read_toml

NAME = "report.toml"
Text = Annotated[str, must_be("a text in quotes")]
Texts = Annotated[list[str], must_be('a list of texts, such as ["hpl"]')]
Facts = Annotated[
    dict[str, Setting | list[Setting]], must_be("a word and a text or number in each line")
]


class ReportFacts(TomlTable):
    """The title matter of a report; facts about the `cluster`; the campaigns that are its
    `sections`, in this order (none given: all); and whether its `numbers` have a decimal point (en)
    or a decimal comma (de)."""

    title: Annotated[str, Field(min_length=1), must_be("a text in quotes")] = (
        "Does this cluster's efficiency fall off with its interconnect?"
    )
    subtitle: Text = ""
    authors: Texts = []
    affiliation: Text = ""
    date: Text = ""
    introduction: Text = ""
    sections: Texts = []
    numbers: Literal["en", "de"] = "en"
    cluster: Facts = {}


def read(folder: Path) -> ReportFacts:
    """The facts in a folder's report.toml; without the file none. Raises FalloffError naming every
    fault."""
    file = folder / NAME
    return parse(ReportFacts, read_toml(file, NAME), str(file)) if file.exists() else ReportFacts()
