"""A place with this code and some references, as somebody has it who packs an archive, and the
command line there.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from command_line import ROOT


def furnish(place: Path, references: Iterable[str]) -> None:
    """Put this code and these references into a folder, with a report, a user's own dataset, and no
    git.
    """
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    kept = rf"(?!tests/|data/reference/(?!{'|'.join(references)}|trust\.csv))"
    texts = {name: (ROOT / name).read_bytes() for name in names.split() if re.match(kept, name)}
    made = (
        "build/report/falloff.html",
        "data/datasets/own.nc",
        "build/tools/bin/xhpl",
        ".venv/bin/python",
    )
    texts |= dict.fromkeys(made, b"of this place")
    texts["commit.json"] = b'{"git_commit": "0123456789abcdef", "git_dirty": true}'
    for name, text in texts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(text)
    (place / "packaging" / "install-packages").chmod(0o755)


def falloff(place: Path, *arguments: str, code: int = 0) -> str:
    """Run the command line of a place that is not installed; all that it said."""
    command = [sys.executable, "falloff.py", *arguments]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place.parent)}
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr
