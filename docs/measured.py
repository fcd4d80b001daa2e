"""Write measured figures into the documents, between their markers:   python3 docs/measured.py RESULTS [--simulation] [--into FOLDER]

RESULTS holds bench-NAME.json files, as OUT=RESULTS sh tests/card.sh leaves them. A table stands between lines of the form

    <!-- measured: goals -->
    <!-- /measured -->

and is one of: run (card, driver, date), goals (each goal, how many rows meet it and the worst), bench NAME (all rows of one program),
quickstart, launches, loop-runs and step-times (from the .json file of that name), pytorch WHAT (from pytorch.json, which examples/pytorch/compare.py
writes; gains: a few of it for the README), frameworks (from audit_*.json). Tables of a program that was not run keep what they had. Figures of a simulation are refused: --simulation allows them, to try the
script out with --into another folder than docs/.
"""
import argparse
import glob
import json
import os
import re
import statistics
import sys

DOCUMENTS = ("performance.md", "measurements.md", "../README.md")
OTHERS = ("quickstart", "launches", "loop-runs", "pytorch", "step-times")  # What other programs than benchmarks leave

# What is to be reached, and the series of rows that show it.
GOALS = (
    ("host time of a replay over `cuGraphLaunch`", "at most +0.1 us, liveness checks included", "replay", ("replay by nodes", "replay by adopted pins")),
    ("replay with feeds over one copy and `cuGraphLaunch`", "at most +0.1 us, with any number of feeds", "replay", ("replay by feeds",)),
    ("commit of P pins over one contiguous copy", "at most 1.1x, from 1 MiB up", "commit",
     ("commit of 4 KiB by pins", "commit of 64 KiB by pins", "commit of 1 MiB by pins", "commit of two pins by bytes")),
    ("commit of 1,000 pins of 4 KiB over 1,000 copy nodes", "at most 0.01x", "commit", ("copy nodes of 4 KiB by pins",)),
    ("comparing state over a copy of as many bytes", "at most 1.25x: 80 % of the bandwidth", "checker", ("compare by bytes", "compare 1000 ranges by bytes")),
    ("audit in `end` over instantiating", "at most 0.25x", "end", ("audit by nodes", "audit by pins", "audit by argument bytes", "audit of a framework's step")),
    ("comparing two recordings", "at most 1 us per node", "compare", ("compare by nodes", "compare by argument bytes", "compare steps of a framework", "compare steps with unset bytes", "compare steps with moved memory")),
    ("counting a launch over an empty call", "at most +2 ns", "count", ("counting over a call",)),
    ("counting a launch over a bare relaxed atomic add", "at most 1x", "count", ("counting by threads",)),
    ("a counted launch over `cuLaunchKernel`", "at most +0.1 us", "count", ("wrapped launch",)),
    ("memory over 1,000 recordings and 10,000 replays", "no growth over that of the driver", "memory",
     ("growth over recordings, host", "growth over recordings, device", "growth over replays, host", "growth over replays, device")),
    ("memory of a graph", "at most 200 bytes a node over that of the driver", "memory", ("host memory per node", "device memory per node")),
    ("replay of sets over `cuGraphLaunch` of memset nodes", "at most 1.05x, and 0.34x from 100 in 1,000 on", "sets", ("replay by memsets in 1000 nodes",)),
    ("replay of sets as recorded over `cuGraphLaunch`", "at most 1.05x", "sets", ("replay of memsets as recorded",)),
    ("device time of a set over a memset node", "at most 1.1x", "sets", ("device time of sets by bytes",)),
    ("relaxed replay over the recorded one", "at most 1x, and 0.55x with a quarantine", "relax", ("relaxed replays back to back",)),
    ("bytes that differ after 100 relaxed steps", "none", "relax", ("bytes that differ after 100 steps",)),
    ("finding the order and making its executables", "at most 100 ms for 2,000 nodes", "relax", ("cost of relaxing",)),
    ("sessions in threads of their own", "at most 1.1x of as many raw ones", "threads", ("replay by threads",)),
    ("turn of a loop over `cuGraphLaunch`", "at most +0.3 us", "loop", ("turn of a loop",)),
    ("turn of a loop that is measured or traced, over `cuGraphLaunch`", "at most +10 us: 1 % of a step of 1 ms", "loop", ("turn of a loop, measured",)),
    ("step that is recorded every time, over its launches", "at most 1x, from 100 nodes on", "loop", ("step that is recorded every time",)),
)


def card_line(folder):
    """What nvidia-smi said: name and driver; "" where card.sh left no summary."""
    try:
        with open(os.path.join(folder, "summary.txt"), encoding="utf-8") as f:
            words = f.readline().split(None, 1)
        return words[1].strip() if len(words) == 2 and words[0] == "card" else ""
    except OSError:
        return ""


def load(folder, simulation):
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "bench-*.json"))):
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        if data["driver"] != "cuda" and not simulation:
            sys.exit(f"{path}: measured on {data['driver']}, a simulation: its times say nothing about a card")
        data["card_line"] = card_line(folder)
        found[data["bench"]] = data
    if not found and not any(os.path.exists(os.path.join(folder, f"{name}.json")) for name in OTHERS):
        sys.exit(f"{folder}: no bench-*.json, and none of {', '.join(OTHERS)}")
    return found


def number(value):
    if value == 0:
        return "0"
    digits = 3 - len(str(int(abs(value)))) if abs(value) >= 1 else 3
    return f"{value:,.{max(digits, 0)}f}"


def stat(stat_, unit):
    if not stat_:
        return ""
    text = f"{number(stat_['median'])} {unit}"
    return text if stat_["n"] == 1 else f"{text} ({number(stat_['p10'])} .. {number(stat_['p90'])})"


def judged(row):
    """How a row stands to its target: the value, and how far off as a ratio to order by."""
    target = row["target"]
    value = {"ratio": row.get("ratio"), "difference": row.get("difference", {}).get("median"), "value": row["ours"]["median"]}[target["of"]]
    text = f"{number(value)}x" if target["of"] == "ratio" else f"{'+' if target['of'] == 'difference' and value >= 0 else ''}{number(value)} {row['unit']}"
    return text, value - target["most"]


def table_run(found):
    one = next((data for data in found.values() if "bench" in data), None)
    if one is None:
        return None
    version = one["driver_version"]
    driver = f"CUDA {version // 1000}.{version % 1000 // 10}"
    if one["card_line"]:
        driver = f"{one['card_line'].rpartition(', ')[2]}, {driver}"
    return ["| | |", "|---|---|", f"| card | {one['device']} |", f"| driver | {driver} |",
            "| command | `OUT=results sh tests/card.sh` |", f"| date | {one['date']} |"]


def table_goals(found, old):
    if not any("bench" in data for data in found.values()):
        return None
    lines = ["| goal | target | rows that meet it | the worst of them |", "|---|---|---|---|"]
    for goal, target, bench, series in GOALS:
        rows = [row for row in found.get(bench, {"rows": []})["rows"] if row["series"] in series and "target" in row]
        if not rows:
            before = re.search(rf"^\| {re.escape(goal)} \|.*$", old, flags=re.M)
            lines.append(before[0] if before else f"| {goal} | {target} | not measured yet | |")
            continue
        worst = max(rows, key=lambda row: judged(row)[1])
        verdicts = [row["target"]["verdict"] for row in rows]
        count = f"{verdicts.count('met')} of {len(rows)}" + (f", {verdicts.count('open')} open" if "open" in verdicts else "")
        lines.append(f"| {goal} | {target} | {count} | {judged(worst)[0]}: {worst['label']} |")
    return lines


def table_bench(found, name):
    if name not in found:
        return None
    lines = ["| | ours | raw | ratio | ours - raw | target |", "|---|---|---|---|---|---|"]
    for row in found[name]["rows"]:
        target = row.get("target")
        said = ""
        if target:
            said = f"{ {'ratio': 'ratio', 'difference': 'ours - raw', 'value': 'ours'}[target['of']] } at most {number(target['most'])}"
            said += {"met": ", met", "missed": ", **missed**", "open": ", open", None: ""}[target["verdict"]]
        lines.append(f"| {row['label']} | {stat(row['ours'], row['unit'])} | {stat(row.get('raw'), row['unit'])} | "
                     f"{number(row['ratio']) if 'ratio' in row else ''} | {number(row['difference']['median']) if 'difference' in row else ''} | {said} |")
    return lines


def load_other(folder, name, simulation):
    """What another program than a benchmark left."""
    try:
        with open(os.path.join(folder, f"{name}.json"), encoding="utf-8") as f:
            data = json.load(f)
    except FileNotFoundError:
        return None
    if data["driver"] != "cuda" and not simulation:
        sys.exit(f"{name}.json: measured on {data['driver']}, a simulation: its times say nothing about a card")
    return data


def table_fresh_and_replay(data, keys):
    if not data:
        return None
    lines = ["| | launch by launch | replay |", "|---|---|---|"]
    for key, label, unit in keys:
        pair = data.get(key, {})
        lines.append(f"| {label} | " + " | ".join(f"{number(pair[which])} {unit}" if pair.get(which, -1) >= 0 else "not measured"
                                                  for which in ("fresh", "replay")) + " |")
    return lines


QUICKSTART = (("host_us_per_step", "host time per step", "us"), ("device_us_per_step", "device time per step", "us"), ("step_us", "step", "us"))
LAUNCHES = (("host_us", "host time of all", "us"), ("total_us", "until done", "us"), ("host_us_per_launch", "host time per call", "us"),
            ("device_us_per_step", "device time of 2,000 launches", "us"))


def table_frameworks(scripts):
    """Steps of host frameworks, from the scripts' JSON; None where none was run."""
    cases = [(script["script"][len("audit_"):], case) for script in scripts for case in script["cases"] if "nodes" in case]
    if not cases:
        return None
    lines = ["| step | nodes | reading and auditing | instantiating | what end adds, over instantiating | comparing two | comparing all | faults | accused falsely |",
             "|---|---|---|---|---|---|---|---|---|"]
    for script, case in cases:
        def of(key, unit=""):
            return f"{number(case[key])}{unit}" if case.get(key) is not None else ""

        all_of_them = f"{of('compare_us_per_node')}, {case['recordings']} recordings"
        lines.append(f"| {script}: {case['case']} | {case['nodes']} | {of('read_us_per_node') or of('first_read_us_per_node') + ' (the first time)'} | "
                     f"{of('instantiate_us_per_node')} | {of('added_of_instantiate', 'x')} | {of('compare_two_us_per_node')} | {all_of_them} | {case['faults']} | "
                     f"{case.get('false', '')} |")
    return lines


# For the README: some steps, and some ways.
GAINED = ("tiny, fused", "small, fused", "small, forloop", "gpt2, fused")
GAINS = (("eager", "launched"), ("graph", "PyTorch's own graph"), ("compile", "`torch.compile`, reduce-overhead"), ("ours", "recorded here"),
         ("both", "compiled, recorded here"), ("both-relaxed", "and relaxed"))


def table_pytorch(data, what):
    """The comparison's figures for each way: of a step; or what each says."""
    if not data or (what == "said" and not data["told"]):
        return None
    if what == "run":
        return ["| | |", "|---|---|", f"| card | {data['device']} |", f"| PyTorch | {data['torch']}, CUDA {data['cuda']} |", f"| command | `{data['command']}` |",
                f"| date | {data['date']} |"]
    if what == "gains":
        lines = [f"| step of a GPT, ms | {' | '.join(words for _, words in GAINS)} |", "|---|" + "---|" * len(GAINS)]
        rows = {row["task"]: row["ways"] for row in data["rows"]}
        return lines + [f"| {task} | {' | '.join(number(rows[task][way]['step_us'] / 1000) for way, _ in GAINS)} |" for task in GAINED if task in rows]
    if what == "said":
        lines = ["| what is wrong with the step | way | loss is off by | what it says |", "|---|---|---|---|"]
        for case in data["told"]:
            # As text: names of C++ are no links, and no tags
            lines_said = (" ".join(line.split())[:240] for line in case["line"])
            said = "<br>".join(line.replace("|", "\\|").replace("<", "&lt;").replace("::", "&#58;:") for line in lines_said) or "nothing"
            off = "0, bit for bit" if case.get("identical") else number(case["loss_gap"]) if "loss_gap" in case else ""
            lines.append(f"| {case['what']} | {case['way']} | {off} | {said} |")
        return lines
    key, unit, scale = {"step": ("step_us", "ms", 1000), "host": ("host_us", "us", 1), "memory": ("memory_mib", "MiB", 1), "setup": ("setup_s", "s", 1)}[what]
    ways = list(dict.fromkeys(name for row in data["rows"] for name in row["ways"]))
    lines = [f"| step, {unit} | nodes | " + " | ".join(ways) + " |", "|---|---|" + "---|" * len(ways)]
    for row in data["rows"]:
        cells = []
        for name in ways:
            way = row["ways"].get(name, {})
            text = number(way[key] / scale) if key in way else way.get("error", "")
            if what == "step" and key in way and not way["identical"]:
                text += " (differs)"
            if what == "step" and way.get("rung", "replay") != "replay":
                text += f" ({way['rung']})"
            cells.append(text)
        lines.append(f"| {row['task']} | {row.get('nodes', '')} | " + " | ".join(cells) + " |")
    return lines


def table_step_times(data):
    """What a step takes by each way in a process of its own: the middle of seven times, and the first where the last are others."""
    if not data or not data["rows"]:
        return None
    words = {"graph": "PyTorch's own graph", "0": "as many executables as the loop tries", "1": "1 executable"}
    ways = list(dict.fromkeys(row["way"] for row in data["rows"]))
    heads = [words.get(way, way + " executables") for way in ways] + ["of PyTorch's own"]
    lines = [f"| step, us | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    taken = {(row["step"], row["way"]): row["us"] for row in data["rows"]}
    for step in dict.fromkeys(row["step"] for row in data["rows"]):
        cells = []
        for way in ways:
            us = taken.get((step, way))
            settled = statistics.median(us[-3:]) if us else 0
            cells.append("" if not us else number(settled) if us[0] < 1.02 * settled else f"{number(us[0])}, then {number(settled)}")
        theirs, ours = taken.get((step, "graph")), taken.get((step, "0"))
        cells.append(f"{number(statistics.median(ours[-3:]) / statistics.median(theirs[-3:]))}x" if theirs and ours else "")
        lines.append(f"| {step} | {' | '.join(cells)} |")
    return lines


RUNS = ("replayed", "recorded anew", "fallbacks", "launched", "checked", "recordings", "recordings that failed")


def table_runs(data):
    if not data.get("runs"):
        return None
    lines = [f"| seed | steps | {' | '.join(RUNS)} | state at the end |", "|---|---|" + "---|" * len(RUNS) + "---|"]
    for run in data["runs"]:
        lines.append(f"| {run['seed']} | {run['steps']:,} | " + " | ".join(f"{run[what]:,}" for what in RUNS) + " | the same, bit for bit |")
    return lines


def rewrite(text, found):
    def table(match):
        kind, _, name = match[1].partition(" ")
        if kind == "run":
            lines = table_run(found)
        elif kind == "goals":
            lines = table_goals(found, match[0])
        elif kind == "bench":
            lines = table_bench(found, name)
        elif kind == "quickstart":
            lines = table_fresh_and_replay(found.get("quickstart.json"), QUICKSTART)
        elif kind == "launches":
            lines = table_fresh_and_replay(found.get("launches.json"), LAUNCHES)
        elif kind == "frameworks":
            lines = table_frameworks(found["frameworks"])
        elif kind == "pytorch":
            lines = table_pytorch(found.get("pytorch.json"), name)
        elif kind == "step-times":
            lines = table_step_times(found.get("step-times.json"))
        elif kind == "loop-runs":
            lines = table_runs(found["loop-runs.json"])
        else:
            sys.exit(f"no such table: {match[1]}")
        return match[0] if lines is None else f"<!-- measured: {match[1]} -->\n\n" + "\n".join(lines) + "\n\n<!-- /measured -->"

    return re.sub(r"<!-- measured: (.*?) -->\n.*?<!-- /measured -->", table, text, flags=re.S)


def main():
    docs = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("--simulation", action="store_true")
    parser.add_argument("--into", default=docs)
    arguments = parser.parse_args()
    if arguments.simulation and os.path.abspath(arguments.into) == docs:
        parser.error("figures of a simulation do not go into docs/: name another folder with --into")
    found = load(arguments.results, arguments.simulation)
    for name in OTHERS:
        found[f"{name}.json"] = load_other(arguments.results, name, arguments.simulation) or {}
    found["frameworks"] = []
    for path in sorted(glob.glob(os.path.join(arguments.results, "audit_*.json"))):
        with open(path, encoding="utf-8") as f:
            found["frameworks"].append(json.load(f))
    os.makedirs(arguments.into, exist_ok=True)
    for name in DOCUMENTS:
        source = os.path.normpath(os.path.join(docs, name))
        target = source if os.path.abspath(arguments.into) == docs else os.path.join(arguments.into, os.path.basename(name))
        with open(source, encoding="utf-8") as f:
            text = f.read()
        with open(target, "w", encoding="utf-8") as f:
            f.write(rewrite(text, found))
        print(target)


if __name__ == "__main__":
    main()
