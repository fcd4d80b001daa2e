"""What stepgraph.pytorch needs of PyTorch, on the driver of a session: for tests of its bookkeeping where there is no PyTorch.

import fake_torch takes the name torch. Tensors are device memory without values; what a step enqueues, tests enqueue by driver calls. The generator,
the words it fills when PyTorch records, and pools with their blocks behave as PyTorch 2.11 was seen to.
"""
import contextlib
import ctypes
import math
import sys
import types

torch = types.ModuleType("torch")
driver = types.SimpleNamespace()  # Set by use()


def use(session):
    """Take memory and streams from the driver of a session."""
    library = session.library
    driver.allocate = session.symbol("cuMemAlloc", 3020, ctypes.c_void_p, ctypes.c_size_t)
    driver.stream = session.symbol("cuStreamCreate", 2000, ctypes.c_void_p, ctypes.c_uint)
    driver.capturing = session.symbol("cuStreamIsCapturing", 10000, ctypes.c_void_p, ctypes.c_void_p)
    driver.synchronize = session.symbol("cuCtxSynchronize", 2000)
    driver.copy = session.symbol("cuMemcpyDtoD", 3020, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t)
    driver.write = session.symbol("cuMemcpyHtoD", 3020, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)
    session.symbol("cuCtxSetCurrent", 4000, ctypes.c_void_p)(library.get("session_context", session))
    generator.manual_seed(1)


def new(call, kind, *arguments):
    made = kind()
    assert call(ctypes.byref(made), *arguments) == 0
    return made.value


class Dtype:
    def __init__(self, itemsize):
        self.itemsize = itemsize


for name, size in (("float32", 4), ("float64", 8), ("float16", 2), ("bfloat16", 2), ("int8", 1), ("int16", 2), ("int32", 4), ("int64", 8), ("uint8", 1)):
    setattr(torch, name, Dtype(size))


class Size(tuple):
    def numel(self):
        return math.prod(self)


class Tensor:
    """On the device; or on the CPU with its bytes in a buffer."""

    def __init__(self, address, shape, dtype, buffer=None):
        self.address, self.shape, self.dtype, self.is_cuda, self.buffer = address, Size(shape), dtype, buffer is None, buffer
        self.nbytes = self.shape.numel() * dtype.itemsize
        self.requires_grad, self.grad = False, None

    def data_ptr(self):
        return self.address

    def is_contiguous(self):
        return True

    def contiguous(self):
        return self

    def copy_(self, other):
        assert driver.synchronize() == 0 and driver.copy(self.address, other.address, self.nbytes) == 0
        return self

    def fill_(self, value):
        assert driver.synchronize() == 0 and driver.write(self.address, int(value).to_bytes(self.nbytes, "little"), self.nbytes) == 0
        return self

    def __getitem__(self, index):
        return self

    def __matmul__(self, other):
        return self


def on_cpu(values):
    buffer = (ctypes.c_int64 * len(values))(*values)
    return Tensor(ctypes.addressof(buffer), (len(values),), torch.int64, buffer)


def as_tensor(memory, device):
    assert device == "cuda:0", "on another card it would be a copy"
    told = memory.__cuda_array_interface__
    return Tensor(told["data"][0], told["shape"], {"<i8": torch.int64, "<f4": torch.float32}[told["typestr"]])


class Generator:
    def __init__(self, device=None):
        self.state = types.SimpleNamespace(seed=0, offset=0, words=None, recording=False)

    def graphsafe_get_state(self):
        other = Generator()
        other.state = self.state
        return other

    def graphsafe_set_state(self, other):
        self.state = other.state

    def get_state(self):
        return self.state.seed, self.state.offset

    def set_state(self, state):
        self.state.seed, self.state.offset = state

    def manual_seed(self, seed):
        self.set_state((seed, 0))

    def initial_seed(self):
        return self.state.seed

    def get_offset(self):
        return self.state.offset

    def set_offset(self, offset):
        self.state.offset = offset


generator = Generator()


class ExternalStream:
    def __init__(self, cuda_stream):
        self.cuda_stream = cuda_stream

    def wait_stream(self, other):
        pass  # Nothing is enqueued on the other ones


class Stream(ExternalStream):
    """One of 32, in turns."""

    pool, given = [], 0

    def __init__(self):
        if len(Stream.pool) < 32:
            Stream.pool.append(new(driver.stream, ctypes.c_void_p, 1))  # Non-blocking
        super().__init__(Stream.pool[Stream.given % 32])
        Stream.given += 1


class MemPool:
    """One segment, cut into blocks of 4 KiB."""

    active, everything = [], []

    def __init__(self):
        self.segments = []

    def snapshot(self):
        return self.segments

    def allocate(self):
        if not self.segments:
            address = new(driver.allocate, ctypes.c_uint64, 1 << 16)
            blocks = [{"address": address + (i << 12), "size": 1 << 12, "state": "inactive"} for i in range(16)]
            self.segments = [{"address": address, "total_size": 1 << 16, "device": 0, "blocks": blocks}]
            MemPool.everything += self.segments
        block = next(block for block in self.segments[0]["blocks"] if block["state"] == "inactive")
        block["state"] = "active_allocated"
        return block


@contextlib.contextmanager
def use_mem_pool(pool):
    MemPool.active.append(pool)
    try:
        yield
    finally:
        MemPool.active.pop()


installed = []  # An allocator that has taken PyTorch's place: two functions


def allocate(size=512):
    if installed:
        return installed[0](size, 0, None)
    return MemPool.active[-1].allocate()["address"]


def custom_allocator(allocate_at, free_at):
    installed[:] = [
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)(allocate_at),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)(free_at),
    ]


class CUDAGraph:
    def __init__(self, keep_graph=False):
        pass

    def register_generator_state(self, own):
        own.state.words = own.state.words or [allocate() for _ in range(2)]

    def capture_begin(self, capture_error_mode):
        """Fills the seed and a zero, at once: not in order with what is enqueued elsewhere."""
        state, captures = generator.state, ctypes.c_int()
        assert driver.capturing(current[-1].cuda_stream, ctypes.byref(captures)) == 0
        if captures.value != 0:
            raise RuntimeError("Cannot register the state during capturing stage.")
        for address, value in zip(state.words, (state.seed, 0)):
            assert driver.write(address, ctypes.byref(ctypes.c_uint64(value)), 8) == 0
        state.recording = True

    def capture_end(self):
        generator.state.recording = False


current = [None]


@contextlib.contextmanager
def stream(entered):
    current.append(entered)
    try:
        yield
    finally:
        current.pop()


current[0] = types.SimpleNamespace(wait_stream=lambda other: None)
torch.Size, torch.Generator, torch.as_tensor, torch.is_tensor = Size, Generator, as_tensor, lambda value: isinstance(value, Tensor)
torch.ones = lambda *shape, device, dtype: Tensor(0, shape, dtype)
torch.nn = types.SimpleNamespace(functional=types.SimpleNamespace(linear=lambda *tensors: installed and allocate(8192)))
torch.autograd = types.SimpleNamespace(set_multithreading_enabled=lambda on: contextlib.nullcontext())
torch._C = types.SimpleNamespace(_cuda_customAllocator=custom_allocator)
torch.cuda = types.SimpleNamespace(
    memory=types.SimpleNamespace(change_current_allocator=lambda made: None, _CUDAAllocator=lambda made: made),
    init=lambda: None, current_device=lambda: 0, synchronize=lambda: driver.synchronize(), empty_cache=lambda: None,
    current_stream=lambda: current[-1], stream=stream, Stream=Stream, ExternalStream=ExternalStream, MemPool=MemPool, use_mem_pool=use_mem_pool, CUDAGraph=CUDAGraph,
    default_generators=(generator,), memory_snapshot=lambda: MemPool.everything)
sys.modules["torch"] = torch
