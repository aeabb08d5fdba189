"""certificates_verify.py PPCC CHECKER FOLDER: certificates of schedules of all kinds, and with all kinds of options, are good."""
import json
import subprocess
import sys
from pathlib import Path

ppcc, checker, folder = sys.argv[1:]
ONE = "schedule s(P: int >= 1 = 2, M: int >= 1 = 8) { ranks P; microbatches M; placement linear; %s on rank r { %s } }"
BODY = "let w = min(P - r, M); repeat w { F; } for i in 0 .. M - w { F; B; } repeat w { B; }"
texts = {
    "scaled.pp": ONE % ("model { scale time microbatch m = m % 2 == 0 ? 1 : 2; }", BODY),
    "scaled_memory.pp": ONE % ("model { scale memory microbatch m = m % 3 == 0 ? 1 : 2; }", BODY),
    "twice.pp": ONE % ("", BODY + " if M % 3 == 1 and r == 0 { F; }"),
    "early.pp": ONE % ("", "repeat M { if r == 0 { F; B; } else { F; B; } }"),
    "undecided.pp": Path(folder, "undecided.pp").read_text(encoding="utf-8"),
    "one-large-m.pp": Path(folder, "one-large-m.pp").read_text(encoding="utf-8"),
}
for name, text in texts.items():
    Path(name).write_text(text, encoding="utf-8")
cases = ["%s -DP=4 --transport=data --cost=latency=0.3" % name for name in ("gpipe", "one_f_one_b", "zb_h1", "dualpipe", "hanayo")]
cases += ["%s -DP=4 --fuse=%s" % (name, fusion) for name in ("one_f_one_b", "interleaved_1f1b") for fusion in ("batch", "megatron")]
cases += ["one_f_one_b -DP=3 --cost=limit=%s --with=%s" % (limit, rule) for limit in (1, 4, 30) for rule in ("recompute", "release", "offload(1)")]
cases += ["one_f_one_b -DP=4 --comm-order=%s --transport=stream,rendezvous" % order for order in ("sweep", "ready-time", "late", "best")]
cases += ["bpipe -DP=8", "scaled.pp -DP=5 --cost=limit=8", "scaled.pp", "scaled_memory.pp --cost=limit=9", "twice.pp", "early.pp"]
cases += ["undecided.pp", "one-large-m.pp", "gpipe -DP=2 --cost=limit=3", "slimpipe -DP=4", "breadth_first_fsdp -DP=2 --with=fsdp", "zero_bubble_v -DP=3 --prefetch=1"]
cases += ["one_f_one_b -DP=4 --with=recompute(3,2) --with=offload(1) --cost=group.sum=0.8 --cost=F=1.25"]
shown = 0
for case in cases:
    subprocess.run([ppcc, "prove", *case.split(), "--certificate=own.json", "-o", "own.txt"], check=False, timeout=600)
    done = subprocess.run([checker, "own.json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (case, done)
    shown += "shown: nothing" not in done.stdout
    claims = json.loads(Path("own.json").read_text(encoding="utf-8"))["ranges"]
    assert all(claim["verdict"] != "valid" or claim["transports"] for claim in claims), case
    Path("own.json").unlink()
assert shown > 30, shown
print(f"{len(cases)} certificates are good, {shown} of them show something")
