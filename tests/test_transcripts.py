"""Every recorded output is read, or refused, as the file beside it says; a new pair tests itself."""

import pytest
import recorded

CASES = sorted(
    str(file.relative_to(recorded.FOLDER).with_suffix("")) for file in recorded.FOLDER.glob("*/*.txt")
)


def tool(case):
    """The tool whose folder the case lies in."""
    return case.split("/")[0]


@pytest.mark.parametrize("case", CASES)
def test_reads_what_is_expected(case):
    """A whole output gives exactly the expected readings, or the expected status and reason."""
    expected = recorded.expected(case)
    outcome = recorded.judged(tool(case), recorded.text(case), expected["point"])
    if "readings" in expected:
        assert outcome.status == "ok", outcome.reason
        assert {reading.name: [reading.value, reading.unit] for reading in outcome.readings} == expected[
            "readings"
        ]
    else:
        assert (outcome.status, outcome.readings) == (expected["status"], ())
        assert expected["reason"] in outcome.reason


@pytest.mark.parametrize("case", CASES)
def test_truncated_output_never_gives_a_number(case):
    """Cut after any line, or at every seventh byte, no output is a valid measurement."""
    point, whole = recorded.expected(case)["point"], recorded.text(case).rstrip()
    lines = whole.splitlines(keepends=True)
    cuts = {len("".join(lines[:kept])) for kept in range(len(lines))} | set(range(0, len(whole), 7))
    accepted = [cut for cut in sorted(cuts) if recorded.judged(tool(case), whole[:cut], point).status == "ok"]
    assert not accepted
