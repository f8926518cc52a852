"""The command line in this process, which has imported everything already; what it does not catch
is raised here.
"""

import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import falloff

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess:
    """Run `falloff ARGUMENTS` from the repository's root: its exit code and what it said."""
    with pytest.MonkeyPatch.context() as patch, chdir(ROOT):
        patch.setattr(sys, "argv", ["falloff", *arguments])
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = falloff.main()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
