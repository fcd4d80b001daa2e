"""Train a GPT whose step is a graph:   STEPGRAPH_LIBRARY=libstepgraph.so python3 train.py [--size tiny|small|gpt2] [--optimizer KIND] ...

At the end it says what the audit found in the recordings, what the checks against launched steps gave, and whether the graph pays. Exit status 0: steps
were replayed; 3: they were not, and it says why; 77: no PyTorch or no card.

    --break rate    the learning rate is given to the optimizer as a number, and every step with it
    --break pin     an out-of-place optimizer, and nobody keeps the parameters in place
"""
import argparse
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # For steps that do the same each time, bit by bit
try:
    import torch
except ImportError as error:
    print(f"skipped: no PyTorch: {error}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: no card that PyTorch can use")
    sys.exit(77)

from model import SIZES
from stepgraph.pytorch import Recorder
from trainer import Buffers, Functional, WithOptimizer, batches, schedule


def main():
    parser = argparse.ArgumentParser(description="Train a GPT whose step is a graph.")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--optimizer", choices=("forloop", "foreach", "fused", "functional"), default="fused")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--accumulate", type=int, default=1, help="batches for each update")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--compile", action="store_true", help="the model compiled by torch.compile()")
    parser.add_argument("--verbose", action="store_true", help="print every line of the log")
    parser.add_argument("--break", choices=("rate", "pin"), dest="broken")
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    size = SIZES[arguments.size]
    functional = arguments.optimizer == "functional" or arguments.broken == "pin"
    xs, ys = batches(size, arguments.accumulate, 64)

    log = {"log": lambda level, line: print(f"  {line}"), "log_level": 4 if arguments.verbose else 2}
    ## [inputs]
    recorder = Recorder(**log)
    with recorder:
        buffers = Buffers(size, arguments.accumulate, recorder.input, recorder.output)
        ## [inputs]
        if functional:
            trainer = Functional(size, buffers, dropout=arguments.dropout)
        else:
            by_value = arguments.broken == "rate"
            trainer = WithOptimizer(size, buffers, arguments.optimizer, rate_by_value=by_value, dropout=arguments.dropout)

        trainer.mark = recorder.mark
        ## [compile]
        if arguments.compile:
            trainer.forward = torch.compile(trainer.forward)
        ## [compile]

        ## [feed]
        def feed(k):
            recorder.feed(buffers.x, xs[k % len(xs)])
            recorder.feed(buffers.y, ys[k % len(ys)])
            recorder.feed(buffers.rate, schedule(k))
        ## [feed]

        def train_step(k):
            if trainer.rate_by_value:
                trainer.set_rate(schedule(k))
            trainer.step()

        ## [keep]
        recorder.launch(feed, train_step)
        if not functional:
            recorder.keep_model(trainer.model)
            recorder.keep_optimizer(trainer.optimizer, trainer.model)
        ## [keep]
        elif arguments.broken != "pin":
            ## [commit]
            for name, tensor in trainer.now.items():
                recorder.pin(name, "STATE", tensor)
            trainer.keep = recorder.commit
            ## [commit]

        undo = None
        if arguments.broken == "pin":
            trainer.undoable, undo = True, trainer.undo
        began = time.perf_counter()
        ## [loop]
        for k in range(1, arguments.steps):
            recorder.step(k, feed, train_step, rewind=undo)
            if k % 50 == 0:
                print(f"step {k}: loss {buffers.loss.item():.4f}")
        ## [loop]
        torch.cuda.synchronize()
        taken = time.perf_counter() - began

        ## [report]
        audit, stats = recorder.loop.audit(), recorder.loop.stats()
        print(audit.text if audit else "no audit")
        print(f"{stats.checks} checks: {stats.checks_identical} identical, {stats.checks_diverged} diverged")
        print(recorder.report())
        ## [report]
        print(f"{arguments.steps - 1} steps in {taken:.2f} s, loss {buffers.loss.item():.4f}")
    replayed = stats.rung == recorder.library.RUNG_REPLAY
    if not replayed:
        print(f"not replayed: {stats.words.decode(errors='replace')}")
    recorder.close()
    return 0 if replayed else 3


if __name__ == "__main__":
    sys.exit(main())
