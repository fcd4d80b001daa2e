"""Write what the public headers declare as Python data:   python3 tests/frameworks/declare.py [FILE]

FILE is examples/pytorch/stepgraph/abi.py. A test says when that one is not what this writes, and another one holds it against a C compiler.
The reader knows the little C that the headers use and stops at anything else.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include/stepgraph"
FILE = ROOT / "examples/pytorch/stepgraph/abi.py"
WIDTH = 140

PLAIN = {
    "char": "char",
    "float": "float",
    "double": "double",
    "size_t": "size_t",
    "int32_t": "int32",
    "int64_t": "int64",
    "uint32_t": "uint32",
    "uint64_t": "uint64",
}


class Headers:
    """Constants, structs by name with (field, type, length), and (result, arguments) of each call and of each function in a struct; names without
    their prefix."""

    def __init__(self, folder=INCLUDE):
        files = sorted(pathlib.Path(folder).glob("*.h"))
        if not files:
            raise OSError(f"no headers in {folder}")
        text = "\n".join(re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S) for path in files)
        self.constants = {short(name): int(value) for name, value in re.findall(r"^#define (STEPGRAPH_\w+) (\d+) *$", text, flags=re.M)}
        code = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
        self.words = set(re.findall(r"typedef enum (\w+)", code))  # Enumerations are passed as int
        self.callbacks = {name: self.signature(result, given) for result, name, given in re.findall(r"typedef ([\w ]+)\(\*(\w+)\)\((.*?)\);", code, flags=re.S)}
        for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", code, flags=re.S):
            for entry in filter(str.strip, body.split(",")):
                match = re.fullmatch(r"\s*(\w+)\s*=\s*(-?\d+)u?(?:\s*<<\s*(\d+))?\s*", entry)
                if not match:
                    raise ValueError(f"cannot read the enumerator {entry.strip()!r}")
                self.constants[short(match[1])] = int(match[2]) << int(match[3] or 0)
        self.structs, self.functions = {}, {}
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", code, flags=re.S):
            self.structs[short(name)] = [self.field(short(name), one) for one in body.split(";") if one.strip()]
        self.calls = {}
        for result, name, arguments in re.findall(r"STEPGRAPH_API\s+([\w ]+?[ *]+)(\w+)\((.*?)\);", code, flags=re.S):
            self.calls[short(name)] = self.signature(result, arguments)

    def signature(self, result, arguments):
        given = [] if arguments.strip() in ("", "void") else arguments.split(",")
        return self.passed(result), [self.passed(re.sub(r"\w+\s*$", "", one)) for one in given]

    def field(self, struct, declaration):
        if match := re.fullmatch(r"\s*([\w ]+)\(\*(\w+)\)\((.*)\)\s*", declaration, flags=re.S):
            self.functions[f"{struct}.{match[2]}"] = self.signature(match[1], match[3])
            return match[2], "pointer", 0
        match = re.fullmatch(r"\s*([\w ]+?)([ *]+)(\w+)(?:\[(\w+)\])?\s*", declaration)
        if not match:
            raise ValueError(f"cannot read the field {declaration.strip()!r}")
        kind, stars, name, length = match.groups()
        if kind in self.callbacks:
            self.functions[f"{struct}.{name}"] = self.callbacks[kind]
        found = "pointer" if "*" in stars or kind in self.callbacks else PLAIN[kind]
        return name, found, int(length) if (length or "0").isdigit() and length else self.constants[short(length)] if length else 0

    def passed(self, kind):
        words = kind.replace("*", " * ").split()
        if "*" in words:
            return "text" if words == ["const", "char", "*"] else "pointer"
        if words == ["void"]:
            return "nothing"
        return "word" if words[-1] in self.words else PLAIN[words[-1]]


def short(name):
    return re.sub(r"^(STEPGRAPH_|stepgraph_)", "", name)


def filled(indent, items):
    """Items with commas between them, in lines that are as long as they may be."""
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += item + ", "
    return "\n".join(lines + [line.rstrip()])


def signatures(name, of):
    return f"\n{name} = {{\n" + "".join(f'    "{one}": "{" ".join([result] + given)}",\n' for one, (result, given) in of.items()) + "}\n"


def module(headers):
    text = '"""What the library\'s headers declare. Made by tests/frameworks/declare.py, not by hand."""\n'
    text += "\nCONSTANTS = {\n" + filled("    ", [f'"{name}": {value}' for name, value in headers.constants.items()]) + "\n}\n"
    text += "\n# A field's name, its type, and after it the length of an array.\nSTRUCTS = {\n"
    for name, fields in headers.structs.items():
        words = [f'"{field} {kind}{f" {length}" if length else ""}"' for field, kind, length in fields]
        text += f'    "{name}": [\n{filled("        ", words)}\n    ],\n'
    text += "}\n\n# What a call answers, and what it is given."
    text += signatures("CALLS", headers.calls) + "\n# The same of functions in structs." + signatures("FUNCTIONS", headers.functions)
    return text


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    path.write_text(module(Headers()), encoding="utf-8")
    print(path)
