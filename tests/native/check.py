"""Run the examples that use cuBLAS and NCCL, or the part of them that needs neither, and look at what they say:

    python3 check.py ranks PROGRAM     ranks find each other, agree, and notice when one is missing; no card needed
    python3 check.py cublas PROGRAM    examples/cublas on a card; exit status 77 where there is none
    python3 check.py nccl PROGRAM      examples/nccl on all cards of this machine; with one card, what needs two is skipped

Prints a line for each case, the programs' own tables, and at last `N passed, N failed, N skipped`.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

what, program = sys.argv[1:]
count = {"passed": 0, "failed": 0, "skipped": 0}
card = True  # False: it needs one, and there is none


def result(name, wrong):
    count["failed" if wrong else "passed"] += 1
    print(f"{'FAIL' if wrong else 'ok  '} {name}{': ' if wrong else ''}{wrong or ''}", flush=True)


def skip(name, reason):
    count["skipped"] += 1
    print(f"skipped: {name}: {reason}", flush=True)


def free_port():
    with socket.create_server(("", 0)) as s:
        return s.getsockname()[1]


LAUNCHERS = {
    "torchrun": lambda rank, ranks: {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1"},
    "Open MPI": lambda rank, ranks: {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": ranks,
        "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": ranks,
    },
    "MPICH": lambda rank, ranks: {"PMI_RANK": rank, "PMI_SIZE": ranks, "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": ranks},
    "srun": lambda rank, ranks: {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": ranks, "SLURM_LOCALID": rank, "SLURM_STEP_NUM_NODES": 1},
}
TOLD = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_|OMPI_|PMI|MPI_|SLURM_|TORCHELASTIC_)")


def clean():
    return {name: value for name, value in os.environ.items() if not TOLD.match(name)}


def start(arguments, place, **more):
    env = {**clean(), **{name: str(value) for name, value in {**place, **more}.items()}}
    return subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def ended(processes, limit):
    """Statuses and outputs; status None for one that had to be killed."""
    until, results = time.monotonic() + limit, []
    for process in processes:
        try:
            text, _ = process.communicate(timeout=max(0.1, until - time.monotonic()))
            results.append((process.returncode, text))
        except subprocess.TimeoutExpired:
            process.kill()
            results.append((None, process.communicate()[0]))
    return results


def begin(ranks, arguments, launcher="torchrun", **more):
    more.setdefault("MASTER_PORT", free_port())
    return [start(arguments, LAUNCHERS[launcher](rank, ranks), **more) for rank in range(ranks)]


def together(ranks, arguments, limit, launcher="torchrun", **more):
    return ended(begin(ranks, arguments, launcher, **more), limit)


def unlike(results, statuses, *words):
    """What differs from these statuses, and from outputs that hold all these words somewhere; "" if nothing does."""
    was = [status for status, _ in results]
    text = "".join(text for _, text in results)
    missing = [word for word in words if word not in text]
    if was != statuses or missing:
        return f"statuses {was} instead of {statuses}, missing {missing}\n{text}"
    return ""


# ---- ranks -----------------------------------------------------------------------------------------------------------


def ranks():
    for launcher in LAUNCHERS:
        n = 3
        result(f"three ranks, {launcher}", unlike(together(n, [20], 60, launcher), [0] * n, *(f"rank {r} of 3: all right" for r in range(n))))
    result("one rank, no launcher", unlike(ended([start([20], {})], 60), [0], "rank 0 of 1"))
    result("eight ranks", unlike(together(8, [20], 60), [0] * 8, "rank 7 of 8: all right"))

    late = [start([20], LAUNCHERS["torchrun"](1, 2), MASTER_PORT=(port := free_port()))]
    time.sleep(1)
    late.append(start([20], LAUNCHERS["torchrun"](0, 2), MASTER_PORT=port))
    result("rank 0 comes last", unlike(ended(late, 60), [0, 0], "all right"))

    began = time.monotonic()
    some = [start([2], LAUNCHERS["torchrun"](rank, 4), MASTER_PORT=(port := free_port()) if rank == 0 else port) for rank in (0, 2)]
    result("two ranks never come", unlike(ended(some, 30), [1, 1], "rank 1, 3 did not come", "within 2 s", "rank 0"))
    result("rank 0 never comes", unlike(ended([start([2], LAUNCHERS["torchrun"](1, 2), MASTER_PORT=free_port())], 30), [1], "rank 0 was not reached", "within 2 s"))
    result("and nobody waits longer", "" if time.monotonic() - began < 15 else f"{time.monotonic() - began:.0f} s")

    for rank in (0, 2):
        found = together(3, [10, "dies", rank], 30)
        result(f"rank {rank} dies", unlike(found, [9 if r == rank else 1 for r in range(3)], f"lost rank {rank}"))
        found = together(3, [2, "sleeps", rank], 30)
        result(f"rank {rank} is stuck", unlike(found, [1, 1, 1], "within 2 s"))
    result("a rank is out of step", unlike([r for r in together(2, [2, "skips", 1], 30)], [1, 1], "rank 0", "rank 1"))

    with socket.create_server(("", 0)) as taken:
        found = together(2, [2], 30, MASTER_PORT=taken.getsockname()[1])
        result("the port is taken", unlike(found[:1], [1], "cannot listen on port", "MASTER_PORT"))
    odd = [start([3], LAUNCHERS["torchrun"](0, 2), MASTER_PORT=(port := free_port())), start([3], LAUNCHERS["torchrun"](1, 3), MASTER_PORT=port)]
    result("numbers of ranks differ", unlike(ended(odd, 30), [1, 1], "rank 1 of 3, and this is rank 0 of 2"))
    twice = [start([3], LAUNCHERS["torchrun"](rank, 3), MASTER_PORT=(port := free_port()) if rank == 0 else port) for rank in (0, 1, 1)]
    result("a rank comes twice", unlike(ended(twice, 30), [1, 1, 1], "that rank is there already"))
    jobs = [start([2], LAUNCHERS["torchrun"](rank, 2), MASTER_PORT=(port := free_port()) if rank == 0 else port, TORCHELASTIC_RUN_ID=rank) for rank in (0, 1)]
    result("a rank of another job is not let in", unlike(ended(jobs, 30), [1, 1], "rank 1 did not come"))

    port = free_port()
    apart = [start([5], LAUNCHERS["Open MPI"](rank, 2), MASTER_PORT=port, SLURM_JOB_ID=7, **({"SLURM_STEP_ID": 0} if rank else {})) for rank in (0, 1)]
    result("mpirun under Slurm, which starts ranks elsewhere as a step", unlike(ended(apart, 30), [0, 0], "all right"))

    def stranger(port):
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", port), 1) as s:
                    s.sendall(b"GET / HTTP/1.0\r\nHost: here, and more than forty bytes of it\r\n\r\n")
                    return
            except OSError:
                time.sleep(0.02)

    port = free_port()
    first = start([20], LAUNCHERS["torchrun"](0, 2), MASTER_PORT=port)
    caller = threading.Thread(target=stranger, args=(port,))
    caller.start()
    caller.join()
    result("a stranger calls first", unlike(ended([first, start([20], LAUNCHERS["torchrun"](1, 2), MASTER_PORT=port)], 60), [0, 0], "all right"))

    def place(expected, status, **env):
        result(f"place: {expected}", unlike(ended([start([1, "place"], {}, **env)], 10), [status], expected))

    place("none: rank 0 of 1, 0 here, 127.0.0.1 port 29500", 0)
    place("torchrun: rank 3 of 8, 1 here, node7 port 4001", 0, RANK=3, WORLD_SIZE=8, LOCAL_RANK=1, MASTER_ADDR="node7", MASTER_PORT=4000, TORCHELASTIC_USE_AGENT_STORE="True")
    place("srun: rank 5 of 8, 1 here, node0 port 29500", 0, SLURM_PROCID=5, SLURM_STEP_NUM_TASKS=8, SLURM_LOCALID=1, SLURM_STEP_NUM_NODES=2, MASTER_ADDR="node0")
    place("set MASTER_ADDR", 1, SLURM_PROCID=5, SLURM_STEP_NUM_TASKS=8, SLURM_LOCALID=1, SLURM_STEP_NUM_NODES=2)
    place("set MASTER_ADDR", 1, OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_LOCAL_RANK=0, OMPI_COMM_WORLD_LOCAL_SIZE=2)
    place("RANK is '9'", 1, RANK=9, WORLD_SIZE=8, LOCAL_RANK=1)
    place("MASTER_PORT is 'x'", 1, RANK=0, WORLD_SIZE=1, LOCAL_RANK=0, MASTER_ADDR="here", MASTER_PORT="x")


# ---- cuBLAS ------------------------------------------------------------------------------------------------------------


def options(known, *refused):
    result("--help", unlike(ended([start(["--help"], {})], 30), [0], *known))
    for arguments in refused:
        result(f"wrong call: {' '.join(arguments)}", unlike(ended([start(arguments, {})], 30), [2], arguments[0], "usage"))


def no_card(found):
    """Has the program found none?"""
    global card
    status, text = found[0]
    if status == 77:
        card = False
        skip("on a card", text.strip())
    return status == 77


def cublas():
    options(["--break", "--steps"], ["--steps", "3"], ["--steps", "many"], ["--break", "legs"], ["--what"], ["--width"])
    plain = ended([start(["--steps", "300"], {})], 60)
    if no_card(plain):
        return
    result("trained on a loop", unlike(plain, [0], "0 of", "bytes differ: identical", "checks: 3, of which 3", "no fault found", "replayed"))
    print(plain[0][1])
    broken = ended([start(["--steps", "300", "--break", "workspace"], {})], 60)
    result("--break workspace", unlike(broken, [3], "bytes differ: identical", "that no pin covers", "pin it", "rerecord"))
    print(broken[0][1])
    unset = ended([start(["--steps", "300", "--break", "unset"], {})], 60)
    result("--break unset", "" if unset[0][0] in (0, 3) and "bytes differ" in unset[0][1] else unset[0][1])
    print(unset[0][1])


# ---- NCCL --------------------------------------------------------------------------------------------------------------


def cards():
    """That a program may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([one for one in visible.split(",") if one])
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return len(re.findall(r"^GPU \d+:", listed, flags=re.M))


# Open MPI on one machine: as root in a container, and without ssh.
ALONE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": "sh"}
RIGHT = ("the same on all ranks, and those of the run without a graph", "checks: 3, of which 3", "replayed")


def nccl():
    options(["--break", "--timeout"], ["--steps", "3"], ["--break", "legs"], ["--what"])
    one = ended([start(["--steps", "300"], {})], 60)
    if no_card(one):
        return
    result("one rank, no launcher", unlike(one, [0], "1 rank,", *RIGHT))
    print(one[0][1])
    n = cards()
    if n < 2:
        skip("several ranks", f"{n} card here")
        return
    several = together(n, ["--steps", "300"], 90)
    result(f"{n} ranks", unlike(several, [0] * n, f"{n} ranks,", *RIGHT))
    print("".join(text for _, text in several))

    for launcher, command in (
        ("torchrun", ["torchrun", "--nnodes", "1", "--nproc-per-node", str(n), "--no-python"]),
        ("mpirun", ["mpirun", "-np", str(n)]),
    ):
        if shutil.which(launcher) is None:
            skip(f"started by {launcher}", "it is not here")
            continue
        try:
            done = subprocess.run([*command, program, "--steps", "150"], capture_output=True, text=True, env={**clean(), **ALONE}, timeout=90)
            found = [(done.returncode, done.stdout + done.stderr)]
        except subprocess.TimeoutExpired as error:
            found = [(None, str(error.stdout))]
        result(f"started by {launcher}", unlike(found, [0], f"{n} ranks, started by {launcher}", *RIGHT))

    last, others = n - 1, n - 1
    found = together(n, ["--break", "recording"], 60)
    result("recordings of one rank break", unlike(found, [3] * n, "broken recording", "another rank stands against it", "the same on all ranks, and those"))
    print("".join(text for _, text in found))
    # These wait for most of their time, so all at once.
    troubles = {
        "dead": (f"lost rank {last}", 9),
        "stuck": ("has not come to an end within 10 s", 1),
        "late": (f"rank {last} did not come", 9),
    }
    started = {trouble: begin(n, ["--break", trouble, "--timeout", "10", "--steps", "100"]) for trouble in troubles}
    for trouble, (words, status) in troubles.items():
        found = ended(started[trouble], 60)
        result(f"--break {trouble}", unlike(found, [1] * others + [status], words))
        print("".join(line + "\n" for _, text in found for line in text.splitlines() if line.startswith("rank ")))
    # This one has to come to a replay, and with others beside it the clock might be against that.
    found = together(n, ["--break", "order", "--timeout", "10"], 60)
    result("--break order", unlike(found, [1] * n, "the destruction of the communicator before the graph has not come to an end"))


{"ranks": ranks, "cublas": cublas, "nccl": nccl}[what]()
print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
if count["failed"]:
    sys.exit(1)
sys.exit(0 if card else 77)
