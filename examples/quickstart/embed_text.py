"""Put this project's documentation into a C header, as the quick start's default text:   python3 embed_text.py ROOT OUT.h OUT.d"""
import pathlib
import sys

root, target, depfile = (pathlib.Path(a) for a in sys.argv[1:])
found = [p for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "include/stepgraph/*.h") for p in sorted(root.glob(name))]
data = b"\n".join(p.read_bytes() for p in found)
with open(target, "w", encoding="ascii") as f:
    f.write("static const unsigned char default_text[] = {\n")
    for i in range(0, len(data), 32):
        f.write(",".join(str(b) for b in data[i : i + 32]) + ",\n")
    f.write("};\n")
with open(depfile, "w", encoding="utf-8") as f:
    f.write(f"{target}: " + " ".join(str(p).replace(" ", "\\ ") for p in found) + "\n")
