"""The audit of a Triton kernel:   STEPGRAPH_LIBRARY=libstepgraph.so python3 audit_triton.py

A kernel with three pointers, a size and a scalar is recorded twice with the same arguments, which must give no fault, and then with another
output and another scalar, which must both be named, as that kernel's. The last line is JSON. Exit status 0: all as expected, 1: not, 77: no
Triton, no PyTorch or no card.
"""
import sys

sys.dont_write_bytecode = True
import torch_host as host  # noqa: E402
from torch_host import cases, torch  # noqa: E402

try:
    import triton
    import triton.language as tl
except ImportError as error:
    cases.skip(f"no Triton: {error}")

N, SCALES = 4096, (0.5, 0.25)


@triton.jit
def add_scaled(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + scale * y, mask=inside)


def run(library, session, stream):
    x, y = torch.rand(N, device="cuda"), torch.rand(N, device="cuda")
    outputs = [torch.zeros(N, device="cuda") for _ in SCALES]
    torch.cuda.synchronize()

    def enqueue(k):
        with torch.cuda.stream(stream):
            add_scaled[(triton.cdiv(N, 1024),)](x, y, outputs[k], N, SCALES[k], BLOCK=1024)

    def record(name, k):
        return session.record(name, lambda: enqueue(k), library.STEP_ALLOW_UNREGISTERED)

    for k in range(len(SCALES)):  # Compiled and loaded before a recording
        enqueue(k)
    torch.cuda.synchronize()
    steps = [record("k", 0), record("k once more", 0), record("k + 1", 1), record("k + 1 again", 1)]

    same = session.compare(steps[:1], steps[1:2])
    wrong = cases.unlike_expected(same)
    audit = session.compare(steps[:2], steps[2:])
    out = (outputs[0].data_ptr(), outputs[1].data_ptr())
    pointers = [f for f in audit.faults if f["kind"] == "MOVED_POINTER" and (f["before"], f["after"]) == out]
    scalars = [f for f in audit.faults if host.is_scalar(f, *SCALES)]
    for name, found in ("the output", pointers), ("the scalar", scalars):
        if len(found) != 1 or "add_scaled" not in found[0]["node_name"]:
            wrong.append(f"{name} is not named once, as the kernel's: {cases.some(found)}")
    wrong += cases.unlike_expected(audit, 2)

    for output in outputs:
        output.zero_()
    torch.cuda.synchronize()
    steps[0].replay()
    torch.cuda.synchronize()
    if not torch.allclose(outputs[0], x + SCALES[0] * y) or outputs[1].any():
        wrong.append("the replay gives another result than the kernel")
    addresses = steps[0].audit().summary["addresses"]
    if addresses < 3:
        wrong.append(f"the audit saw {addresses} addresses, and the kernel has three")
    return {
        **cases.figures(steps[:2], steps[2:], audit),
        "false": same.summary["faults"],
        "arguments": {"output": [f["argument"] for f in pointers], "scalar": [f["argument"] for f in scalars]},
        "shown": cases.some(audit.findings),
        "wrong": wrong,
    }


report = cases.Report("audit_triton", triton=triton.__version__, **host.facts())
report.case("triton kernel", host.with_session(run))
report.finish()
