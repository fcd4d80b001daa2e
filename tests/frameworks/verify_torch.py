"""Relaxing and verifying training steps of PyTorch:   STEPGRAPH_LIBRARY=libstepgraph.so python3 verify_torch.py

All of PyTorch's memory comes from a plain allocator of our own, which notes each block and gives no address out again, so that a step
relaxes to what its kernels need. Then every node is verified: a clean step must not be accused.

    one tensor at a time, foreach, fused    a small language model with AdamW
    all read only                           each argument of each kernel is declared to be read only: those that write must be named
    batched solver                          kernels that take addresses from tables in device memory must be named

The last line is JSON. Exit status 0: all as expected, 1: not, 77: no PyTorch, no card or no compiler.
"""
import contextlib
import ctypes
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import torch_host as host  # noqa: E402
from torch_host import cases, torch  # noqa: E402

import stepgraph  # noqa: E402
from torch_model import Model  # noqa: E402

SLAB = 512 << 20
MARGIN = 32 << 20  # What one recording may allocate

ALLOCATOR = r"""
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int (*note_fn)(void *session, uint64_t address, uint64_t bytes, const char *label);
typedef int (*note_free_fn)(void *session, uint64_t address);

static struct { uint64_t at, bytes; } live[1 << 20];
static size_t n;
static uint64_t next, end;
static void *session;
static note_fn note;
static note_free_fn note_free;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void slab_begin(uint64_t address, uint64_t bytes) { next = address; end = address + bytes; }
uint64_t slab_used(void) { return next; }

/* From now on blocks are noted, those that are out first. session NULL: no more. */
int slab_watch(void *watcher, note_fn noting, note_free_fn freeing)
{
    int status = 0;
    pthread_mutex_lock(&lock);
    session = watcher; note = noting; note_free = freeing;
    for (size_t i = 0; session && i < n && !status; i++)
        if (live[i].at) status = note(session, live[i].at, live[i].bytes, NULL);
    pthread_mutex_unlock(&lock);
    return status;
}

void *slab_alloc(ssize_t size, int device, void *stream)
{
    uint64_t bytes = ((size > 0 ? (uint64_t)size : 1) + 511) / 512 * 512, at = 0;
    (void)device; (void)stream;
    pthread_mutex_lock(&lock);
    if (bytes <= end - next && n < sizeof live / sizeof *live) {
        at = next; next += bytes;
        live[n].at = at; live[n++].bytes = bytes;
        if (session) note(session, at, bytes, NULL);
    }
    pthread_mutex_unlock(&lock);
    return (void *)at;
}

void slab_free(void *p, ssize_t size, int device, void *stream)
{
    (void)size; (void)device; (void)stream;
    pthread_mutex_lock(&lock);
    for (size_t i = n; i-- > 0;)
        if (live[i].at == (uint64_t)p) {
            live[i].at = 0;
            if (session) note_free(session, (uint64_t)p);
            break;
        }
    pthread_mutex_unlock(&lock);
}
"""


def build():
    folder = pathlib.Path(tempfile.mkdtemp())
    source, library = folder / "slab.c", folder / "slab.so"
    source.write_text(ALLOCATOR)
    try:
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-lpthread"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        cases.skip(f"no compiler: {error}")
    return str(library)


PATH = build()
slab = ctypes.CDLL(PATH)
slab.slab_used.restype = ctypes.c_uint64
slab.slab_watch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

# Before PyTorch allocates anything. The slab lies in the device's primary context, which PyTorch will use.
torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator(PATH, "slab_alloc", "slab_free"))
shutil.rmtree(pathlib.Path(PATH).parent)
driver = ctypes.CDLL("libcuda.so.1")
context, base = ctypes.c_void_p(), ctypes.c_uint64()
if (
    driver.cuInit(0)
    or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    or driver.cuCtxSetCurrent(context)
    or driver.cuMemAlloc_v2(ctypes.byref(base), ctypes.c_size_t(SLAB))
):
    raise RuntimeError("no memory for the slab")
slab.slab_begin(base, ctypes.c_uint64(SLAB))


@contextlib.contextmanager
def on(stream):
    gc.collect()
    gc.disable()
    torch.cuda.synchronize()
    try:
        with torch.cuda.stream(stream), torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        gc.enable()


def record(library, session, stream, step):
    """A step over what is in the slab, with its blocks known to the session."""
    for _ in range(3):
        with on(stream):
            step()
    torch.cuda.synchronize()
    stepgraph.Pin(session, "slab", library.ROLE_SCRATCH, slab.slab_used() - base.value + MARGIN, base.value)
    notes = [ctypes.cast(getattr(library.entry, "stepgraph_arena_" + call), ctypes.c_void_p) for call in ("note_alloc", "note_free")]
    if slab.slab_watch(session._as_parameter_, *notes) != 0:
        raise RuntimeError("a block was not noted")
    with on(stream):
        return session.record("train", step)


def told(library, call, handle):
    """The words of a report, which is given back."""
    text = library.text(call + "_text", handle)
    library.get(call + "_destroy", handle)
    return text


def verified(library, step, read_only, **options):
    """Relax on eight lanes, verify; (summary, findings, what both said)."""
    config = library.new("relax_config", lanes=8)
    every, pattern = stepgraph.STRUCTS["relax_kernel"](argument=0xFFFFFFFF), ctypes.create_string_buffer(b"*")
    every.pattern = ctypes.addressof(pattern)
    if read_only:
        config.reads, config.n_reads = ctypes.addressof(every), 1
    relaxed = told(library, "relax", library.made("step_relax", step, ctypes.byref(config)))
    report = library.made("step_verify", step, ctypes.byref(library.new("verify_config", **options)))
    summary = library.filled("verify_get_summary", "verify_summary", report)
    findings = []
    for i in range(summary.kept):
        finding = library.new("verify_finding")
        library.call("verify_get", report, i, ctypes.byref(finding))
        findings.append({"fault": finding.fault, "node": finding.node_name.decode(errors="replace"), "text": finding.text.decode(errors="replace")})
    numbers = {name: getattr(summary, name) for name, _ in summary._fields_ if name not in ("size", "reserved")}
    return numbers, findings, relaxed, told(library, "verify", report)


def case(make, judge, read_only=False, **options):
    def run(library, session, stream):
        try:
            step = record(library, session, stream, make())
            summary, findings, relaxed, text = verified(library, step, read_only, **options)
        finally:
            slab.slab_watch(None, None, None)
        print(relaxed)
        print(text, flush=True)
        return {**summary, "shown": [finding["text"] for finding in findings[:8]], "relaxed": relaxed.splitlines()[:4], "wrong": judge(summary, findings)}

    return host.with_session(run)


def training(**options):
    def make():
        model = Model()
        rate = torch.tensor(0.001, device="cuda")
        optimizer = torch.optim.AdamW(model.parameters, lr=rate, capturable=True, **options)
        losses = torch.zeros((), device="cuda")

        def step():
            loss = model.loss(model.parameters)
            for p, g in zip(model.parameters, torch.autograd.grad(loss, model.parameters)):
                p.grad = g
            optimizer.step()
            for p in model.parameters:
                p.grad = None
            losses.copy_(loss.detach())

        return step

    return make


def clean(summary, findings):
    wrong = [f"accused falsely: {finding['text']}" for finding in findings if finding["fault"]][:6]
    if summary["nodes_isolated"] * 2 < summary["nodes"]:
        wrong.append(f"only {summary['nodes_isolated']} of {summary['nodes']} nodes were looked at")
    return wrong


def refuted(summary, findings):
    """Nearly every node writes something; a write that leaves every byte as it was is not seen."""
    named = {finding["node"] for finding in findings if finding["fault"]}
    summary["kinds_named"] = len(named)
    return [] if summary["faults"] * 10 > summary["nodes_run"] * 7 else [f"only {summary['faults']} false declarations were found, in {summary['nodes_run']} nodes"]


def solver():
    """Factors many small matrices at once: cuBLAS wants an array of their addresses."""
    generator = torch.Generator().manual_seed(2)
    a = (torch.randn(16, 12, 12, generator=generator) + 12 * torch.eye(12)).cuda()
    b = torch.randn(16, 12, 3, generator=generator).cuda()
    result = torch.zeros(16, 12, 3, device="cuda")

    def step():
        lu, pivots, _ = torch.linalg.lu_factor_ex(a, check_errors=False)
        result.copy_(torch.linalg.lu_solve(lu, pivots, b))

    return step


def tables(summary, findings):
    return [] if summary["faults"] else ["the kernels that read tables of addresses were not named"]


report = cases.Report("verify_torch", **host.facts())
report.case("one tensor at a time", case(training(foreach=False), clean))
report.case("foreach", case(training(foreach=True), clean))
report.case("fused", case(training(fused=True), clean))
only_writes = {"flags": sum(stepgraph.abi.CONSTANTS[name] for name in ("VERIFY_NO_ISOLATION", "VERIFY_NO_ORDERS", "VERIFY_NO_REPLAYS"))}
report.case("all read only", case(training(foreach=False), refuted, read_only=True, **only_writes))
report.case("batched solver", case(solver, tables), optional=True)
report.finish()
