"""Verifies the schedules of the library with each rule of std.pp."""
import subprocess
import sys

ppcc = sys.argv[1]
rules = ["recompute", "recompute(2, 1)", "release", "offload(2)", "reduce_grads(1)", "reduce_embedding",
         "reduce_replicas", "step(true)", "fsdp"]
listing = subprocess.run([ppcc, "--list-schedules"], capture_output=True, text=True, check=True).stdout
refused = set()
for schedule in [line.split()[0] for line in listing.splitlines()]:
    for rule in rules:
        # Its ranks reduce and share themselves.
        if schedule == "breadth_first_fsdp" and rule in ("reduce_grads(1)", "fsdp"):
            continue
        # It moves activations away itself (E0688, E0689).
        if schedule == "bpipe" and (rule == "offload(2)" or rule.startswith("recompute")):
            continue
        run = subprocess.run([ppcc, schedule, "--with=" + rule, "--check"], capture_output=True, text=True)
        if run.returncode:
            refused.add((schedule, rule))
            print(schedule, rule, run.stderr.splitlines()[0])
sys.exit(bool(refused))
