#!/usr/bin/env python3
"""One iperf3 client for each address, started together; their reports as a table.

usage: fanout ADDRESS,ADDRESS... OPTION...   (options of every client, --json among them)

Each row has the start time of the client [s since the epoch] and its whole report on one line. The
clients of all flows run here, including flows towards this node (--reverse), so one clock gives the
differences between their start times.
"""

import shutil
import subprocess
import sys
import time


def main(words: list[str]) -> list[str]:
    """Run the clients, print the table and return the error message of each client that failed."""
    addresses, options = words[0].split(","), words[1:]
    iperf3 = shutil.which("iperf3")
    if not iperf3:
        return ["iperf3 is not on PATH: install it on this node"]
    started = []
    for address in addresses:
        moment = time.time()
        argv = [iperf3, "--client", address, *options]
        pipe = subprocess.PIPE
        started.append((moment, subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True)))
    failed = []
    print(f"fanout: {len(addresses)} flows, iperf3 {' '.join(options)}")
    print("flow  address  started  report")
    for flow, (address, (moment, client)) in enumerate(zip(addresses, started), start=1):
        report, complaint = client.communicate()
        line = " ".join(part.strip() for part in report.splitlines())
        print(f"{flow:4}  {address}  {moment:.6f}  {line}")
        if client.returncode:
            failed.append(f"{address}: {(complaint.strip() or line)[-200:]}")
    print("end of fanout")
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: fanout ADDRESS,ADDRESS... OPTION...")
    complaints = main(sys.argv[1:])
    sys.exit("fanout: " + "; ".join(complaints) if complaints else 0)
