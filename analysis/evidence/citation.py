"""Who made this software and how it is cited: CITATION.cff."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from analysis import paths
from runners.record import FalloffError


@dataclass(frozen=True)
class Citation:
    """What CITATION.cff says; authors are their names, those with a family name are persons."""

    title: str
    version: str
    license: str
    keywords: tuple[str, ...]
    persons: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def authors(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.persons, *self.groups)


def read(file: Path = paths.ROOT / "CITATION.cff") -> Citation:
    """Read the citation; raises FalloffError when it is missing or lacks what the format asks for."""
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
        authors = said["authors"]
        return Citation(
            said["title"],
            str(said["version"]),
            said["license"],
            tuple(said.get("keywords", ())),
            tuple(
                f"{it.get('given-names', '')} {it['family-names']}".strip() for it in authors if "family-names" in it
            ),
            tuple(it["name"] for it in authors if "family-names" not in it),
        )
    except FileNotFoundError:
        raise FalloffError(f"there is no {file}, which says whose software this is; restore it") from None
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise FalloffError(f"{file} is no citation file (CFF): {error}; restore it") from None
