"""Turn a PTX file into a C header with one zero-ended string:   python3 embed.py NAME IN.ptx OUT.h

As numbers: ISO C promises string literals of 4095 characters only.
"""
import sys

name, source, target = sys.argv[1:]
with open(source, "rb") as f:
    text = f.read() + b"\0"
with open(target, "w", encoding="ascii") as f:
    f.write(f"static const char {name}[{len(text)}] = {{\n")
    for i in range(0, len(text), 20):
        f.write("    " + ", ".join(str(byte) for byte in text[i:i + 20]) + ",\n")
    f.write("};\n")
