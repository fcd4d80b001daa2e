"""Open a session in environments that make no sense:   python3 environment.py PROGRAM CUSIM KERNELS

PROGRAM (environment.c) must do its work or refuse with words: no signal, no hang. What cusim does not understand it says and ignores.
"""
import os
import subprocess
import sys
import tempfile

program, cusim, kernels = sys.argv[1:4]
wrong = 0


def run(what, env, allowed, words=""):
    global wrong
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUSIM_") and name != "STEPGRAPH_DRIVER"}
    try:
        done = subprocess.run([program], env={**clean, "CUSIM_KERNELS": kernels, **env}, capture_output=True, timeout=60, check=False)
        said = (done.stdout + done.stderr).decode(errors="replace")
        right = done.returncode in allowed and words in said
        result = f"status {done.returncode}"
    except subprocess.TimeoutExpired:
        right, result, said = False, "hangs", ""
    if not right:
        wrong += 1
        print(f"NOT AS EXPECTED: {what}: {result}, expected {allowed} with '{words}': {said.strip()[:400]}")


with tempfile.TemporaryDirectory() as folder:
    def file(name, content):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    with open(cusim, "rb") as f:
        whole = f.read()
    run("cusim as it is", {"STEPGRAPH_DRIVER": cusim}, [0], "done")
    drivers = {
        "a folder": folder, "the root": "/", "nothing": "/dev/null", "an empty file": file("empty.so", b""),
        "a text": file("text.so", b"#!/bin/sh\necho no\n"), "a header and no more": file("header.so", whole[:64]),
        "noise": file("noise.so", b"\x7fELF" + bytes(range(256)) * 40),
        "no path": "no-such-driver.so", "a long path": "/" + "x" * 5000, "a format": "%s%n%s", "another library": "libm.so.6",
        "a path with a line break": "a\nb",
    }
    for what, path in drivers.items():
        run(f"STEPGRAPH_DRIVER is {what}", {"STEPGRAPH_DRIVER": path}, [2], "STEPGRAPH_ERR_")

    numbers = ["abc", "-1", "-5", "1x", " ", "99999999999999999999999999", "0x", "1e9"]
    for variable in ("CUSIM_SEED", "CUSIM_DELAY_NS", "CUSIM_DEVICES", "CUSIM_MEMORY", "CUSIM_DRIVER_VERSION", "CUSIM_STUB", "CUSIM_STRICT"):
        for value in numbers:
            run(f"{variable}={value}", {"STEPGRAPH_DRIVER": cusim, variable: value}, [0], "is ignored")
    for variable in ("CUSIM_CHECK", "CUSIM_RACES", "CUSIM_ADDRESS_POLICY"):
        for value in ("garbage", "report,fail", "%s%n", "x" * 5000):
            run(f"{variable}={value[:20]}", {"STEPGRAPH_DRIVER": cusim, variable: value}, [0], "is ignored")
    for value in ("garbage", ":::", "cuMemAlloc", "cuMemAlloc:0:1", "cuMemAlloc:x:y", "a:1:2:3,,", "," * 3000, "%s%n:1:2x"):
        run(f"CUSIM_FAIL={value[:20]}", {"STEPGRAPH_DRIVER": cusim, "CUSIM_FAIL": value}, [0])
    for what, value in (("nothing", ""), ("colons", ":::"), ("no file", "/no/such.so"), ("a text", os.path.join(folder, "text.so")),
                        ("another library", "libm.so.6"), ("a folder", folder)):
        run(f"CUSIM_KERNELS is {what}", {"STEPGRAPH_DRIVER": cusim, "CUSIM_KERNELS": value}, [2], "kernels")
    run("no device", {"STEPGRAPH_DRIVER": cusim, "CUSIM_DEVICES": "0"}, [2], "device")
    run("no memory", {"STEPGRAPH_DRIVER": cusim, "CUSIM_MEMORY": "0"}, [2], "memory")
    run("an old driver", {"STEPGRAPH_DRIVER": cusim, "CUSIM_DRIVER_VERSION": "11080"}, [2], "12.0")
    run("a stub", {"STEPGRAPH_DRIVER": cusim, "CUSIM_STUB": "1"}, [2], "stub")

print(f"{wrong} wrong")
sys.exit(1 if wrong else 0)
