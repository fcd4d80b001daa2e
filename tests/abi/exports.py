"""The library exports what the public headers declare and nothing else:   python3 exports.py LIBRARY HEADERS"""
import glob
import os
import re
import subprocess
import sys

library, headers = sys.argv[1], glob.glob(os.path.join(sys.argv[2], "*.h"))
declared = set()
for path in headers:
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    declared |= {match[1] for match in re.finditer(r"^STEPGRAPH_API\b[^;(]*?(\w+)\(", text, flags=re.M)}

lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
# Type A is the name of a version, such as STEPGRAPH_0.1; a default version follows the name after @@.
exported = {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A"}

wrong = [f"exported, but not a stepgraph_ name: {name}" for name in sorted(exported) if not name.startswith("stepgraph_")]
wrong += [f"exported, but in no public header: {name}" for name in sorted(exported - declared) if name.startswith("stepgraph_")]
wrong += [f"declared, but not exported: {name}" for name in sorted(declared - exported)]
for line in wrong:
    print(line)
print(f"{len(exported)} symbols exported, {len(declared)} declared, {len(wrong)} wrong")
sys.exit(1 if wrong or not exported else 0)
