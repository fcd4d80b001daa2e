"""Name every kernel of some .cu files in a pack for cusim:   python3 pack.py KERNELS.cu ... PACK.h"""
import re
import sys

names = []
for path in sys.argv[1:-1]:
    with open(path, encoding="utf-8") as f:
        names += re.findall(r'^extern "C" __global__ void (\w+)\(', f.read(), flags=re.M)
with open(sys.argv[-1], "w", encoding="utf-8") as f:
    f.write("CUSIM_PACK(" + ", ".join(f"CUSIM_KERNEL({name})" for name in names) + ")\n")
