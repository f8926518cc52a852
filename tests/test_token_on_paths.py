"""Token exchange between emulated nodes: the sum stays within the wire, and a killed end is a failed trial."""

import tomllib
from pathlib import Path

import pytest
import users
from token_programs import compiled
from undisturbed import alone, repeated

from runners import token_exchange
from runners.record import Command, Trial, judge
from runners.testbeds import emulated, netns

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "data/testbeds/paths.toml").read_text())
RATE = 20e6
# Two pairs whose producers share one link to the other switch: 1 and 2 with 3 and 4.
SHARED = {
    "name": "shared",
    "mtu": 1500,
    "rate_bit_s": 100e6,
    "switches": {"near": 1500, "far": 1500},
    "links": [
        {"from": [1, 2], "to": "near"},
        {"from": [3, 4], "to": "far"},
        {"from": "near", "to": "far", "rate_bit_s": RATE},
    ],
}
POINT = {
    "path": "shared",
    "pairs": 2,
    "producers": "1,2",
    "consumers": "3,4",
    "token_bytes": 8192,
    "runs": 2,
    "warm_up_s": 0.2,
    "window_s": 0.5,
}

lacking = users.lacking(DESCRIPTION)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """token, by TCP."""
    return compiled("token", "cc", tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def testbed(program):
    """The testbed with the one path."""
    description = {**DESCRIPTION, "cpu": {"baseline_s": 0.02}, "tools": {"token": str(program)}}
    with emulated.open_testbed(description, {"shared": SHARED}) as opened:
        yield opened


def run(testbed, commands):
    """A trial's transcript and the judgement of it."""
    transcript = testbed.run(Trial("t", "point", "token_exchange", 1, 1, POINT), commands)
    return transcript, judge(transcript, token_exchange.parse)


@alone
def test_the_sum_of_the_pairs_stays_within_the_wire(testbed):
    """Of what they share; both pairs take part, and all that is counted was carried by their interfaces."""

    def takes_part(ran) -> bool:
        return (
            ran[1].status == "ok"
            and min(min(each) for each in ran[1].readings[0].value) > 0.1 * RATE / 8
        )

    transcript, outcome = repeated(
        lambda: run(testbed, token_exchange.commands(POINT)), takes_part
    )[-1]
    assert outcome.status == "ok", outcome.reason
    throughput, _, exchanges = (reading.value for reading in outcome.readings)
    begun = (
        POINT["token_bytes"] / POINT["window_s"]
    )  # an exchange that was under way when the window began
    for together in zip(*throughput):
        assert sum(together) - 2 * begun < RATE / 8
        assert min(together) > 0.1 * RATE / 8
    for node, own in zip((0, 1), exchanges):
        assert transcript.counters["bytes_sent"][node] > sum(own) * POINT["token_bytes"]


@pytest.mark.parametrize("end", [0, 2], ids=["consumer", "producer"])
def test_an_end_killed_in_mid_run_is_a_failed_trial_with_no_orphan(testbed, program, end):
    """The death of one end of pair 1 after half a second fails the trial, with the signal; nothing of it runs on."""
    commands = token_exchange.commands(POINT)
    killed = commands[end]
    commands[end] = Command(("timeout", "-s", "KILL", "0.5", str(program), *killed.argv[1:]), node=killed.node,
                            background=True, listens=killed.listens)  # fmt: skip
    lost = "token: the producer of pair 1 ended before the measurement did\n"
    ran = repeated(lambda: run(testbed, commands), lambda ran: ran[0].executions[-1].stderr == lost)
    transcript, outcome = ran[-1]
    assert outcome.status == "failed" and "exit code -9" in outcome.reason and not outcome.readings
    assert transcript.executions[-1].stderr == lost
    net = testbed.net
    assert netns.processes([net.space(f"n{node}") for node in net.graph.nodes]) == set()
