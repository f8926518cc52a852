"""The other runners' commands and refusals, and how a tool is found."""

import json

import pytest
import recorded

from runners import dgemm, iperf3, ping, tools
from runners.record import FalloffError

IPERF3_OK = recorded.text("iperf3/3.12-ok")
LINK = {"sender": 1, "receiver": 3, "in_quota": False, "duration_s": 2, "count": 50}


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


def test_iperf3_starts_its_server_on_the_receiver_first():
    """The server listens in the background where the client calls, both outside the quota if asked."""
    server, client = iperf3.commands(LINK)
    assert server.background and (server.node, client.node) == (3, 1)
    assert "{node3}" in client.argv and str(server.listens) in client.argv
    assert not server.in_quota and not client.in_quota


@pytest.mark.parametrize(
    "output, reason",
    [
        ("", "printed nothing"),
        ('{"error": "unable to connect to server: Connection refused"}', "Connection refused"),
        ('{"start": {}, "end": {}}', "end.sum_received"),
        ('{"end": []}', "end.sum_received"),
        ("[1]", "not a JSON object"),
        (IPERF3_OK[: len(IPERF3_OK) // 2], "not whole JSON"),
        (IPERF3_OK + IPERF3_OK, "more than one"),
    ],
)
def test_iperf3_refuses_each_broken_report_with_its_own_reason(output, reason):
    """No broken report becomes a throughput, least of all zero."""
    outcome = recorded.judged("iperf3", output, LINK)
    assert outcome.status == "unreadable" and reason in outcome.reason


def test_iperf3_does_not_take_silence_for_a_measurement():
    """A report whose receiver counted nothing is refused."""
    report = json.loads(IPERF3_OK)
    report["end"]["sum_received"]["bits_per_second"] = 0
    assert "no data" in recorded.judged("iperf3", json.dumps(report), LINK).reason


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
