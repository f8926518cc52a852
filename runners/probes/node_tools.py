#!/usr/bin/env python3
"""Where a program is on a node: the first of the candidates, names on PATH or paths, that can be executed.

usage: node_tools CANDIDATE...     (prints {"path": ...}, null when there is none)
"""

import json
import os
import shutil
import sys
from typing import List


def main(candidates: List[str]) -> None:
    """Print the path."""
    found = (shutil.which(os.path.expanduser(candidate)) for candidate in candidates)
    print(json.dumps({"path": next(filter(None, found), None)}))


if __name__ == "__main__":
    main(sys.argv[1:])
