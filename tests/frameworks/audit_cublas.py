"""The audit of cuBLAS's kernels in both precisions:   STEPGRAPH_LIBRARY=libstepgraph.so python3 audit_cublas.py

Matrix products in fp32 and bf16, called through cuBLAS itself, through torch.mm and, if it is there, CuPy. cuBLAS has its workspace from the
recording (an allocation in the graph), or its own. Recorded twice over the same matrices there must be no fault; over others exactly the
operands must be named as moved, and nothing else. The last line is JSON. Exit status 0: all as expected, 1: not, 77: no PyTorch or no card.
"""
import ctypes
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import torch_host as host  # noqa: E402
from torch_host import cases, torch  # noqa: E402

SIZES = ((256, 256, 256), (1024, 1024, 1024), (64, 64, 16384), (4096, 4096, 1024))  # The third is split over k
TYPES = (torch.float32, torch.bfloat16)
OWN_WORKSPACE = ":4096:8"  # For torch.mm: eight buffers of 4 MiB


def matrices(types):
    """One operand list for each product: ((a, b, c), ...)."""
    made = []
    for kind in types:
        for m, n, k in SIZES:
            made.append(tuple(torch.randn(shape, device="cuda").to(kind) for shape in ((m, k), (k, n), (m, n))))
    return made


def compare(session, library, enqueue, types=TYPES):
    """Record what enqueue(operands) enqueues over the same matrices and over others, and look at what is found."""
    same, other = matrices(types), matrices(types)
    torch.cuda.synchronize()
    for operands in same, other:  # Kernels loaded, workspaces made
        enqueue(operands)
    torch.cuda.synchronize()

    def record(name, operands):
        return session.record(name, lambda: enqueue(operands), library.STEP_ALLOW_UNREGISTERED)

    a, b = [], []
    for k in cases.RECORDINGS:
        (a, b)[k].append(record(("same", "others")[k], (same, other)[k]))
    clean = session.compare(a[:1], a[1:])
    wrong = [f"over the same matrices: {words}" for words in cases.unlike_expected(clean)]

    audit = session.compare(a, b)
    pairs = [(p.data_ptr(), q.data_ptr(), p.numel() * p.element_size()) for x, y in zip(same, other) for p, q in zip(x, y)]
    named, others = set(), []
    for finding in audit.accused:
        before, after = finding["before"], finding["after"]
        at = [i for i, (was, now, size) in enumerate(pairs) if was <= before < was + size and before - was == after - now]
        if finding["kind"] == "MOVED_POINTER" and finding["fault"] and at:
            named.update(at)
        else:
            others.append(finding)
    if len(named) != len(pairs):
        wrong.append(f"{len(pairs) - len(named)} of {len(pairs)} operands that moved are not named")
    if others:
        wrong.append(f"accused falsely: {' | '.join(cases.some(others, 6))}")
    return {
        **cases.figures(a, b, audit),
        "operands": len(pairs),
        "operands_named": len(named),
        "false": len(clean.accused) + len(others),
        "shown": cases.some(clean.findings, 4) + cases.some(others, 4),
        "wrong": wrong,
    }


def cublas():
    """The library that PyTorch has loaded."""
    torch.mm(torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda"))
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "libcublas.so" in line}
    if not paths:
        raise OSError("PyTorch has loaded no libcublas.so")
    return ctypes.CDLL(paths.pop())


def check(code, call):
    if code != 0:
        raise RuntimeError(f"{call}: status {code}")


def directly(own_workspace):
    """cublasGemmEx, column by column."""

    def run(library, session, stream):
        entry, handle = cublas(), ctypes.c_void_p()
        check(entry.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
        check(entry.cublasSetStream_v2(handle, ctypes.c_void_p(stream.cuda_stream)), "cublasSetStream")
        workspace = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
        if own_workspace:
            size = ctypes.c_size_t(workspace.numel())
            check(entry.cublasSetWorkspace_v2(handle, ctypes.c_void_p(workspace.data_ptr()), size), "cublasSetWorkspace")
        one, zero = ctypes.c_float(1), ctypes.c_float(0)

        def enqueue(operands):
            for a, b, c in operands:
                (m, k), n = a.shape, b.shape[1]
                kind = {torch.float32: 0, torch.bfloat16: 14}[a.dtype]  # CUDA_R_32F, CUDA_R_16BF
                pa, pb, pc = (ctypes.c_void_p(x.data_ptr()) for x in (a, b, c))
                # No transposition; CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT
                code = entry.cublasGemmEx(
                    *(handle, 0, 0, m, n, k, ctypes.byref(one), pa, kind, m, pb, kind, k),
                    *(ctypes.byref(zero), pc, kind, m, 68, -1),
                )
                check(code, "cublasGemmEx")

        try:
            return compare(session, library, enqueue)
        finally:
            torch.cuda.synchronize()
            entry.cublasDestroy_v2(handle)

    return run


def through_torch(library, session, stream):
    def enqueue(operands):
        with torch.cuda.stream(stream), torch.no_grad():
            for a, b, c in operands:
                torch.mm(a, b, out=c)

    return compare(session, library, enqueue)


def through_cupy(library, session, stream):
    import cupy

    foreign = cupy.cuda.ExternalStream(stream.cuda_stream)
    arrays = {}  # Of tensors by their address, made while nothing records

    def array(tensor):
        if tensor.data_ptr() not in arrays:
            arrays[tensor.data_ptr()] = cupy.asarray(tensor)
        return arrays[tensor.data_ptr()]

    def enqueue(operands):
        with foreign:
            for a, b, c in operands:
                cupy.matmul(array(a), array(b), out=array(c))

    return compare(session, library, enqueue, (torch.float32,))


def in_another_process():
    """torch.mm, where the environment gives cuBLAS's workspace: read once, when a process first needs it."""
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": OWN_WORKSPACE}
    done = subprocess.run([sys.executable, __file__, "torch"], capture_output=True, text=True, env=environment, timeout=120)
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])["cases"][0]
    except (IndexError, KeyError, ValueError):
        raise RuntimeError(f"status {done.returncode}: {(done.stdout + done.stderr)[-800:]}") from None


report = cases.Report("audit_cublas", **host.facts())
if sys.argv[1:] == ["torch"]:
    report.case("torch.mm", host.with_session(through_torch))
    report.finish()
report.case("cuBLAS, workspace of the graph", host.with_session(directly(False)))
report.case("cuBLAS, own workspace", host.with_session(directly(True)))
report.case("torch.mm", host.with_session(through_torch))
report.case(f"torch.mm, CUBLAS_WORKSPACE_CONFIG={OWN_WORKSPACE}", in_another_process)
report.case("CuPy, fp32", host.with_session(through_cupy), optional=True)
report.finish()
