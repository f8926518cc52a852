"""One node's measured rates, as a description in data/testbeds has them."""

import json
import subprocess
from datetime import date
from pathlib import Path
from typing import Any, Dict

from runners import node_rates, provenance, tools
from runners.record import FalloffError, Trial, judge

# Of each measurement; longer on a testbed, whose nodes have neighbours.
_HERE_S = 0.1
_ON_TESTBED_S = 0.5

_PROCESSORS = Path("/sys/devices/system/cpu")
_LEAST_ARRAY_MIB = 64  # also where the kernel names no caches


def run_here() -> str:
    """The output of node_rates on all cores of this machine; raises FalloffError when it does not end well."""
    (command,) = node_rates.commands(_settings(_HERE_S))
    argv = [tools.find(command.argv[0], {}), *command.argv[1:]]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=command.timeout_s)
    except subprocess.TimeoutExpired:
        raise FalloffError(f"node_rates still ran after {command.timeout_s:.0f} s and was stopped") from None
    if done.returncode != 0:
        raise FalloffError(f"node_rates ended with exit code {done.returncode}: {done.stderr.strip()[:200]}")
    return done.stdout


def run_on(testbed: Any, interconnect: str) -> str:
    """The same on node 1 of an opened testbed; raises FalloffError with the reason when
    the trial is not valid."""
    point = {"interconnect": interconnect, **_settings(_ON_TESTBED_S)}
    trial = Trial("rates", "survey", "node_rates", 0, 1, point)
    transcript = testbed.run(trial, node_rates.commands(point))
    outcome = judge(transcript, node_rates.parse)
    if outcome.status != "ok":
        raise FalloffError(f"the rates of a node of testbed {testbed.name} cannot be measured: {outcome.reason}")
    return transcript.executions[-1].stdout


def as_toml(output: str, machine: str = "") -> str:
    """A table [rates.NAME] for each rate in an output of node_rates: value, low, high, unit, source.

    The value is the median over the turns of the run, low and high their range; `machine` is what they are of, by
    default this one. Raises as `node_rates.results` does.
    """
    if not machine:
        host = provenance.host()
        machine = f"{host['hostname']} ({host['cpu_model']})"
    source = f"measured on {machine}, {date.today()}, by falloff rates: DGEMM and STREAM"
    return "\n".join(
        f"[rates.{name}]\nvalue = {spread.value:.4g}\nlow = {spread.low:.4g}\nhigh = {spread.high:.4g}\n"
        f"unit = {json.dumps(node_rates.UNITS[name])}\nsource = {json.dumps(source, ensure_ascii=False)}\n"
        for name, spread in node_rates.spreads(output).items()
    )


def array_mib(processors: Path = _PROCESSORS) -> int:
    """The size of each of STREAM's arrays in MiB: four times all last-level caches of the machine together,
    as STREAM's rules ask for, and never small.

    `processors` is the kernel's folder of processors, with cpu*/cache/index*/{level,size,shared_cpu_list}.
    """
    sizes: Dict[int, Dict[str, int]] = {}
    for cache in processors.glob("cpu[0-9]*/cache/index[0-9]*"):
        level, size, shared = ((cache / name).read_text().strip() for name in ("level", "size", "shared_cpu_list"))
        sizes.setdefault(int(level), {})[shared] = int(size.rstrip("K"))
    last_level_kib = sum(sizes[max(sizes)].values()) if sizes else 0
    return max(_LEAST_ARRAY_MIB, -(-4 * last_level_kib // 1024))


def _settings(duration_s: float) -> Dict[str, Any]:
    return {"duration_s": duration_s, "array_mib": array_mib()}
