"""What the scripts for PyTorch share: is there a card, a session on one of PyTorch's streams, memory that stays in place."""
import contextlib
import gc
import struct
import sys

import cases
import stepgraph

try:
    import torch
except ImportError as error:
    cases.skip(f"no PyTorch: {error}")
if not torch.cuda.is_available():
    cases.skip("no card that PyTorch can use")
import stepgraph.pytorch_memory  # noqa: E402


def open_session():
    """(library, session, stream)."""
    torch.cuda.init()
    stream = torch.cuda.Stream()  # Non-blocking, and PyTorch's for good
    library = stepgraph.Library()
    return library, stepgraph.Session(library, device=torch.cuda.current_device(), stream=stream.cuda_stream), stream


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
    """All that is enqueued goes to the stream, all that is allocated comes from the pool, and nothing is left to chance."""
    gc.collect()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream), stepgraph.pytorch_memory.in_place(pool):
        yield


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
