"""Turn a PTX file into a C header with one zero-ended string:   python3 embed.py NAME IN.ptx OUT.h"""
import sys

name, source, target = sys.argv[1:]
with open(source, encoding="ascii") as f:
    lines = f.read().splitlines()
with open(target, "w", encoding="ascii") as f:
    f.write(f"static const char {name}[] =\n")
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        f.write(f'    "{escaped}\\n"\n')
    f.write("    ;\n")
