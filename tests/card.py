"""Run what was built on a driver of one's choice, and print short tables:   python3 card.py BUILD OUT DRIVER SECONDS

Meson's own runner would set the environment of cusim; here the same programs run on DRIVER. Called by card.sh.
"""
import datetime
import glob
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time

build, out, driver, seconds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3], float(sys.argv[4])
# Seconds of one program.
LIMIT = {"unit": 120, "conformance": 300, "quickstart": 180, "bench": 180, "examples": 60, "docs": 60, "abi": 120, "frameworks": 150, "native": 180}
deadline = time.monotonic() + seconds
# What is not run, for lack of time or of a second card: WITHOUT="bench,unit/pin,pytorch compare", by suite, by suite and program, or by program.
without = os.environ.get("WITHOUT", "").split(",")
os.makedirs(out, exist_ok=True)

rows = {}  # Suite: [passed, failed, skipped]
failures = []
figures = []


logs = os.path.join(build, "card-logs")
os.makedirs(logs, exist_ok=True)


def log_of(suite, name):
    return os.path.join(logs, re.sub(r"[^\w.+-]+", "-", f"{suite}-{name}") + ".log")


def run(suite, name, command, env=None):
    """Run a program within its limit, its output in a file; exit status, None for a timeout, and the output."""
    if any(what in without for what in (suite, name, f"{suite}/{name}")):
        return 77, "left out by WITHOUT"
    limit = min(LIMIT[suite], deadline - time.monotonic())
    if limit <= 1:
        return None, "no time was left for it"
    environment = {**os.environ, **(env or {}), "STEPGRAPH_DRIVER": driver}
    if driver == "libcuda.so.1":
        environment.pop("CUSIM_KERNELS", None)
    began = time.monotonic()
    with open(log_of(suite, name), "w+b") as log:
        try:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=build, start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = None
        except OSError as error:
            log.write(str(error).encode())
            status = 127
        log.seek(0)
        text = log.read().decode(errors="replace")
    said = "timed out" if status is None else f"status {status}"
    print(f"{suite}: {name}: {said}, {time.monotonic() - began:.1f} s", flush=True)
    return status, text


def count(suite, name, status, text):
    """Add to the suite what a program says of itself, else one for the program."""
    row = rows.setdefault(suite, [0, 0, 0])
    if checks := re.findall(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", text, flags=re.M):
        # libcheck knows no skip: a check that is left out says so and passes.
        skipped = sum(map(int, re.findall(r"^(\d+) tests? skipped", text, flags=re.M)))
        failed = sum(int(f) + int(e) for _, f, e in checks)
        counted = [sum(int(c) for c, _, _ in checks) - failed - skipped, failed, skipped]
    elif totals := re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped", text, flags=re.M):
        counted = [int(number) for number in totals[-1]]
    else:
        counted = [int(status == 0), int(status not in (0, 77)), int(status == 77)]
    if status not in (0, 77) and counted[1] == 0:
        counted[1] = 1
    for i in range(3):
        row[i] += counted[i]
    if counted[1]:
        lines = text.strip().splitlines()
        telling = [line for line in lines if re.match(r"FAIL|[^ ]*:[FE]:", line)] or lines[-12:]
        more = [f"... and {len(telling) - 12} more"] if len(telling) > 12 else []
        tail = "\n".join("    " + line for line in telling[:12] + more)
        failures.append(f"{name}: {'timed out' if status is None else f'status {status}'}, {log_of(suite, name)}\n{tail}")


def introspect(name):
    try:
        with open(os.path.join(build, "meson-info", name), encoding="utf-8") as f:
            return json.load(f)
    except OSError:
        return []


def suite(tests, name):
    return [test for test in tests if f"stepgraph:{name}" in test["suite"]]


def on_this_driver(command):
    """A command without the driver it names, if it names one."""
    if "--driver" in command:
        at = command.index("--driver")
        return command[:at] + command[at + 2 :] + ["--driver", driver]
    return command


def keep_runs(text):
    """What test_loop_runs says about each of its runs, for docs/measured.py."""
    runs = []
    for seed, steps, counts in re.findall(r"^seed (\d+), (\d+) steps equal bit for bit: (.*)$", text, flags=re.M):
        runs.append({"seed": int(seed), "steps": int(steps), **{what: int(n) for n, what in re.findall(r"(\d+) ([^,]+)", counts)}})
        figures.append(f"loop, seed {seed}: {steps} steps equal bit for bit: {counts}")
    with open(os.path.join(out, "loop-runs.json"), "w", encoding="utf-8") as f:
        json.dump({"driver": "cuda" if driver == "libcuda.so.1" else driver, "runs": runs}, f, indent=1)


tests, benchmarks = introspect("intro-tests.json"), introspect("intro-benchmarks.json")

for test in suite(tests, "unit"):
    probe = test["name"] == "launches"
    command = test["cmd"] + (["--json", os.path.join(out, "launches.json")] if probe else [])
    status, text = run("unit", test["name"], command, test["env"])
    count("unit", test["name"], status, text)
    if test["name"] == "loop_runs" and status == 0:
        keep_runs(text)
    if probe:
        figures += ["launches:"] + [f"    {line}" for line in text.splitlines() if not re.match(r"\d+%|Running suite", line)] + [""]

for test in suite(tests, "conformance"):
    status, text = run("conformance", test["name"], on_this_driver(test["cmd"]), test["env"])
    count("conformance", test["name"], status, text)

# Of these suites only the programs that take any driver; the rest is about cusim, or about no driver at all.
for name, programs in (("examples", ["minimal", "lifecycle", "loop", "training"]), ("docs", ["guide"]), ("abi", ["driver declarations", "committed ptx"])):
    for test in suite(tests, name):
        if test["name"] in programs:
            count(name, test["name"], *run(name, test["name"], test["cmd"], test["env"]))

# Examples on libraries that know a card only; each prints tables of two columns, launched and replayed.
for test in suite(tests, "examples"):
    if driver == "libcuda.so.1" and test["name"] in ("cublas", "nccl", "nccl ranks"):
        status, text = run("native", test["name"], test["cmd"], test["env"])
        count("native", test["name"], status, text)
        figures += [f"{test['name']:8} {line}" for line in text.splitlines() if re.match(r"(host time of a step|step, many queued) |\d+ ranks?, ", line)]

quickstart = os.path.join(build, "examples/quickstart/quickstart")
if os.path.exists(quickstart):
    found = os.path.join(out, "quickstart.json")
    which = "cuda" if driver == "libcuda.so.1" else "auto"
    env = next((test["env"] for test in suite(tests, "examples") if quickstart in test["cmd"]), {})
    if os.path.exists(found):
        os.remove(found)
    status, text = run("quickstart", "quickstart", [quickstart, "--driver", which, "--json", found], env)
    count("quickstart", "quickstart", status, text)
    try:
        with open(found, encoding="utf-8") as f:
            data = json.load(f)
        for key in (
            *("driver", "device", "steps", "launches_per_step", "pins", "pin_launches_per_step", "pin_bytes", "unpinned.identical"),
            *("pinned.identical", "host_us_per_step.fresh", "host_us_per_step.replay", "device_us_per_step.fresh"),
            *("device_us_per_step.replay", "step_us.fresh", "step_us.replay", "verdict", "loss.first", "loss.last"),
        ):
            value = data
            for part in key.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            figures.append(f"quickstart {key:32} {f'{value:.2f}' if isinstance(value, float) else value}")
    except (OSError, ValueError) as error:
        figures.append(f"quickstart: no figures: {error}")

# Host frameworks, where they are: each script's last line is JSON, with its cases.
table = []
libraries = sorted(glob.glob(os.path.join(build, "lib/libstepgraph.so")))
frameworks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frameworks")
scripts = sorted(glob.glob(os.path.join(frameworks, "audit_*.py")) + glob.glob(os.path.join(frameworks, "verify_*.py")))
if driver != "libcuda.so.1" or not importlib.util.find_spec("torch"):
    table.append(f"frameworks: left out: {'no PyTorch' if driver == 'libcuda.so.1' else 'not on a card'}")
    scripts = []
for script in scripts:
    name = os.path.splitext(os.path.basename(script))[0]
    status, text = run("frameworks", name, [sys.executable, script], {"STEPGRAPH_LIBRARY": libraries[0]} if libraries else {})
    *said, last = text.strip().splitlines() or [""]
    try:
        told = json.loads(last)
        cases = told["cases"]
    except (KeyError, TypeError, ValueError):
        count("frameworks", name, status, text)
        table.append(f"{name}: {last if status == 77 else 'no figures'}")
        continue
    count("frameworks", name, status, "\n".join(said))
    with open(os.path.join(out, f"{name}.json"), "w", encoding="utf-8") as f:
        json.dump(told, f, indent=1)
    for case in cases:
        said = "wrong" if case["wrong"] else "left out" if "left_out" in case else "ok"
        keys = ("nodes", "kernels_read_share", "read_us_per_node", "instantiate_us_per_node", "added_of_instantiate", "compare_two_us_per_node", "faults", "false")
        numbers = " ".join(f"{case.get(key, '-')!s:>9}" for key in keys)
        table.append(f"{name + ': ' + case['case']:58.58} {numbers}  {said}")
if any(line.endswith(("ok", "wrong", "left out")) for line in table):
    heads = ("nodes", "read", "audit", "inst.", "added", "compare", "faults", "false")
    table.insert(0, f"{'steps of frameworks, us per node':58} " + " ".join(f"{head:>9}" for head in heads))

# And the examples for them, in a short form: exit status 77 where a framework is missing.
here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
pytorch = os.path.join(here, "examples/pytorch")
for name, command in (
    ("pytorch compare", [os.path.join(pytorch, "compare.py"), "--sizes", "tiny", "--optimizers", "foreach,functional", "--plain", "", "--accumulate", "0",
                         "--ways", "eager,graph,ours,relaxed", "--out", os.path.join(out, "pytorch-short.json")]),
    ("pytorch train", [os.path.join(pytorch, "train.py"), "--optimizer", "foreach", "--accumulate", "2"]),
    ("pytorch train compiled", [os.path.join(pytorch, "train.py"), "--compile"]),
    ("cupy regression", [os.path.join(here, "examples/cupy/regression.py")]),
    ("pytorch step times", [os.path.join(frameworks, "step_time.py"), "--out", os.path.join(out, "step-times.json")]),
) if driver == "libcuda.so.1" else ():
    status, text = run("frameworks", name, [sys.executable, *command], {"STEPGRAPH_LIBRARY": libraries[0]} if libraries else {})
    count("frameworks", name, status, text)
    if name == "pytorch compare":
        figures += [line for line in text.splitlines() if re.match(r"\w+, |  (eager|graph|ours|relaxed) ", line)] + [""]
    elif name == "pytorch step times":
        figures += [line for line in text.splitlines() if line.endswith(" us a step")] + [""]

for test in suite(benchmarks, "bench"):
    command = on_this_driver(test["cmd"]) + ["--json", os.path.join(out, f"bench-{test['name']}.json")]
    status, text = run("bench", test["name"], command, test["env"])
    count("bench", test["name"], status, text)
    # The short table that it ends with.
    figures += text.strip().rpartition("\n\n")[2].splitlines()[-15:] if status == 0 else []


def card():
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown (no nvidia-smi)"


lines = [f"card    {card()}", f"driver  {driver}", f"date    {datetime.date.today()}", ""]
lines += failures + ([""] if failures else [])
lines += figures + ([""] if figures else [])
lines += [f"{'suite':12} {'passed':>7} {'failed':>7} {'skipped':>7}"]
lines += [f"{name:12} {row[0]:7} {row[1]:7} {row[2]:7}" for name, row in rows.items()]
lines += [""] + table
with open(os.path.join(out, "summary.txt"), "w", encoding="utf-8") as f:
    f.write("\n".join(lines) + "\n")
# One file for all logs, so that they are easily brought home.
with tarfile.open(os.path.join(out, "logs.tar.gz"), "w:gz") as tar:
    tar.add(logs, "logs")
print("\n" + "\n".join(lines))
sys.exit(1 if failures or not rows else 0)
