"""Time of a step of PyTorch's, each way of doing it in a process of its own:   STEPGRAPH_LIBRARY=libstepgraph.so python3 step_time.py [--out FILE]

graph: PyTorch's own CUDAGraph of the whole step; N: recorded and replayed by the library, of N executables the fastest (0: as many as the loop takes by itself).
examples/pytorch/compare.py does all ways in one process: what one of them does to the driver's state, all feel there.

A step is SIZE/OPTIMIZER, followed by /plain where it is all in bf16 and not clipped, and by /4 where it takes four batches, all as in compare.py. After 150 steps
seven times 60 are timed, back to back. --one STEP WAY is what each process does; its last line is JSON. FILE gets all of it, as it comes. Exit status 0:
all were timed; 1: not; 77: no PyTorch or no card.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))
FIRST, TURNS, STEPS = 150, 7, 60


def one(step, which):
    import compare  # Which leaves with 77 where there is nothing to run on
    import torch

    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    size, optimizer, *more = step.split("/")
    task = compare.Task(size, optimizer, plain="plain" in more, accumulate=max([int(n) for n in more if n.isdigit()], default=1))
    way = compare.graph(task) if which == "graph" else compare.ours(task, executables=int(which))
    taken = []
    with way.around():
        torch.cuda.manual_seed(compare.SEED)
        for k in range(FIRST):
            way.step(k)
        torch.cuda.synchronize()
        for turn in range(TURNS):
            began = time.perf_counter()
            for i in range(STEPS):
                way.step(FIRST + turn * STEPS + i)
            torch.cuda.synchronize()
            taken.append((time.perf_counter() - began) / STEPS * 1e6)
    nodes = None
    if way.recorder is not None:
        print(way.recorder.report())
        nodes = way.recorder.loop.stats().nodes
    way.close()
    print(json.dumps({"step": task.name, "way": which, "nodes": nodes, "us": [round(us, 1) for us in taken], "torch": torch.__version__,
                      "device": torch.cuda.get_device_name()}))


def main():
    parser = argparse.ArgumentParser(description="Time of a step, each way in a process of its own.")
    parser.add_argument("--one", nargs=2, metavar=("STEP", "WAY"))
    parser.add_argument("--steps", default="tiny/forloop,tiny/fused")
    parser.add_argument("--ways", default="graph,1,0")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.one:
        one(*arguments.one)
        return 0
    data = {"script": "step_time", "driver": "cuda", "date": str(datetime.date.today()),
            "command": "python3 tests/frameworks/step_time.py " + " ".join(sys.argv[1:]), "rows": []}
    failed = []
    for step in arguments.steps.split(","):
        for way in arguments.ways.split(","):
            done = subprocess.run([sys.executable, __file__, "--one", step, way], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode == 77:
                print(done.stdout.strip().splitlines()[-1])
                return 77
            if done.returncode != 0:
                failed.append(f"{step}, {way}: exit status {done.returncode}")
                continue
            row = json.loads(done.stdout.strip().splitlines()[-1])
            print(f"{row['step']:32} {way:6} {min(row['us']):9.1f} .. {max(row['us']):9.1f} us a step", flush=True)
            data["rows"].append(row)
            if arguments.out:
                with open(arguments.out, "w", encoding="utf-8") as f:
                    json.dump(data, f, indent=1)
    print("\n".join(f"failed: {words}" for words in failed) or "ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
