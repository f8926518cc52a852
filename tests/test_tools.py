"""The other runners' commands and refusals, and how a tool is found."""

import pytest
import recorded

from runners import tools
from runners.record import FalloffError

LINK = {"sender": 1, "receiver": 3, "count": 50}


def program(path):
    """An executable file at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_looks_first_where_the_user_says_then_on_path_then_here(tmp_path, monkeypatch):
    """The configured path wins over PATH, and PATH over what was built here."""
    configured, on_path, built = (
        program(tmp_path / place / "xhpl") for place in ("mine", "path", "built")
    )
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert tools.find("xhpl", {"xhpl": configured}, tmp_path / "built") == configured
    assert tools.find("xhpl", {}, tmp_path / "built") == on_path
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.find("xhpl", {}, tmp_path / "built") == built


def test_a_missing_tool_is_refused_with_the_remedy(tmp_path, monkeypatch):
    """A tool that is nowhere names the command that brings it; a wrong path is not replaced by PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    with pytest.raises(FalloffError, match="make setup"):
        tools.find("xhpl", {}, tmp_path)
    program(tmp_path / "path" / "xhpl")
    with pytest.raises(FalloffError, match="nowhere/xhpl"):
        tools.find("xhpl", {"xhpl": "/nowhere/xhpl"}, tmp_path)


def test_ping_counts_only_the_first_of_duplicate_replies():
    """A duplicated reply changes neither the loss nor the median."""
    text = recorded.text("ping/20221126-ok")
    first = next(line for line in text.splitlines() if "icmp_seq=1 " in line)
    doubled = text.replace(first, f"{first}\n{first} (DUP!)").replace(
        "20 received,", "20 received, +1 duplicates,"
    )
    assert recorded.judged("ping", doubled, LINK) == recorded.judged("ping", text, LINK)
