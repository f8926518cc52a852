"""What is shipped: the reference campaigns with their transcripts."""

import time
from typing import Any

from analysis.paths import REFERENCE
from runners.journal import Folder


def shipped() -> list[dict[str, Any]]:
    """A row for each reference campaign: its name and testbed, what was run, the number of trials and the day."""
    return [_row(Folder(file.parent)) for file in sorted(REFERENCE.glob("*/trials.json"))]


def _row(folder: Folder) -> dict[str, Any]:
    plan = folder.plan()
    return {
        "campaign": plan.name,
        "testbed": plan.testbed["name"],
        "what was run": plan.title,
        "trials": len(plan.trials()),
        "ended": time.strftime("%Y-%m-%d", time.gmtime(folder.notes()[-1]["at"])),
    }
