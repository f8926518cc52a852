"""What a page of a user's own report says, and what it must not say."""

import re
from pathlib import Path

# What no page of measured data says.
OF_EMULATION = (
    r"\b(?:emulat|simulat|paced|namespace|slowed|dilat|TOP500"
    r"|unlimited|unshaped|planted|ten times slower)"
)


def words(page: str) -> str:
    """A page's text without its code and its pictures."""
    page = re.sub(r"<(style|script|svg|pre|details)\b.*?</\1>|data:[^\"]+", " ", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("\u00a0", " ").split())


def of_emulation(report: Path) -> list[str]:
    """What a report says of emulation or simulation."""
    text = words((report / "report.html").read_text())
    found = re.finditer(OF_EMULATION, text, re.I)
    return [text[max(match.start() - 80, 0) : match.end() + 80] for match in found]
