"""What a page of a user's own report says, and what it must not say."""

import re
from pathlib import Path

# What no page of measured data says, but for where it stands beside the shipped reference.
OF_EMULATION = r"\b(?:emulat|simulat|paced|namespace|slowed|dilat|TOP500|unlimited|unshaped|planted|ten times slower)"
BESIDE = r"<h1[^>]*>(?:(?!</h1>).)*Beside the shipped reference.*?(?=<h1)"


def words(page: str) -> str:
    """A page's text without its code and its pictures."""
    page = re.sub(r"<(style|script|svg|pre|details)\b.*?</\1>|data:[^\"]+", " ", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("\u00a0", " ").split())


def of_emulation(report: Path) -> list[str]:
    """What a report says of emulation or simulation, but where it stands beside the shipped reference."""
    page = (report / "report.html").read_text()
    text = words(re.sub(BESIDE, "", page, flags=re.S))
    found = re.finditer(OF_EMULATION, text, re.I)
    return [text[max(match.start() - 80, 0) : match.end() + 80] for match in found]
