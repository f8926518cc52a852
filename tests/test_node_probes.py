"""The scripts that a node runs for the doctor, as it runs them: their text on standard input, nothing installed."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runners import tools
from runners.probes import node_facts, node_noise

QUESTIONS = {
    "tools": {"python": ["/nowhere/python", sys.executable], "absent": ["/nowhere/xhpl", "no-such-program"]},
    "watch_s": 0.2,
}


def answer(script, *words):
    """What a script prints, given to a bare interpreter on standard input."""
    argv = [sys.executable, "-I", "-S", "-", *words]
    done = subprocess.run(argv, stdin=(tools.PROBES / script).open(), capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_facts_of_this_machine():
    """Python, processors and memory as they are here; the first candidate that is there, with its digest."""
    said = answer("node_facts.py", json.dumps(QUESTIONS))
    assert said["python"] == platform.python_version()
    assert said["processors"] == len(os.sched_getaffinity(0)) and 0 < said["available_bytes"] <= said["memory_bytes"]
    assert said["tools"]["absent"] is None and said["tools"]["python"]["path"] == sys.executable
    digest = hashlib.sha256(Path(sys.executable).read_bytes()).hexdigest()
    assert digest.startswith(said["tools"]["python"]["digest"]) and len(said["tools"]["python"]["digest"]) == 12


def test_only_known_programs_are_asked_for_their_version(tmp_path):
    """xhpl would compute: a program that is not known to tell its version is not started."""
    for name in ("iperf3", "xhpl"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started-{name}\necho {name} 3.x\n")
        program.chmod(0o755)
    assert node_facts.tool("iperf3", [str(tmp_path / "iperf3")])["version"] == "iperf3 3.x"
    assert node_facts.tool("xhpl", [str(tmp_path / "xhpl")])["version"] is None
    assert [file.name for file in tmp_path.glob("started-*")] == ["started-iperf3"]


def test_links_and_rdma_ports_tell_their_state(tmp_path, monkeypatch):
    """Rates in bit/s; a link that is down, a virtual one, and one that refuses an answer have none."""
    speeds = {"eth0": "10000\n", "eth1": "-1\n", "veth0": ""}
    for interface, speed in speeds.items():
        (tmp_path / "net" / interface).mkdir(parents=True)
        (tmp_path / "net" / interface / "speed").write_text(speed)
    port = tmp_path / "infiniband" / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    monkeypatch.setattr(node_facts, "_SYS", tmp_path)
    said = node_facts.facts({"tools": {}, "watch_s": 0.05})
    assert said["link_bit_s"] == {"eth0": 10**10, "eth1": None, "veth0": None}
    assert said["rdma_state"] == {"mlx5_0:1": "4: ACTIVE"}


def test_the_busiest_process_is_named():
    """A process that computes for the whole time is among the first, by its name and with much of a processor."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            time.sleep(0.2)
            seen = {process["pid"]: process for process in node_facts.busiest(0.5)}
        finally:
            busy.kill()
    assert seen[busy.pid]["share"] > 0.05 and seen[busy.pid]["name"].startswith("python")


def test_an_old_python_only_tells_its_version():
    """What came before 3.9 lacks what the rest needs; it must not end in a traceback."""
    text = (tools.PROBES / "node_facts.py").read_text().replace("sys.version_info", "(3, 6, 8)")
    done = subprocess.run([sys.executable, "-", "{}"], input=text, capture_output=True, text=True, timeout=30)
    assert json.loads(done.stdout) == {"python": platform.python_version()}


def test_noise_is_measured_on_every_processor():
    """A summary for each processor that this process may use, and an ordered distribution in each."""
    said = answer("node_noise.py", "0.3")["processors"]
    assert [each["processor"] for each in said] == sorted(os.sched_getaffinity(0))
    for each in said:
        assert 0 < each["least_s"] <= each["median_s"] <= each["p99_s"] <= each["most_s"] and each["quanta"] > 1
        assert 0 <= each["noise_share"] < 1


def test_the_noise_share_is_the_time_lost():
    """99 quanta of 1 ms and one of 11 ms: 10 of 110 ms went to others; scatter below a tenth is no noise."""
    assert node_noise.summary([1e-3] * 99 + [11e-3])["noise_share"] == pytest.approx(10 / 110)
    assert node_noise.summary([1e-3, 1.05e-3, 0.95e-3, 1.09e-3])["noise_share"] == 0


def test_a_neighbour_on_the_processor_is_noise():
    """With another process bound to the same processor a large part of the time is lost there."""
    processor = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as neighbour:
        try:
            time.sleep(0.2)
            (each,) = node_noise.on_each([processor], 0.5)
        finally:
            neighbour.kill()
    assert each["noise_share"] > 0.2
