"""Count Meson's results and close with `N passed, N failed, N skipped`:   python3 results.py TESTLOG.json MESON-STATUS

Passed is what Meson calls OK, skipped what it calls SKIP (exit status 77). All else is a failure: also a timeout, a crash, a
test that was expected to fail, and a run in which nothing was executed.
"""
import json
import re
import sys

path, status = sys.argv[1], int(sys.argv[2])
try:
    with open(path, encoding="utf-8") as f:
        tests = [json.loads(line) for line in f if line.strip()]
except OSError:
    tests = []

passed = [test for test in tests if test["result"] == "OK"]
skipped = [test for test in tests if test["result"] == "SKIP"]
failed = [test for test in tests if test["result"] not in ("OK", "SKIP")]

print()
for test in skipped:
    words = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
    print(f"skipped: {test['name']}: {words[-1] if words else 'it gives no reason'}")
for test in passed:
    # libcheck knows no skip: a check that is left out says so and passes.
    left_out = re.findall(r"^skipped: .*", test.get("stdout") or "", flags=re.M)
    if left_out:
        print(f"passed, but left out {len(left_out)} checks: {test['name']}: {left_out[0][9:]}{', ...' * (len(left_out) > 1)}")
for test in failed:
    print(f"failed: {test['name']}: {test['result']}")
if not tests:
    print("no test was executed")
elif not passed and not failed:
    print("every test was skipped")
if status != 0 and not failed and tests:
    print(f"meson test ended with status {status}")
print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
sys.exit(0 if tests and not failed and status == 0 else 1)
