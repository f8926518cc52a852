"""A program in perf's place, for machines whose processors do not count."""

import os
import sys
from pathlib import Path

# perf's form, with counts.
COUNTS = """\
CPU0,7303786493,,instructions,955123232,100.00,0.31,insn per cycle
CPU1,5,,instructions,955123232,100.00,,
"""


def put(folder: Path, monkeypatch, output: str = COUNTS) -> None:
    """Let it print, like perf, when it is interrupted or its command has ended; `folder` becomes PATH's first."""
    (folder / "perf").write_text(
        f"""#!{sys.executable}
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit({output!r}))
if sys.argv[-1] == "true":
    sys.exit({output!r})
signal.pause()
"""
    )
    (folder / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
