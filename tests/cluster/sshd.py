"""OpenSSH servers on all nodes, with keys made for the test: nobody's own keys or settings are read or changed."""

import subprocess
from pathlib import Path

from nodes import Nodes
from waiting import until

from runners.testbeds import netns

_KEYGEN = ["ssh-keygen", "-q", "-t", "ed25519", "-N", ""]

_SERVER = """\
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin prohibit-password
PidFile none
# The tests run as root, as whom mpirun otherwise refuses.
SetEnv OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"""

_CLIENT = """\
Host *
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


def serve(nodes: Nodes) -> Path:
    """Start a server on every node, to end with it; the configuration file for clients, as in `ssh -F FILE`.

    Every node has the same host key, and it is known under their names and addresses.
    """
    folder = nodes.shared / "ssh"
    folder.mkdir()
    for key in ("host", "user"):
        subprocess.run([*_KEYGEN, "-C", key, "-f", str(folder / key)], check=True)
    names = ",".join([*(node.name for node in nodes.all), "10.81.*"])
    (folder / "known_hosts").write_text(f"{names} {(folder / 'host.pub').read_text()}")
    server, client = folder / "sshd_config", folder / "config"
    server.write_text(_SERVER.format(folder=folder))
    client.write_text(_CLIENT.format(folder=folder))
    for node in nodes.all:
        # An absolute path, because sshd starts itself anew for each connection.
        done = node.run(
            ["/usr/sbin/sshd", "-f", str(server), "-E", str(folder / f"{node.name}.log")]
        )
        assert done.returncode == 0, done.stderr
    for node in nodes.all:
        until(lambda: 22 in netns.listening(node.space), f"sshd of {node.name} listens")
    return client
