"""A campaign of simulations side by side, interrupted at random moments: it ends, and leaves nothing behind."""

import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from test_simulated import working_folders

import experiment
from runners.journal import Folder

pytestmark = pytest.mark.skipif(not shutil.which("smpirun"), reason="SimGrid is not here: libsimgrid-dev")


# Runs the plan that lies in a folder, several trials at once. It imports no analysis, to be there soon.
OWNER = """
import signal, sys
from pathlib import Path
from runners import campaign
from runners.journal import Folder
from runners.testbeds import simulated
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
folder = Path(sys.argv[1])
simulated._ROOT = folder / "simulated"
plan = Folder(folder / "c").plan()
with simulated.open_testbed(plan.testbed, plan.interconnects) as testbed:
    simulated.Simulated.at_once = property(lambda self: 3)
    campaign.run(plan, testbed, Folder(folder / "c"))
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_no_simulator_and_no_folder_outlive_an_interruption(tmp_path, sent):
    """Whatever the threads are at: starting, simulating or removing."""
    Folder(tmp_path / "c").create_or_check(experiment.plan_campaign("hpl_contention", "smith", "full"))
    chance = random.Random(5)
    for _ in range(2):
        owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not any(str(tmp_path) in folder for folder in working_folders()):
            assert time.monotonic() < deadline and owner.poll() is None
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 1.0))
        owner.send_signal(sent)
        said = owner.communicate(timeout=30)[1]
        assert "FileNotFoundError" not in said and "OSError" not in said
        assert owner.returncode == (143 if sent == signal.SIGTERM else -signal.SIGINT), said
        assert not any(str(tmp_path) in folder for folder in working_folders())
        assert [entry.name for entry in (tmp_path / "simulated").iterdir()] == ["turn"]
