"""A disk that is full in the middle of a campaign: what is there is whole, it is said, and nothing else is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# On a small file system of its own: fill it, look at what is there, make room, go on.
SCRIPT = """
import errno, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import campaigns, local_testbed
import runners.campaign as engine
from runners.journal import Folder

engine.runner_named = lambda name: campaigns.ECHO
ballast = Path(sys.argv[1], "ballast")
ballast.write_bytes(bytes(int(sys.argv[3])))
folder, plan, testbed = Folder(Path(sys.argv[1], "c")), campaigns.small_plan(), local_testbed.LocalTestbed()
try:
    engine.run(plan, testbed, folder)
    said = "not full"
except OSError as error:
    said = [errno.errorcode[error.errno], str(error.filename), len(list(folder.path.rglob("*.part")))]
kept = [folder.transcript(trial).trial.id for trial in sorted(folder.finished())]
ballast.unlink()
again = local_testbed.LocalTestbed()
engine.run(plan, again, folder)
print(json.dumps({"said": said, "begun": testbed.executed, "kept": kept, "again": again.executed,
                  "all": [trial.id for trial in plan.trials()]}))
"""


@pytest.mark.parametrize("ballast", [760_000, 785_000])
def test_trials_are_whole_and_the_rest_is_run_when_there_is_room(tmp_path, ballast):
    """A real full file system: every transcript is whole, only the trial that found no room is run again."""
    small = 'mount -t tmpfs -o size=800k tmpfs "$1" && exec "$2" -c "$3" "$1" "$4" "$5"'
    words = [
        "sh",
        "-c",
        small,
        "sh",
        str(tmp_path),
        sys.executable,
        SCRIPT,
        str(HERE),
        str(ballast),
    ]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", *words], capture_output=True, text=True
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this kernel gives no namespaces")
    found = json.loads(done.stdout)
    code, file, parts = found["said"]
    assert code == "ENOSPC" and Path(file).is_relative_to(tmp_path / "c") and parts == 0
    assert found["kept"]
    assert found["kept"] in (found["begun"], found["begun"][:-1]), (
        "only the last can have found no room"
    )
    assert found["kept"] + found["again"] == found["all"]
