"""An ssh that connects to nobody: every host is this machine. For tests of what ssh starts, without
servers.
"""

import os
import stat
from pathlib import Path

# A host is down while there is a file of its name beside this program. The real one joins its words
# too, and leaves them to a shell.
_SSH = """\
#!/bin/sh
while :; do
  case $1 in
    -[Fo]) shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1
shift
if [ -e "$(dirname "$0")/$host.down" ]; then
  echo "ssh: connect to host $host port 22: No route to host" >&2
  exit 255
fi
exec bash -c "$*"
"""


class LocalSsh:
    """The program in `folder`, first on PATH."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder = folder
        folder.mkdir()
        program = folder / "ssh"
        program.write_text(_SSH)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def lose(self, host: str) -> None:
        """From now on nobody connects to the host."""
        (self.folder / f"{host}.down").touch()
