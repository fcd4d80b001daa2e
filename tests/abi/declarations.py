"""Compare lib/driver/cuda_abi.h and entries.h with the toolkit's cuda.h:   python3 declarations.py LIB/DRIVER CC...

Prints each difference. Exit status 77 where there is no toolkit.
"""
import os
import re
import subprocess
import sys
import tempfile

import facts
import toolkit

SIGNATURES = r"""
#include <stdio.h>
#include <cuda.h>
#include <cudaTypedefs.h>
/* entries.h may include our own declarations; here the toolkit's stand in for them. */
#define STEPGRAPH_DRIVER_CUDA_ABI_H
#include "entries.h"
@STUBS@

#define FORM(field, name, version, params) \
    printf("cu" #name " %d%s\n", version, \
           __builtin_types_compatible_p(PFN_cu##name##_v##version, CUresult(*) params) ? "" : " differs: " #params);
#define ENTRY(name, version, params) FORM(name, name, version, params)

int main(void)
{
    SG__DRIVER_ENTRIES(ENTRY, ENTRY)
    SG__DRIVER_FORMS(FORM, FORM)
    return 0;
}
"""

driver, compiler = os.path.abspath(sys.argv[1]), sys.argv[2:]
include, version = toolkit.include_folder()
tmp = tempfile.TemporaryDirectory()


def run(name, source, *arguments):
    """Compile and run a C program; its lines."""
    path = os.path.join(tmp.name, name)
    with open(path + ".c", "w", encoding="utf-8") as f:
        f.write(source)
    subprocess.run([*compiler, "-std=gnu11", *arguments, "-o", path, path + ".c"], check=True)
    return subprocess.run([path], check=True, capture_output=True, text=True).stdout.splitlines()


def table(lines):
    return dict(line.rsplit(" ", 1) for line in lines)


def versions():
    """Entries whose version the toolkit does not know: cuGetProcAddress would be asked for something that never was."""
    with open(os.path.join(include, "cudaTypedefs.h"), encoding="utf-8", errors="replace") as f:
        known = re.findall(r"\(CUDAAPI \*PFN_cu(\w+)_v(\d+)\)", f.read())
    with open(os.path.join(driver, "entries.h"), encoding="utf-8") as f:
        named = re.findall(r"(?:REQUIRED|OPTIONAL|FORM)\((?:\w+, )?(\w+), (\d+)", f.read())
    for name, version in named:
        if (name, version) not in known:
            there = [other for entry, other in known if entry == name]
            yield name, version, f"cu{name} {version}: the toolkit has " + (" and ".join(there) or "none of that name")


with open(os.path.join(driver, "cuda_abi.h"), encoding="utf-8") as f:
    program = facts.program(f.read())
try:
    ours = table(run("ours", program, '-DFACTS_HEADER="cuda_abi.h"', "-I", driver))
    theirs = table(run("theirs", program, "-DFACTS_HEADER=<cuda.h>", "-isystem", include))
    unknown = list(versions())
    stubs = "\n".join(f"typedef CUresult (*PFN_cu{name}_v{number})();" for name, number, _ in unknown)
    entries = run("signatures", SIGNATURES.replace("@STUBS@", stubs), "-isystem", include, "-I", driver)
except subprocess.CalledProcessError as error:
    sys.exit(f"the toolkit lacks something that we declare, or declares it otherwise: {error}")

wrong = [f"{name}: ours {ours[name]}, the toolkit's {theirs[name]}" for name in ours if ours[name] != theirs[name]]
# Ours alone would pass `0 is 0`: each handle and function pointer must be what our own header says.
wrong += [f"{name}: not in our own header" for name in ours if name.endswith(":") and ours[name] != "1"]
wrong += [words for _, _, words in unknown]
wrong += [entry for entry in entries if "differs" in entry]
for line in wrong:
    print(line)
release = f"CUDA {version // 1000}.{version % 1000 // 10}"
print(f"{release}: {len(ours)} facts and {len(entries)} signatures compared, {len(wrong)} differ")
sys.exit(1 if wrong or not ours or not entries else 0)
