"""The other runners' commands and refusals, and how a tool is found."""

import pytest
import recorded

from runners import dgemm, ping, tools
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
    configured, on_path, built = (program(tmp_path / place / "xhpl") for place in ("mine", "path", "built"))
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


def test_ping_ends_within_its_limit():
    """Every request is sent before the time limit, from the sender to the receiver's address."""
    (command,) = ping.commands(LINK)
    assert command.node == 1 and command.argv[-1] == "{node3}"
    assert command.timeout_s > LINK["count"] * ping.INTERVAL_S


def test_ping_counts_only_the_first_of_duplicate_replies():
    """A duplicated reply changes neither the loss nor the median."""
    text = recorded.text("ping/20221126-ok")
    first = next(line for line in text.splitlines() if "icmp_seq=1 " in line)
    doubled = text.replace(first, f"{first}\n{first} (DUP!)").replace(
        "20 received,", "20 received, +1 duplicates,"
    )
    assert recorded.judged("ping", doubled, LINK) == recorded.judged("ping", text, LINK)


def test_ping_refuses_a_summary_whose_replies_are_missing():
    """Fewer replies than the summary counts means that output was lost."""
    text = recorded.text("ping/20221126-ok")
    first = next(line for line in text.splitlines() if "icmp_seq=1 " in line)
    assert "19 are printed" in recorded.judged("ping", text.replace(first + "\n", ""), LINK).reason


def test_dgemm_has_the_shape_of_hpls_update():
    """The inner dimension is the block size, on one process a node."""
    (command,) = dgemm.commands({"interconnect": "gige", "nodes": 4, "K": 128, "duration_s": 1.5})
    assert command.ranks == 4 and command.argv == ("dgemm", str(dgemm.ORDER), "128", "1.5")
    assert command.timeout_s > 1.5


@pytest.mark.parametrize("setting, value", [("nodes", 4), ("K", 64)])
def test_dgemm_on_other_settings_than_asked_for_is_invalid(setting, value):
    """A rate of other nodes or another block size is not the point's ceiling."""
    outcome = recorded.judged(
        "dgemm", recorded.text("dgemm/1-two-ranks"), {"nodes": 2, "K": 128, setting: value}
    )
    assert outcome.status == "invalid" and setting in outcome.reason


def test_dgemm_refuses_a_rate_that_contradicts_its_work():
    """Each rank's rate must be its operations over its seconds."""
    text = recorded.text("dgemm/1-two-ranks").replace("39.533537", "49.533537")
    assert "rank 0" in recorded.judged("dgemm", text, {"nodes": 2, "K": 128}).reason
