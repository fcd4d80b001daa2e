"""CuPy as a host, in a page:   STEPGRAPH_LIBRARY=libstepgraph.so python3 regression.py

A regression whose weights are made anew in each step. What steps allocate comes from an arena of the library's, the weights are pinned and committed, batch
and learning rate are fed, and a loop records and replays. The same steps without any of it say what is right, bit for bit. Exit status 0: equal, and
replayed; 1: not; 77: no CuPy or no card.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))  # Where the package is
import stepgraph  # noqa: E402

try:
    import cupy
    import numpy

    cupy.cuda.runtime.getDeviceCount()
except Exception as error:
    print(f"skipped: no CuPy, or no card that it can use: {error}")
    sys.exit(77)

ROWS, COLUMNS, STEPS = 4096, 32, 200
# An indexer (CIndexer, in CuPy's carray.cuh) holds a size, a shape and an index, whole numbers of eight bytes. Kernels set the index themselves; what CuPy passes
# there is whatever stood on the stack, which may look like a value that changes from step to step. No other argument of theirs has these sizes.
INDICES = [("cupy_*", None, 8 + 16 * axes, 8 + 8 * axes, 8 * axes) for axes in (1, 2, 3)]


def batch(k):
    generator = numpy.random.default_rng(k)
    x = generator.standard_normal((ROWS, COLUMNS), dtype=numpy.float32)
    return x, x @ numpy.linspace(-1, 1, COLUMNS, dtype=numpy.float32)


def rate(k):
    return numpy.float32(0.1 / (1 + k / 50))


def step(x, y, w, rate, loss):
    """One step; answers the new weights, which are somewhere else than the old ones."""
    error = (x * w).sum(axis=1) - y
    loss[...] = (error * error).mean()
    return w - rate * (x * error[:, None]).mean(axis=0)


def alone():
    w, loss, losses = cupy.zeros(COLUMNS, cupy.float32), cupy.zeros((), cupy.float32), []
    for k in range(STEPS):
        x, y = (cupy.asarray(part) for part in batch(k))
        w = step(x, y, w, cupy.asarray(rate(k)), loss)
        losses.append(float(loss))
    return cupy.asnumpy(w), losses


def replayed(library):
    session = stepgraph.Session(library, log=lambda level, line: print(f"  {line}"))
    session.unread(*INDICES)
    arena = stepgraph.Arena(session, "temporaries", 64 << 20)
    allocator = cupy.cuda.PythonFunctionAllocator(lambda size, device: arena.allocate(max(size, 1)), lambda address, device: arena.free(address))

    def pinned(name, role, shape):
        """An array over library memory."""
        extent = 4 * int(numpy.prod(shape, initial=1))
        pin = stepgraph.Pin(session, name, role, extent, type=library.TYPE_F32)
        memory = cupy.cuda.UnownedMemory(pin.address, extent, pin)
        return pin, cupy.ndarray(shape, cupy.float32, cupy.cuda.MemoryPointer(memory, 0))

    pins, arrays = zip(*(pinned(name, role, shape) for name, role, shape in (
        ("x", library.ROLE_FEED, (ROWS, COLUMNS)), ("y", library.ROLE_FEED, (ROWS,)), ("w", library.ROLE_STATE, (COLUMNS,)),
        ("rate", library.ROLE_CELL, ()), ("loss", library.ROLE_OUTPUT, ()))))
    loop, losses = stepgraph.Loop(session, name="regression"), []
    with cupy.cuda.ExternalStream(session.stream), cupy.cuda.using_allocator(allocator.malloc):
        for k in range(STEPS):
            again = True
            while again:
                turn = loop.begin(k)
                if turn.feed:
                    for pin, value in zip((pins[0], pins[1], pins[3]), (*batch(k), rate(k))):
                        pin.feed_bytes(value.tobytes())
                if turn.run:
                    fresh = step(*arrays)
                    session.commit([pins[2]], [fresh.data.ptr])
                    del fresh
                again = loop.end()
            losses.append(float(numpy.frombuffer(pins[4].read(), numpy.float32)[0]))
    w, stats = numpy.frombuffer(pins[2].read(), numpy.float32), loop.stats()
    print(loop.report())
    session.close()
    return w, losses, stats.rung == library.RUNG_REPLAY


def main():
    right, right_losses = alone()
    w, losses, was_replayed = replayed(stepgraph.Library())
    equal = numpy.array_equal(w.view(numpy.uint32), right.view(numpy.uint32)) and losses == right_losses
    print(f"{STEPS} steps, loss {losses[0]:.4f} to {losses[-1]:.6f}: {'equal, bit for bit' if equal else 'not equal'}")
    return 0 if equal and was_replayed else 1


if __name__ == "__main__":
    sys.exit(main())
