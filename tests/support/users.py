"""An ordinary user for the tests: a home with what is needed, processes, and what is left of
them.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners import executables
from runners.records.journal import Folder
from runners.records.plan import Plan
from runners.records.record import FalloffError
from runners.testbeds import emulated

ROOT = Path(__file__).resolve().parents[2]
USER = 54321  # nobody's on any machine, so that all processes of this user are the test's
IS_ROOT = os.geteuid() == 0
PYTHON = "/usr/bin/python3"  # the one that runs the tests may lie in root's home

# What the user does, who has a copy of `runners` and nothing else of the project.
SCRIPT = """
from pathlib import Path
from runners.engine import session
from runners.records.journal import Folder
folder = Folder(Path("campaign"))
session.run(folder.plan(), folder, lambda e: e.kind == "finished" and print(e.trial.id, flush=True))
"""


def lacking(description: dict) -> list[str]:
    """Why a test cannot have an emulated testbed in its own process: the testbed's reasons, or that
    it is not root.
    """
    return emulated.unavailable(description) + (
        [] if IS_ROOT else ["network namespaces need root: run it with sudo"]
    )


def require(*names: str) -> None:
    """Skip the test where one of these tools is missing."""
    for name in names:
        try:
            executables.find(name, {})
        except FalloffError as error:
            pytest.skip(str(error))


@contextmanager
def furnished() -> Iterator[Path]:
    """A home with a copy of `runners` and of the built tools: the checkout may be closed to others.

    The test is skipped where a tool is missing, or the user may not make user namespaces.
    """
    with tempfile.TemporaryDirectory(prefix="ordinary-") as folder:
        home = Path(folder)
        shutil.copytree(
            ROOT / "runners", home / "runners", ignore=shutil.ignore_patterns("__pycache__")
        )
        (home / "build/tools/bin").mkdir(parents=True)
        require("xhpl", "dgemm")
        for tool in ("xhpl", "dgemm"):
            shutil.copy(executables.find(tool, {}), home / "build/tools/bin")
        give(home)
        for needed in (["unshare", "--user", "--map-root-user", "true"], [PYTHON, "--version"]):
            attempt = subprocess.run(needed, preexec_fn=become, capture_output=True, text=True)
            if attempt.returncode:
                pytest.skip(attempt.stderr)
        yield home


def give(folder: Path) -> None:
    """Make a folder the user's own."""
    if IS_ROOT:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, USER, USER)


def become() -> None:
    """Become the user, unless that is who runs the tests."""
    if IS_ROOT:
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)


def start(home: Path, wanted: Plan) -> subprocess.Popen:
    """The user runs a campaign in a folder `campaign` of the home."""
    folder = Folder(home / "campaign")
    folder.create_or_check(wanted)
    give(folder.path)
    return subprocess.Popen(
        [PYTHON, "-c", SCRIPT],
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        preexec_fn=become,
        process_group=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes() -> list[str]:
    """What the user's processes run; nothing where the user is who runs the tests."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == USER:
                found.append((folder / "comm").read_text().strip())
        except OSError:
            pass  # it has just ended
    return found


def left_over() -> list[str]:
    """The user's processes that are still there after some seconds; without any there is no
    namespace either.
    """
    deadline = time.monotonic() + 10
    while processes() and time.monotonic() < deadline:
        time.sleep(0.02)
    return processes()
