"""What the project ships: notebooks with their questions, and reference campaigns with their
transcripts."""

import json
import re
import time
from typing import Any

from analysis.paths import NOTEBOOKS, REFERENCE
from runners.journal import Folder


def shipped() -> list[dict[str, Any]]:
    """A row for each reference campaign: its name and testbed, what was run, the number of trials and the day."""
    return [_row(Folder(file.parent)) for file in sorted(REFERENCE.glob("*/trials.json"))]


def contents() -> str:
    """Every notebook on your own data or an experiment with its question, as a Markdown table with links."""
    rows = []
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not "01" <= file.name < "90":  # the others frame these
            continue
        opening = "".join(json.loads(file.read_text(encoding="utf-8"))["cells"][0]["source"])
        title, _, text = opening.partition("\n")
        words = re.sub(r"\s*\[@[^]]*\]", "", " ".join(text.split()))
        questions = "".join(re.findall(r"[^.?!]+\?", words)).strip()
        rows.append(f"| [{file.stem}]({file.name}) | {title[2:]} | {questions} |")
    return "\n".join(["| Notebook | Title | Question |", "|:--|:--|:--|", *rows])


def _row(folder: Folder) -> dict[str, Any]:
    plan = folder.plan()
    return {
        "campaign": plan.name,
        "testbed": plan.testbed["name"],
        "what was run": plan.title,
        "trials": len(plan.trials()),
        "ended": time.strftime("%Y-%m-%d", time.gmtime(folder.notes()[-1]["at"])),
    }
