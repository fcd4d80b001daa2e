"""Checks of what is written, each run by a test of suite docs:   python3 check.py CHECK ROOT [QUICKSTART]

    calls     every public call has its three lines: threads, capture, waits
    links     every relative link of a Markdown file leads somewhere
    paths     no file names a folder of the machine it was written on
    listings  code shown in README.md is cut from a program that is built and run
    tests     a test that docs/faults.md names is there, and each kind of fault has one of its name or a reason why not
    picture   docs/quickstart-step.svg and docs/relaxed-step.svg are what docs/draw.sh makes with QUICKSTART now; exit status 77 without the
              Graphviz that made them
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ALLOWED = {"threads": ("any", "handle", "setup"), "capture": ("yes", "no"), "waits": ("never", "stream", "device")}


def tree(root):
    """Files of the project: what git knows or would take, else everything outside build folders."""
    if os.path.exists(os.path.join(root, ".git")):
        command = ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
            return [path for path in (os.path.join(root, name) for name in names if name) if os.path.isfile(path)]
        except (OSError, subprocess.CalledProcessError):
            pass  # No git here: look at the folders.
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name[0] != "." or name == ".ci"]
        folders[:] = [name for name in folders if not os.path.isdir(os.path.join(folder, name, "meson-private"))]
        files += [os.path.join(folder, name) for name in names]
    return files


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def calls(root):
    """Yield what is wrong, then how many calls were looked at."""
    count = 0
    for path in sorted(glob.glob(os.path.join(root, "include/stepgraph/*.h"))):
        text = read(path)
        where = os.path.relpath(path, root)
        for match in re.finditer(r"^STEPGRAPH_API\b[^;(]*?(\w+)\(", text, flags=re.M):
            count += 1
            before = text[: match.start()].rstrip()
            start = before.rfind("/**")
            comment = before[start:] if before.endswith("*/") and start >= 0 else ""
            if comment.count("*/") != 1:
                yield f"{where}: {match[1]} has no comment of its own"
                continue
            for key, values in ALLOWED.items():
                found = re.findall(rf"[@\\]{key}\{{(.*?)\}}", comment)
                if not found:
                    yield f"{where}: {match[1]} does not say @{key}{{{'|'.join(values)}}}"
                for value in found:
                    if value not in values:
                        yield f"{where}: {match[1]} says @{key}{{{value}}}, which is none of {', '.join(values)}"
    yield count


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """Of the headings, as GitHub makes them."""
    found = set()
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.S | re.M)
    for heading in re.findall(r"^#+ +(.*?) *(?:\{#.*\})?$", text, flags=re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def links(root):
    count = 0
    for path in tree(root):
        if not path.endswith(".md"):
            continue
        where = os.path.relpath(path, root)
        for target in re.findall(r"\]\(\s*<?([^)>\s]+)", without_code(read(path))):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            count += 1
            name, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(there):
                yield f"{where}: {target} leads nowhere"
            elif anchor and there.endswith(".md") and anchor not in anchors(there):
                yield f"{where}: {target}: no such heading"
    yield count


def paths(root):
    files = tree(root)
    for path in files:
        for number, line in enumerate(read(path).splitlines(), 1):
            if match := re.search(r"(?<![\w.)}/*-])/(home|root|work)/[\w.]*", line):
                yield f"{os.path.relpath(path, root)}:{number}: {match[0]} is a folder of one machine"
    yield len(files)


def listings(root):
    """A block of C in README.md must stand, line by line, in a program of docs/ or examples/; a line of dots skips some."""
    programs = glob.glob(os.path.join(root, "docs/*.c")) + glob.glob(os.path.join(root, "examples/**/*.c"), recursive=True)
    sources = {}
    for path in programs:
        # Markers are no part of a listing.
        lines = [line.strip() for line in read(path).splitlines() if not line.strip().startswith("//!")]
        sources[path] = "\n".join(line for line in lines if line)
    count = 0
    # What a host changes: each line before and after stands in the program.
    program = sources[os.path.join(root, "examples/loop.c")].splitlines()
    for block in re.findall(r"^```diff\n(.*?)^```", read(os.path.join(root, "docs/loop.md")), flags=re.S | re.M):
        for line in block.splitlines():
            count += 1
            if line[1:].strip() not in program:
                yield f"docs/loop.md: in no program:\n{line}"
    for block in re.findall(r"^```c\n(.*?)^```", read(os.path.join(root, "README.md")), flags=re.S | re.M):
        for piece in block.split("/* ... */"):
            lines = "\n".join(line.strip() for line in piece.splitlines() if line.strip())
            count += 1
            if not lines or not any(lines in text for text in sources.values()):
                yield f"README.md: in no program:\n{lines}"
    yield count


def tests(root):
    there = set()
    for path in glob.glob(os.path.join(root, "tests/unit/*.c")):
        there.update(re.findall(r"^START_TEST\((\w+)\)", read(path), flags=re.M))
    named = re.findall(r"`([a-z]\w*_\w+)`", read(os.path.join(root, "docs/faults.md")))
    named = [name for name in named if name not in ("liveness_every", "captured_not_run")]
    for name in sorted(set(named) - there):
        yield f"docs/faults.md: there is no test {name}"
    text = read(os.path.join(root, "docs/faults.md"))
    kinds = re.findall(r"^\| (K\d\d) \|", text, flags=re.M)
    excused = re.findall(r"K\d\d", next(iter(re.findall(r"^\*\*(.*) have no test of their name", text, flags=re.M)), ""))
    if kinds != [f"K{number:02}" for number in range(1, 30)]:
        yield "docs/faults.md: its table is not about K01 to K29"
    for kind in kinds:
        if any(name.startswith(kind.lower() + "_") for name in there) == (kind in excused):
            yield f"docs/faults.md: {kind} has {'a test of its name after all' if kind in excused else 'no test of its name, and nothing says why'}"
    yield len(named)


def shown(path):
    """What a picture says: names of nodes, edges and stages, and labels. Where they stand depends on the fonts of the machine."""
    return sorted(re.findall(r"<(?:title|text)\b.*?</(?:title|text)>", re.sub(r' (?:x|y)="[^"]*"', "", read(path))))


def picture(root):
    names = "quickstart-step.svg", "relaxed-step.svg"
    count = 0
    dot = shutil.which("dot")
    here = re.search(r"graphviz version (\S+)", subprocess.run([dot, "-V"], capture_output=True, text=True).stderr) if dot else None
    with tempfile.TemporaryDirectory() as tmp:
        if here:
            subprocess.run(["sh", os.path.join(root, "docs/draw.sh"), sys.argv[3], tmp], check=True)
        for name in names:
            committed = os.path.join(root, "docs", name)
            made_by = re.search(r"<!--.*?graphviz version (\S+)", read(committed))
            if made_by is None:
                yield f"docs/{name}: its first comment does not say which Graphviz made it"
                continue
            if here is None or here[1] != made_by[1]:
                print(f"the picture is of Graphviz {made_by[1]}; here is {here[1] if here else 'none'}")
                sys.exit(77)
            again = os.path.join(tmp, name)
            for line in sorted(set(shown(committed)) ^ set(shown(again))):
                yield f"docs/{name}: {'outdated' if line in shown(committed) else 'lacks'}: {line}"
            count += len(shown(committed))
    yield count


check, root = sys.argv[1], os.path.realpath(sys.argv[2])
*wrong, count = {"calls": calls, "links": links, "paths": paths, "listings": listings, "tests": tests, "picture": picture}[check](root)
for line in wrong:
    print(line)
print(f"{check}: {count} looked at, {len(wrong)} wrong")
sys.exit(1 if wrong or not count else 0)
