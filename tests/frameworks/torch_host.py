"""What the scripts for PyTorch share: is there a card, a session on one of PyTorch's streams, memory that stays in place."""
import contextlib
import ctypes
import gc
import struct
import sys

import stepgraph_ctypes as sg

try:
    import torch
except ImportError as error:
    sg.skip(f"no PyTorch: {error}")
if not torch.cuda.is_available():
    sg.skip("no card that PyTorch can use")


def open_session():
    """(library, session, stream). PyTorch makes the device's primary context current, and the session adopts it."""
    torch.cuda.init()
    torch.empty(1, device="cuda")
    context = ctypes.c_void_p()
    code = ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context))
    if code != 0 or not context.value:
        raise RuntimeError(f"no current context: code {code}")
    stream = torch.cuda.Stream()  # Non-blocking, and PyTorch's for good
    library = sg.Library()
    return library, sg.Session(library, context, ctypes.c_void_p(stream.cuda_stream)), stream


def with_session(run):
    """Each case has its own, so that none knows the others' memory."""

    def case():
        library, session, stream = open_session()
        try:
            return run(library, session, stream)
        finally:
            torch.cuda.synchronize()
            session.close()

    return case


def facts():
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "device": torch.cuda.get_device_name(),
        "python": sys.version.split()[0],
    }


@contextlib.contextmanager
def in_place(stream, pool):
    """
    All that is enqueued goes to the stream, all that is allocated comes from the pool, and nothing is left to chance: backward runs in
    this thread, since a pool serves one thread alone, and nothing is collected, which would give memory back at any time.

    The pool is entered before a recording begins: PyTorch looks for a recording of its own otherwise.
    """
    gc.collect()
    collects = gc.isenabled()
    gc.disable()
    torch.cuda.synchronize()
    try:
        with torch.cuda.stream(stream), torch.cuda.use_mem_pool(pool), torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        if collects:
            gc.enable()


def bits(value):
    """A float as it stands in a kernel's argument, in both widths."""
    return {4: struct.unpack("<I", struct.pack("<f", value))[0], 8: struct.unpack("<Q", struct.pack("<d", value))[0]}


def is_scalar(finding, before, after):
    """Whether a finding is about a float that goes from one value to the other: by itself, or as half of an 8-byte word."""
    if finding["kind"] != "CHANGING_SCALAR":
        return False
    was, now = bits(before), bits(after)
    if finding["bytes"] == 8:
        halves = {(finding["before"] >> shift & 0xFFFFFFFF, finding["after"] >> shift & 0xFFFFFFFF) for shift in (0, 32)}
        return (finding["before"], finding["after"]) == (was[8], now[8]) or (was[4], now[4]) in halves
    return finding["bytes"] == 4 and (finding["before"], finding["after"]) == (was[4], now[4])


def moves(audit):
    """Set of (address before, address after)."""
    return {(finding["before"], finding["after"]) for finding in audit.of("MOVED_POINTER")}
