"""How often a clean step of PyTorch is accused, by number and order of its recordings:
    STEPGRAPH_LIBRARY=libstepgraph.so python3 left_over.py [processes [at a time]]

Kernels that take large structs by value get bytes that nobody set, which may by chance be those of the step. Here each clean step is recorded
sixteen times in a process, and each run of recordings in a row is compared as if they were steps k and k + 1 in the order of the row; as nothing
differs but what is left over, whatever is accused then is accused falsely. Processes differ in what is left over, so many are needed; runs of one
process overlap.

The last line is JSON. Exit status 0: measured, 1: not, 77: no PyTorch or no card.
"""
import json
import os
import subprocess
import sys

ORDERS = ("01", "0011", "0101", "0110", "011001", "01101001", "0110100110")
RECORDINGS = 16


def measure():
    """{order: [runs in which something is accused, runs]}, of all clean steps, in this process."""
    sys.dont_write_bytecode = True
    import torch_host as host
    import torch_steps as steps

    found = {order: [0, 0] for order in ORDERS}

    def case(options):
        def run(*place):
            bench = steps.Clean(*place, **options)
            recordings = [bench.record_step(0) for _ in range(RECORDINGS)]
            for order in ORDERS:
                for first in range(RECORDINGS - len(order) + 1):
                    row = list(zip(order, recordings[first:]))
                    audit = bench.session.compare(*([step for k, step in row if k == which] for which in "01"))
                    found[order][0] += bool(audit.accused)
                    found[order][1] += 1

        return run

    for options in steps.CLEAN.values():
        host.with_session(case(options))()
    print(json.dumps(found), flush=True)
    os._exit(0)


def main(processes=48, at_a_time=12):
    total, ran, left = {order: [0, 0] for order in ORDERS}, 0, processes
    while left > 0:
        batch = [subprocess.Popen([sys.executable, __file__, "--measure"], stdout=subprocess.PIPE, text=True) for _ in range(min(left, at_a_time))]
        left -= len(batch)
        for process in batch:
            said = process.communicate()[0]
            if process.returncode == 77:
                print(said.strip())
                sys.exit(77)
            if process.returncode != 0:
                print(f"a process failed with exit status {process.returncode}: {said}")
                continue
            ran += 1
            for order, (accused, runs) in json.loads(said.splitlines()[-1]).items():
                total[order] = [total[order][0] + accused, total[order][1] + runs]
    print(f"{ran} of {processes} processes")
    print(f"{'recorded in the order':24} {'accused':>8} {'of':>8}")
    for order, (accused, runs) in total.items():
        print(f"{order:24} {accused:8} {runs:8}")
    print(json.dumps({"script": "left_over", "processes": ran, "orders": total}))
    sys.exit(0 if ran == processes else 1)


if sys.argv[1:2] == ["--measure"]:
    measure()
else:
    main(*map(int, sys.argv[1:]))
