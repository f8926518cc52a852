"""A small real HPL campaign on two emulated nodes, as a program that can be killed: small_hpl.py
FOLDER.
"""

import sys
from pathlib import Path

from runners.engine import campaign as engine
from runners.records.journal import Folder
from runners.records.plan import Plan
from runners.testbeds import busy, emulated


def plan(blocks: int = 2) -> Plan:
    """Two blocks of HPL on two nodes, on GigE and 10GE, at a size that takes half a second."""
    # What runs a plan needs none of these.
    from analysis.descriptions import campaigns, networks, testbeds
    from analysis.descriptions.resolution import resolve

    campaign = campaigns.read("hpl_scaling").changed(
        factors={"interconnect": ["gige", "10gige"], "nodes": [2]},
        levels={"nodes": {"2": {"P": 1, "Q": 2, "N": 1408}}},
        stopping=campaigns.Rules(blocks=blocks),
        survey=[],
    )
    return resolve(campaign, testbeds.read("emulated").changed(nodes=2), networks.between({}))


def main(folder: Path) -> None:
    """Run what is missing of the folder's plan, telling each finished trial; the testbed's state is
    in a folder `states` beside."""
    emulated._ROOTS = dict.fromkeys(emulated._ROOTS, folder.parent / "states")
    wanted = Folder(folder).plan()
    with emulated.open_testbed(wanted.testbed, wanted.interconnects) as testbed:
        print("open", testbed.state, flush=True)
        engine.run(
            wanted,
            testbed,
            Folder(folder),
            lambda e: e.kind == "finished" and print(e.trial.id, flush=True),
        )


if __name__ == "__main__":
    busy._MOST_LOAD = 2  # the tests beside it are no reason to refuse its trials
    main(Path(sys.argv[1]))
