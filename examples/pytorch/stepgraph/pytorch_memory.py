"""Where a recorder's steps have their memory from. A graph holds addresses, so what a recording was given goes to nobody else.

    PoolMemory    a torch.cuda.MemPool for steps alone: the default, nothing to prepare
    ArenaMemory   an arena of the library's, which then knows each block: for graphs that are to be relaxed. It takes the place of PyTorch's allocator in
                  the whole process, and is made before PyTorch has used the card
"""
import _thread
import contextlib
import ctypes
import gc
import sys
import threading

import torch

from . import Arena, Error, Library, Pin, Session

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING


def own_stream(session):
    """
    A stream for as long as the process, which nobody else is given. torch.cuda.Stream() gives out the same 32 again and again, and what somebody else
    enqueued on a stream that records would be recorded.
    """
    enter, create = session.symbol("cuCtxPushCurrent", 4000, ctypes.c_void_p), session.symbol("cuStreamCreate", 2000, ctypes.c_void_p, ctypes.c_uint)
    leave, made, before = session.symbol("cuCtxPopCurrent", 4000, ctypes.c_void_p), ctypes.c_void_p(), ctypes.c_void_p()
    enter(session.library.get("session_context", session))
    code = create(ctypes.byref(made), NON_BLOCKING)
    leave(ctypes.byref(before))
    if code != 0:
        raise Error(code, f"cuStreamCreate: code {code}")
    return torch.cuda.ExternalStream(made.value)


@contextlib.contextmanager
def in_place(pool=None):
    """
    In each recording memory comes from the same place: backward runs in this thread, which a pool serves alone, and nothing is collected, which would give
    memory back at any time.

    To be entered before a recording begins: inside, newer versions of PyTorch look for a recording of their own.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with contextlib.ExitStack() as stack:
            if pool is not None:
                stack.enter_context(torch.cuda.use_mem_pool(pool))
            stack.enter_context(torch.autograd.set_multithreading_enabled(False))
            yield
    finally:
        if collects:
            gc.enable()


def make_workspaces():
    """Have the libraries make their workspaces for the current stream."""
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.ones(64, 64, device="cuda", dtype=dtype)
        torch.nn.functional.linear(a, a, a[0])
        a @ a


class PoolMemory:
    _shared = {}  # By device: (stream, pool). PyTorch keeps its libraries' workspaces by stream, so that there is one of both.

    def __init__(self, library=None):
        device = torch.cuda.current_device()
        if device not in self._shared:
            session = Session(library or Library(), device=device)
            self._shared[device] = own_stream(session), torch.cuda.MemPool()
            session.close()
        self.device = device
        self.stream, self.workspaces = self._shared[device]
        self.pool, self.segments, self.noted, self.alive = torch.cuda.MemPool(), {}, {}, []

    def attach(self, recorder):
        self.recorder = recorder
        self._keep_workspaces()

    def _keep(self, name, pool):
        """Pin all segments of a pool: nothing in it outlives a step."""
        library, session = self.recorder.library, self.recorder.session
        for segment in pool.snapshot():
            if segment["address"] not in self.segments:
                self.segments[segment["address"]] = pool
                Pin(session, f"{name} {len(self.segments)}", library.ROLE_SCRATCH, segment["total_size"], segment["address"])

    def _keep_workspaces(self):
        with torch.cuda.stream(self.stream), torch.cuda.use_mem_pool(self.workspaces):
            make_workspaces()
        self._keep("workspace", self.workspaces)

    def blocks_of(self, make):
        """Addresses of the blocks that make() allocates and keeps."""
        pool = torch.cuda.MemPool()
        self.alive.append(pool)
        with torch.cuda.use_mem_pool(pool):
            make()
        return [block["address"] for segment in pool.snapshot() for block in segment["blocks"] if block["state"] == "active_allocated"]

    def launched(self):
        """After the first step: what it leaves unused would stay unused."""
        torch.cuda.empty_cache()

    def prepare(self):
        """Before a turn that may record: what is there is registered. Answers the sizes of what steps have kept."""
        self._keep_workspaces()
        self._keep("pool", self.pool)
        return self._note()

    def _note(self):
        """
        Tell the library which blocks are in use between steps: an address that an earlier call left over in an argument points to one that is not.
        In the pool there should be none.
        """
        recorder, blocks, kept = self.recorder, {}, []
        for segment in torch.cuda.memory_snapshot():
            in_pool = self.segments.get(segment["address"]) is self.pool
            for block in segment["blocks"]:
                if segment["device"] == self.device and block["state"] != "inactive":
                    blocks[block["address"]] = block["size"]
                    kept += [block["size"]] if in_pool else []
        for address, size in list(self.noted.items()):
            if blocks.get(address) != size:
                recorder.library.call("arena_note_free", recorder.session, address)
                del self.noted[address]
        names = {tensor.data_ptr(): name for name, (_, tensor) in recorder.pins.items()}
        for address, size in blocks.items():
            if address not in self.noted:
                label = names.get(address, "a block of PyTorch's")
                recorder.library.call("arena_note_alloc", recorder.session, address, size, label.encode())
        self.noted = blocks
        return kept

    def around(self):
        """A turn."""
        return in_place(self.pool)

    def recorded(self):
        """What is recorded."""
        return contextlib.nullcontext()


ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)


def not_interrupted(function):
    """For PyTorch, which would go on with a null pointer: an interrupt comes a little later."""

    def called(*given):
        try:
            return function(*given)
        except KeyboardInterrupt:
            threading.Timer(0.01, _thread.interrupt_main).start()
            return function(*given)

    return called


class ArenaMemory:
    """
    quarantine: bytes that are freed in a recording before a block is handed out again. What decides how much of a graph may run side by side.

    Outside of recordings blocks are kept in lists by size, until the driver has no more. All work is meant to be on the recorder's stream.
    """

    def __init__(self, library=None, quarantine=64 << 20):
        self.library, self.quarantine = library or Library(), quarantine
        self.owner = Session(self.library)  # For entry points of the driver
        self.take = self.owner.symbol("cuMemAlloc", 3020, ctypes.c_void_p, ctypes.c_size_t)
        self.give_back = self.owner.symbol("cuMemFree", 3020, ctypes.c_uint64)
        self.exchange = self.owner.symbol("cuThreadExchangeStreamCaptureMode", 10010, ctypes.c_void_p)
        self.enter = self.owner.symbol("cuCtxPushCurrent", 4000, ctypes.c_void_p)
        self.leave = self.owner.symbol("cuCtxPopCurrent", 4000, ctypes.c_void_p)
        self.context = self.library.get("session_context", self.owner)
        self.live, self.unused, self.workspaces, self.arena, self.recording = {}, {}, [], None, False
        # Is there a turn; its blocks that are in use, their bytes, the most so far of any turn
        self.turn, self.began, self.bytes, self.peak = False, set(), 0, 0
        self.functions = ALLOCATE(not_interrupted(self._allocate)), FREE(not_interrupted(self._free))
        addresses = (ctypes.cast(function, ctypes.c_void_p).value for function in self.functions)
        torch.cuda.memory.change_current_allocator(torch.cuda.memory._CUDAAllocator(torch._C._cuda_customAllocator(*addresses)))
        self.stream = own_stream(self.owner)

    # ---- PyTorch's allocator

    def _allocate(self, size, device, stream):
        if size == 0:
            return None
        size = (size + 511) & ~511
        if self.recording:
            address = ctypes.c_uint64()
            if self.library.get("arena_alloc", self.arena, size, None, ctypes.byref(address)) == 0:
                return address.value
            # It is too small: the audit will name an address that no pin covers
        unused = self.unused.get(size)
        address = unused.pop() if unused else self._from_driver(size)
        if address:
            self.live[address] = size
            if self.turn:
                self.began.add(address)
                self.bytes += size
                self.peak = max(self.peak, self.bytes)
        return address

    def _from_driver(self, size):
        address, mode, before = ctypes.c_uint64(), ctypes.c_int(RELAXED), ctypes.c_void_p()
        self.enter(self.context)  # PyTorch's thread for backward passes may have none yet
        self.exchange(ctypes.byref(mode))
        code = self.take(ctypes.byref(address), size)
        if code != 0 and not self.recording:
            for unused in self.unused.values():
                while unused:
                    self.give_back(unused.pop())
            code = self.take(ctypes.byref(address), size)
        self.exchange(ctypes.byref(mode))
        self.leave(ctypes.byref(before))
        if code != 0:
            print(f"no device memory for {size} bytes", file=sys.stderr)  # PyTorch goes on with a null pointer
            return None
        return address.value

    def _free(self, address, size, device, stream):
        size = self.live.pop(address, None)
        if size is None:
            self.library.get("arena_free", self.arena, address)
        else:
            if address in self.began:
                self.began.remove(address)
                self.bytes -= size
            self.unused.setdefault(size, []).append(address)

    # ---- what a recorder asks for

    def attach(self, recorder):
        """To one recorder at a time."""
        self.recorder, self.arena, self.peak = recorder, None, 0
        with torch.cuda.stream(self.stream):
            self.workspaces += self.blocks_of(make_workspaces)
        for i, address in enumerate(self.workspaces):
            Pin(recorder.session, f"workspace {i}", self.library.ROLE_SCRATCH, self.live[address], address)

    def blocks_of(self, make):
        before = set(self.live)
        make()
        return sorted(set(self.live) - before)

    def launched(self):
        pass

    def prepare(self):
        """The arena is made when the first steps have shown how much they need."""
        if self.arena is None and self.peak > 0:
            self.arena = Arena(self.recorder.session, "arena", self.peak * 5 // 4 + self.quarantine + (2 << 20), self.quarantine)
        kept = [self.live[address] for address in self.began]
        if self.arena is not None:
            stats = self.library.filled("arena_get_stats", "arena_stats", self.arena)
            kept += [stats.used] if stats.blocks else []
        return kept

    @contextlib.contextmanager
    def around(self):
        self.turn, self.began, self.bytes = True, set(), 0
        try:
            with in_place():
                yield
        finally:
            self.turn = False

    @contextlib.contextmanager
    def recorded(self):
        self.recording = self.arena is not None
        try:
            yield
        finally:
            self.recording = False
