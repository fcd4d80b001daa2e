"""Time of a step of PyTorch's, one way of doing it in a process of its own:   STEPGRAPH_LIBRARY=libstepgraph.so python3 step_time.py SIZE OPTIMIZER graph|N

graph: PyTorch's own CUDAGraph of the whole step; N: recorded and replayed by the library, of N executables the fastest (0: as many as the loop takes by itself).
SIZE and OPTIMIZER as in examples/pytorch/compare.py, which does all ways in one process: what one of them does to the driver's state, all feel there.

After 150 steps seven times 60 are timed, back to back. The last line is JSON. Exit status 77: no PyTorch or no card.
"""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))
import compare  # noqa: E402, which skips where there is nothing to run on
import torch  # noqa: E402

FIRST, TURNS, STEPS = 150, 7, 60


def main():
    size, optimizer, which = sys.argv[1:4]
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    task = compare.Task(size, optimizer)
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
    if way.recorder is not None:
        print(way.recorder.report())
    way.close()
    print(json.dumps({"step": task.name, "way": which, "us": [round(us, 1) for us in taken]}))


if __name__ == "__main__":
    main()
