"""A small campaign for tests of the engine, and a tool for it that any machine has."""

import copy

import runners
from analysis.descriptions.campaigns import checked, for_preset
from analysis.descriptions.resolution import resolve
from analysis.descriptions.testbeds import Testbed
from runners.records.record import Command, Result, Tool, Unreadable

CAMPAIGN = {
    "name": "small",
    "title": "A small campaign",
    "runner": "echo",
    "seed": 7,
    "factors": {"interconnect": ["gige", "10gige"], "nodes": [1, 2, 4]},
    "levels": {"nodes": {"1": {"N": 100}, "2": {"N": 140}, "4": {"N": 200}}},
    "settings": {"say": "3.5", "seconds": "0"},
    "warm_up": [{"interconnect": "gige", "nodes": 2}],
    "design": {
        "margin": 0.05,
        "primary": ["gige", "10gige"],
        "control": "gige",
        "baseline_nodes": 2,
    },
    "stopping": {"blocks": 3},
    "presets": {"quick": {"time_budget_s": 30}},
}
TESTBED = Testbed(name="local", kind="local", nodes=4)
INTERCONNECTS = {"gige": {"rate_bit_s": 1e9}, "10gige": {"rate_bit_s": 1e10}}


def small_plan(preset: str = "", **changes):
    """The small campaign resolved, with some of its keys changed."""
    campaign = checked({**copy.deepcopy(CAMPAIGN), **changes})
    return resolve(for_preset(campaign, preset), TESTBED, INTERCONNECTS)


def _commands(point):
    script = 'sleep "$2" && echo "$1"'
    return [
        Command(
            ("sh", "-c", script, "sh", point["say"], point["seconds"]),
            timeout_s=point.get("timeout_s", 5),
        )
    ]


def _results(text):
    try:
        return [Result({"hpl_rate": float(text)})]
    except ValueError:
        raise Unreadable(f"{text.strip()!r} is not a number") from None


def _parse(transcript):
    return _results(transcript.executions[-1].stdout)[0].readings


ECHO = Tool("echo", _commands, _results, parse_trial=_parse)


def use_echo(monkeypatch) -> None:
    """Let the engine find the echo runner."""
    monkeypatch.setattr(runners.engine.campaign, "tool_named", lambda name: ECHO)
