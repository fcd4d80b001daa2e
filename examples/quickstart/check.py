"""Run the quick start on the software driver and look at what it says:   python3 check.py QUICKSTART WHAT

WHAT is default, break-pin, break-scalar, break-feed, break-output, relax, draw, trace, bad-input or faults.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

program, what = sys.argv[1:]
failures = []


def run(*options, **env):
    return subprocess.run([program, *options], capture_output=True, text=True, env={**os.environ, "CUSIM_CHECK": "fail", **env}, timeout=300)


def check(truth, words):
    if not truth:
        failures.append(words)


def words_of(result):
    return f"status {result.returncode}\n{result.stdout}{result.stderr}"


def default(folder):
    """The story is true, and the data say so."""
    path = folder / "out.json"
    result = run("--driver", "cusim", "--json", str(path))
    check(result.returncode == 0, words_of(result))
    check(result.stderr == "", f"said on the error stream: {result.stderr}")
    check("SIMULATION" in result.stdout, "does not say loudly that the driver is a simulation")
    if result.returncode != 0:
        return
    data = json.loads(path.read_text())
    steps = 400
    check(data["driver"] == "cusim" and data["device"], "driver or device")
    check(data["steps"] == steps, f"steps: {data['steps']}")
    check(60 <= data["launches_per_step"] <= 150, f"launches_per_step: {data['launches_per_step']}")
    names = [s["name"] for s in data["stages"]]
    check([n for n in names if n] == ["data", "forward", "backward", "optimizer", "retraction", "EMA", "commit"], f"stages: {names}")
    check(all(s["host_us"] >= 0 and s["device_us"] >= 0 for s in data["stages"] if s["launches"]), "a stage without its times")
    check(data["pins"] > 60 and data["pin_bytes"] > 0, "pins")
    check(data["pin_launches_per_step"] == 1, f"pin_launches_per_step: {data['pin_launches_per_step']}")
    check("nothing found that a graph would freeze" in result.stdout, "does not say that two recordings were compared")
    check(data["audit"]["faults"] == 0 and data["audit"]["nodes"] > 60 and data["audit"]["bytes"] > 1000, f"audit: {data['audit']}")
    check("Check    3 steps" in result.stdout and "IDENTICAL" in result.stdout, "does not print the verdict of the check")
    proven = data["check"]
    check(proven["verdict"] == "IDENTICAL" and proven["steps"] == 3 and proven["planted_fault_seen"] is True, f"check: {proven}")
    check(proven["inputs_altered"] == 3 and proven["inputs_seen"] == 3 and proven["pins"] > 60, f"check: {proven}")
    check(data["unpinned"]["identical"] is False and data["unpinned"]["differing_bytes"] > 0, "unpinned")
    check(data["pinned"]["identical"] is True and data["pinned"]["differing_bytes"] == 0, "pinned")
    check(data["pinned"]["checksum"]["fresh"] == data["pinned"]["checksum"]["replay"], "checksums")
    for key in "host_us_per_step", "device_us_per_step", "step_us":
        check(data[key]["fresh"] > 0 and data[key]["replay"] > 0, key)
    check(data["verdict"] in ("WIN", "NULL"), f"verdict: {data['verdict']}")
    check(data["steps_replayed"] == steps and "400 of 400 steps by replay" in result.stdout, f"steps_replayed: {data['steps_replayed']}")
    told = data["loop"]
    check(told["loop"] == "train" and told["turns"]["replay"] >= steps and told["checks"]["identical"] == 1, f"loop: {told}")
    check(told["keys"][0]["rung"] == "replay" and told["keys"][0]["verdict"]["answer"] == data["verdict"], f"keys: {told['keys']}")
    check([s["name"] for s in told["keys"][0]["stages"]] == names, f"stages: {told['keys'][0]['stages']}")
    check(data["loss"]["last"] < 0.75 * data["loss"]["first"], f"loss: {data['loss']}")


def break_pin(folder):
    """The library refuses, naming what; and the comparison names the buffers that the parameter moves between."""
    path = folder / "out.json"
    result = run("--driver", "cusim", "--break", "pin", "--json", str(path))
    check(result.returncode == 3, words_of(result))
    check("linear" in result.stderr and "pin" in result.stderr, f"the kernel is not named: {result.stderr}")
    sentence = r"linear  arg 1 \+0   moved pointer   0x[0-9a-f]+ \(\d+ bytes that no pin covers\) -> 0x[0-9a-f]+ \(scratch 'private pool'.*\)"
    check(re.search(sentence, result.stdout), f"the comparison does not name kernel, argument and buffers: {result.stdout}")
    data = json.loads(path.read_text())
    check("linear" in data["refused"], "the data do not say why")
    check(data["audit"]["faults"] == 3, f"the kernels that read the parameter are three: {data['audit']}")


def break_scalar(folder):
    """The comparison names kernel, argument and values of the learning rate, and nothing is replayed."""
    path = folder / "out.json"
    result = run("--driver", "cusim", "--break", "scalar", "--layers", "2", "--json", str(path))
    check(result.returncode == 3, words_of(result))
    named = re.findall(r"adamw_by_value  arg 7 \+0   changing scalar   4 bytes .*as float ([0-9.e-]+) -> ([0-9.e-]+),", result.stdout)
    check(len(named) == 1 and "the same in 8 more nodes: " in result.stdout, f"one kernel for each parameter: {result.stdout}")
    check(all(0 < float(before) < float(after) for before, after in named), f"the values: {named}")
    check("make it a CELL" in result.stdout, f"no advice: {result.stdout}")
    check("adamw_by_value  arg 7" in result.stderr and result.stderr.count("\n") == 1, f"not one line: {result.stderr}")
    check("Training" not in result.stdout, "it trained all the same")
    data = json.loads(path.read_text())
    check("adamw_by_value" in data["refused"] and data["audit"]["faults"] == 9, f"the data do not say why: {data}")


def refused(folder, verdict, *options):
    """Nothing is trained by replay, and the check says why; its part of the data."""
    path = folder / "out.json"
    result = run("--driver", "cusim", "--layers", "2", "--json", str(path), *options)
    check(result.returncode == 3, words_of(result))
    check(f"the check says {verdict}" in result.stderr and result.stderr.count("\n") == 1, f"not one line: {result.stderr}")
    check("Training" not in result.stdout, "it trained all the same")
    data = json.loads(path.read_text())
    check(data["check"]["verdict"] == verdict and verdict in data["refused"], f"the data do not say why: {data}")
    return result, data["check"]


def break_feed(folder):
    """A batch that is copied past the graph: no audit sees it."""
    result, _ = refused(folder, "DIVERGED", "--break", "feed")
    check("nothing found that a graph would freeze" in result.stdout, "the audit found it")
    check("feed 'ids' does not hold the same bytes in the replay" in result.stdout, result.stdout)


def break_output(folder):
    """A loss that is written elsewhere: nothing differs, and nothing is known about it."""
    result, _ = refused(folder, "UNPROVEN", "--break", "output")
    check("output 'loss'  is written by nobody" in result.stdout, result.stdout)


def relax(folder):
    """The step needs a shorter way than its chain, all ways leave the same bytes, and what the program tells of its kernels is what their source says."""
    path = folder / "out.json"
    result = run("--driver", "cusim", "--relax", "--layers", "2", "--steps", "30", "--json", str(path))
    check(result.returncode == 0 and result.stderr == "", words_of(result))
    data = json.loads(path.read_text())
    relaxed = data["relax"]
    check(relaxed["identical"] is True and relaxed["barriers"] == 0, f"relax: {relaxed}")
    check(relaxed["critical_path_before"] == data["graph_nodes"] > 1.5 * relaxed["critical_path_needed"], f"no shorter: {relaxed}")
    after = relaxed["critical_path_after"]
    # One CPU runs one node after the other: whether another order is faster is chance.
    check(after == relaxed["critical_path_before"] if relaxed["lanes"] == 0 else after < relaxed["critical_path_before"], f"lanes: {relaxed}")
    check(relaxed["step_us"] > 0 and relaxed["step_us_before"] > 0, f"times: {relaxed}")
    check(data["pinned"]["identical"] is True and data["steps_replayed"] == 30, f"pinned: {data['pinned']}")
    check("the same as recorded" in result.stdout, f"does not say what was compared: {result.stdout}")

    # So many lanes whatever the clock says: this graph is checked and trained on.
    drawn = folder / "needed.dot"
    result = run("--driver", "cusim", "--relax", "--lanes", "8", "--layers", "2", "--steps", "30", "--json", str(path), "--draw", str(drawn))
    check(result.returncode == 0 and result.stderr == "", words_of(result))
    data = json.loads(path.read_text())
    relaxed = data["relax"]
    check(relaxed["lanes"] == 8 and relaxed["critical_path_after"] * 1.5 < relaxed["critical_path_before"], f"lanes: {relaxed}")
    check(data["check"]["verdict"] == "IDENTICAL" and data["check"]["inputs_seen"] == 3, f"check: {data['check']}")
    check(data["pinned"]["identical"] is True and data["steps_replayed"] == 30, f"pinned: {data['pinned']}")
    after_first = re.findall(r"n0 -> n(\d+)", drawn.read_text())
    check(len(after_first) > 0 and "1" not in after_first, f"the labels' kernel and the embedding's have nothing in common: {after_first}")

    source = pathlib.Path(__file__).parent
    written = {}
    for name, arguments in re.findall(r'extern "C" __global__ void (\w+)\(([^)]*)\)', (source / "kernels.cu").read_text()):
        kinds = ["r" if "const" in a else "w" if "*" in a else "-" for a in arguments.split(",")]
        written[name] = "".join(kinds)
    told = dict(re.findall(r'\{"(\w+)", "([rw-]+)"\}', (source / "relax.c").read_text()))
    check(len(written) > 20 and told == written, f"relax.c and kernels.cu differ: {set(told.items()) ^ set(written.items())}")


def draw(folder):
    """The graph for Graphviz: kernels, stages, and a pin that is handed on."""
    path = folder / "step.dot"
    result = run("--driver", "cusim", "--layers", "1", "--steps", "3", "--check", "3", "--draw", str(path))
    check(result.returncode == 0, words_of(result))
    text = path.read_text()
    for words in 'label="forward"', '[label="softmax_loss"]', "rate, adamw.decay", "n0 -> n1;":
        check(words in text, f"{words} is not in: {text}")


def trace(folder):
    """Trace events as viewers want them: complete events that lie within each other or apart, with names for both lines."""
    path = folder / "trace.json"
    result = run("--driver", "cusim", "--layers", "1", "--steps", "30", "--check", "3", "--trace", str(path))
    check(result.returncode == 0, words_of(result))
    events = json.loads(path.read_text())["traceEvents"]
    lines = {1: [], 2: []}
    named = {}
    for event in events:
        check(event["pid"] == 1 and event["tid"] in lines and isinstance(event["name"], str) and event["name"], f"{event}")
        if event["ph"] == "M":
            named[event["name"], event["tid"]] = event["args"]["name"]
            continue
        check(event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0, f"{event}")
        check(event["args"]["step"] >= 0 and event["args"]["key"] == 0 and event["args"]["kind"], f"{event}")
        lines[event["tid"]].append((round(event["ts"] * 1000), -round(event["dur"] * 1000), event["name"], event["args"]["kind"]))
    check(named == {("process_name", 1): "train", ("thread_name", 1): "host", ("thread_name", 2): "device"}, f"names: {named}")
    for line, of in lines.items():
        check(of == sorted(of), f"line {line} is not in order of time")
        ends = []
        for start, length, name, _ in of:
            while ends and ends[-1] <= start:
                ends.pop()
            check(not ends or start - length <= ends[-1], f"line {line}: {name} at {start} reaches beyond what it lies in")
            check(line == 1 or not ends, f"on the device {name} begins before the one before it ends")
            ends.append(start - length)
    turns = [name for _, _, name, _ in lines[1] if name.startswith("step ")]
    check(turns[-30:] == [f"step {k}: replay" for k in range(30)], f"turns: {turns[-30:]}")
    check([name for _, _, name, _ in lines[2]][-30:] == ["replay"] * 30, f"on the device: {lines[2][-30:]}")
    for kind in "rehearsal", "fresh":
        inside = {name for _, _, name, of in lines[1] if of == kind}
        check({"data", "forward", "backward", "optimizer", "retraction", "EMA", "commit"} <= inside, f"stages of {kind} turns: {inside}")


def bad_input(folder):
    """One line that says what, and status 2."""
    (folder / "empty").touch()
    (folder / "short").write_text("ab cd")
    (folder / "same").write_text("a" * 1000)
    good = ["--driver", "cusim"]
    cases = [
        (["--text", str(folder / "missing")], "missing"),
        (["--text", str(folder)], "read text"),
        (["--text", str(folder / "empty")], "is empty"),
        (["--text", str(folder / "short")], "has 5 characters"),
        (["--text", str(folder / "same")], "nothing to learn"),
        (["--text", ""], "name of a file"),
        (["--text"], "name of a file"),
        (["--steps", "0"], "--steps"),
        (["--steps", "-3"], "--steps"),
        (["--batch", "0"], "--batch"),
        (["--batch=0"], "--batch"),
        (["--context", "0"], "--context"),
        (["--width", "0"], "--width"),
        (["--layers", "0"], "--layers"),
        (["--layers", "99999999999999999999"], "--layers"),
        (["--width", "eight"], "eight"),
        (["--width", ""], "--width"),
        (["--width"], "--width"),
        (["--batch", "65536", "--width", "16384"], "smaller"),
        (["--width", "16384", "--layers", "256"], "out of"),
        (["--rate", "nan"], "--rate"),
        (["--seed", "x"], "--seed"),
        (["--break", "everything"], "--break"),
        (["--driver", "abacus"], "abacus"),
        (["--colour", "blue"], "--colour"),
        (["--relax=yes"], "no value"),
        (["--" + "x" * 4000], "no option"),
        (["steps"], "steps"),
        (["--json", str(folder / "no" / "such" / "folder")], "cannot write"),
        (["--draw", str(folder / "no" / "such" / "folder")], "cannot write"),
        (["--draw", ""], "name of a file"),
        (["--trace", str(folder / "no" / "such" / "folder")], "cannot write"),
        (["--trace", ""], "name of a file"),
    ]
    for options, words in cases:
        one_line(run(*good, *options), options, words)
    one_line(run("--driver", "cusim", STEPGRAPH_CUSIM="/no/such/driver.so"), "no such driver", "/no/such/driver.so")
    one_line(run("--driver", "auto", STEPGRAPH_DRIVER="/no/such/driver.so"), "no such driver by name", "/no/such/driver.so")
    one_line(run(*good, CUSIM_DRIVER_VERSION="11080"), "driver too old", "11.8")
    one_line(run(*good, CUSIM_MEMORY="200000"), "no memory", "out of device memory")
    check(run(*good, CUSIM_KERNELS="/no/such/kernels.so").returncode == 2, "no kernels")


def faults(folder):
    """Whatever call of the driver fails, the program says so and ends in order."""
    small = ["--driver", "cusim", "--steps", "12", "--check", "3", "--layers", "2", "--width", "8", "--batch", "4"]
    for n in 1, 3, 5, 20, 60:
        one_line(run(*small, CUSIM_FAIL=f"cuMemAlloc:{n}:2"), f"cuMemAlloc {n}", "device memory")
    for entry in "cuLaunchKernel", "cuMemcpyHtoDAsync", "cuGraphLaunch", "cuStreamSynchronize", "cuGraphInstantiateWithParams", "cuMemFree":
        for n in 1, 2, 7, 40:
            result = run(*small, CUSIM_FAIL=f"{entry}:{n}:999")
            # A replay that fails within the check is what the check says.
            told = result.returncode == 3 and "the check says DIVERGED" in result.stderr
            check(result.returncode in (0, 1) or told, f"{entry} {n}: {words_of(result)}")
            check(result.returncode == 0 or result.stderr.startswith("quickstart: "), f"{entry} {n}: {words_of(result)}")
            check(n > 1 or result.returncode == 1 or entry == "cuMemFree", f"{entry} {n}: not noticed")


def one_line(result, case, words):
    check(result.returncode == 2, f"{case}: {words_of(result)}")
    check(result.stderr.count("\n") == 1 and result.stderr.endswith("\n"), f"{case}: not one line: {result.stderr}")
    check(words in result.stderr, f"{case}: '{words}' is not in: {result.stderr}")


with tempfile.TemporaryDirectory() as name:
    {
        "default": default,
        "break-pin": break_pin,
        "break-scalar": break_scalar,
        "break-feed": break_feed,
        "break-output": break_output,
        "relax": relax,
        "draw": draw,
        "trace": trace,
        "bad-input": bad_input,
        "faults": faults,
    }[what](pathlib.Path(name))
for words in failures:
    print(words)
sys.exit(1 if failures else 0)
