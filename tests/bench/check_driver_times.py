"""What driver-times.so writes about a program that ends recordings:   python3 check_driver_times.py TIMES DRIVER PROGRAM ..."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

times, driver, *program = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    told = pathlib.Path(folder, "times.txt")
    environment = {**os.environ, "STEPGRAPH_DRIVER": times, "DRIVER_TIMES_OF": driver, "DRIVER_TIMES": str(told)}
    subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)
    text = told.read_text(encoding="utf-8")
calls = {name: float(n) for name, n in re.findall(r"^(cu\w+) +([\d.]+) calls", text, flags=re.M)}
wrong = [name for name in ("cuGraphInstantiateWithParams", "cuGraphUpload") if calls.get(name) != 1]
wrong += [] if re.match(r"[1-9]\d* recordings ended, [\d.]+ us each\n", text) else ["recordings"]
wrong += [] if calls.get("cuGraphNodeGetType", 0) >= 1 and calls["cuGraphKernelNodeGetParams"] <= calls["cuGraphNodeGetType"] else ["nodes"]
wrong += [name for name in ("cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphLaunch") if name in calls]  # Outside of it
if wrong:
    sys.exit(f"{', '.join(wrong)}:\n{text}")
