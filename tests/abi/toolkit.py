"""Where the CUDA toolkit is; the tests that need it are skipped with a reason where it is not."""
import os
import re
import shutil
import sys

OLDEST = 12040  # The newest thing that our declarations name came with 12.4.


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def folders():
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield os.environ[variable]
    if nvcc := shutil.which(os.environ.get("NVCC", "nvcc")):
        yield os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    yield "/usr/local/cuda"
    yield "/usr"


def include_folder():
    for folder in folders():
        include = os.path.join(folder, "include")
        if all(os.path.exists(os.path.join(include, name)) for name in ("cuda.h", "cudaTypedefs.h")):
            with open(os.path.join(include, "cuda.h"), encoding="utf-8", errors="replace") as f:
                version = int(re.search(r"#define CUDA_VERSION (\d+)", f.read())[1])
            if version < OLDEST:
                skip(f"cuda.h here is of CUDA {version // 1000}.{version % 1000 // 10}; the comparison needs 12.4 or newer")
            return include, version
    skip("no CUDA toolkit found (cuda.h and cudaTypedefs.h): looked at CUDA_HOME, CUDA_PATH, nvcc and /usr/local/cuda")


def nvcc():
    found = shutil.which(os.environ.get("NVCC", "nvcc"))
    for folder in folders():
        found = found or shutil.which(os.path.join(folder, "bin", "nvcc"))
    return found or skip("no nvcc found")
