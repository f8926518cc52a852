"""What the commands about evidence do: trace, verify and archive; the parameters are the commands' arguments."""

import sys
from pathlib import Path

from runners.record import FalloffError


def verify(folders: list[Path], renew: bool) -> int:
    """Check campaigns' folders against what was recorded of them; 1 if anything differs.

    With `renew` what they are now is recorded, after what differed was said.
    """
    from analysis.evidence import verify as checks

    differing = 0
    found = checks.folders(folders)
    for folder in found:
        try:
            check = checks.check(folder)
        except FalloffError as error:
            print(f"DIFFERS  {folder}: {error}")
            differing += 1
            continue
        print(checks.text(check), flush=True)
        differing += bool(check.differences)
        if renew:
            checks.renew(folder)
    if renew:
        print(f"Recorded anew: {len(found)} campaigns")
        return 0
    if differing:
        print(f"falloff: {differing} of {len(found)} campaigns differ from what was recorded", file=sys.stderr)
    return int(bool(differing))
