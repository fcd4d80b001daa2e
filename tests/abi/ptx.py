"""Make the committed PTX again and compare:   python3 ptx.py ROOT

Another release of nvcc, or of the host compiler whose headers it reads, may order the same instructions otherwise, so only a file
made with the releases found here is compared; exit status 77 where that leaves none.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

import toolkit

root = sys.argv[1]
files = sorted(
    path for folder in ("lib/kernels", "tests/kernels", "examples", "examples/*", "subprojects/cusim/tests") for path in glob.glob(os.path.join(root, folder, "*.ptx"))
)
if not files:
    sys.exit(f"no PTX found under {root}")

nvcc = toolkit.nvcc()
release = re.search(r"V([0-9.]+)", subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout)[1]
gcc = subprocess.run(["gcc", "-dumpversion"], check=True, capture_output=True, text=True).stdout.split(".")[0].strip()
here = f"{release} with gcc {gcc}"
compared, other, wrong = 0, [], []
for ptx in files:
    name = os.path.relpath(ptx, root)
    with open(ptx, "rb") as f:
        committed = f.read()
    source = os.path.splitext(ptx)[0] + ".cu"
    first = committed.split(b"\n", 1)[0].decode(errors="replace")
    made_by = re.match(r"// (\S+), nvcc ([0-9.]+ with gcc [0-9]+):", first)
    if not made_by or made_by[1] != os.path.basename(source):
        wrong.append(f"{name}: the first line does not say which source and which nvcc it was made with: {first!r}")
    elif made_by[2] != here:
        other.append(f"{name} is of nvcc {made_by[2]}")
    else:
        compared += 1
        with tempfile.TemporaryDirectory() as tmp:
            again = os.path.join(tmp, "again.ptx")
            subprocess.run(
                ["sh", os.path.join(root, "lib/kernels/ptx.sh"), source, again], check=True, env={**os.environ, "NVCC": nvcc}
            )
            with open(again, "rb") as f:
                if f.read() != committed:
                    relative = os.path.relpath(source, root)
                    wrong.append(f"{name} is out of date: run sh lib/kernels/ptx.sh {relative} {name}")

for line in wrong:
    print(line)
if wrong:
    sys.exit(1)
if not compared:
    toolkit.skip(f"nvcc here is {here}; {', '.join(other)}")
print(f"nvcc {here}: {compared} files are what their sources give" + "".join(f"; not compared: {line}" for line in other))
