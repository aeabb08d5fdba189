"""Python's runtime against autograd without a pipeline: random schedules, small stages, processes on gloo. Needs PyTorch and the
Python package: `./dev interop` installs both."""

import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from generate import schedule
from tools import Mismatch, expect

COVERAGE = {"trained": 3}
SECONDS = 90
POOLS = {}  # By number of ranks.


class Pool:
    """Processes that form a group, and run one task after another."""

    def __init__(self, ranks):
        self.folder = tempfile.TemporaryDirectory()
        script = pathlib.Path(__file__).resolve().parent.parent / "training_worker.py"
        pairs = [socket.socketpair() for _ in range(ranks)]
        theirs = [peer.fileno() for _, peer in pairs]
        self.parent = subprocess.Popen([sys.executable, script, f"{self.folder.name}/store", *map(str, theirs)], pass_fds=theirs,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=True)
        self.workers = [own.makefile("w") for own, _ in pairs]
        for _, peer in pairs:
            peer.close()
        self.lines = [queue.Queue() for _ in self.workers]
        for (own, _), lines in zip(pairs, self.lines):
            threading.Thread(target=lambda stream, lines: [lines.put(line) for line in stream] + [lines.put("")],
                             args=(own.makefile("r"), lines), daemon=True).start()
        for lines in self.lines:  # Importing PyTorch takes long on a busy machine.
            expect(lines.get(timeout=10 * SECONDS).strip() == "ready", "PyTorch does not start")

    def run(self, task):
        """What each rank says: None, or what went wrong."""
        for worker in self.workers:
            worker.write(json.dumps(task) + "\n")
            worker.flush()
        reply = []
        for lines in self.lines:
            try:
                line = lines.get(timeout=SECONDS)
            except queue.Empty:
                line = '"no end"'
            reply.append(json.loads(line) if line.strip() else "the process ended")
        return reply

    def close(self):
        os.killpg(self.parent.pid, signal.SIGKILL)
        self.parent.wait()


def compare(draw, tools, tally):
    case = schedule(draw, sound=True, costed=False, plain=True)
    head = case.head
    sinks = [[s for s in range(len(pipe.ranks)) if not pipe.readers(s)] for pipe in head.pipes]
    begins = [[s for s in range(len(pipe.ranks)) if not pipe.sources(s)] for pipe in head.pipes]
    if any(pipe.slices > 1 for pipe in head.pipes) or any(len(one) > 1 for one in sinks + begins) or case.expand()[1]:
        return
    rules = draw.subset(["recompute(1, 1)", "release", "offload(1)"], 0.15) if head.backward else []
    if any(pipe.ranks[a] == pipe.ranks[b] for pipe in head.pipes for a, b in pipe.edges()):
        rules = [rule for rule in rules if rule != "release"]  # An output that a stage of the same rank reads cannot be released.
    options = [f"--comm-order={draw.pick(['sweep', 'ready-time'])}", f"--fuse={draw.weighted([('none', 3), ('batch', 1)])}",
               *(f"--with={rule}" for rule in rules)]
    done = tools.ppcc(tools.file("random.pp", case.source()), *options)
    if done.returncode:
        return  # `verdicts` looks into these.
    data = json.loads(done.stdout)
    task = {"program": done.stdout, "seed": draw.below(1000), "backward": head.backward,
            "activations": data["peak_activations"] if head.backward else [0] * head.ranks,
            "same": len({(len(pipe.ranks), pipe.skips, pipe.gaps) for pipe in head.pipes}) == 1,
            "shapes": [draw.pick(["plain", "norm", "residual"]) for _ in range(3)],
            "pipes": [{"name": pipe.name, "microbatches": [pipe.first, pipe.end], "ranks": pipe.ranks, "skips": pipe.skips,
                       "gaps": pipe.gaps} for pipe in head.pipes]}
    pool = POOLS.get(head.ranks) or Pool(head.ranks)
    POOLS[head.ranks] = pool
    reply = pool.run(task)
    tally["trained"] += 1
    tally[f"{head.ranks} ranks"] += 1
    if any(reply):
        POOLS.pop(head.ranks).close()
        first = min((one for one in reply if one), key=lambda one: "StepError" in one or one in ("no end", "the process ended"))
        raise Mismatch(f"trains otherwise: {first.strip().splitlines()[-1][:40].rstrip('0123456789. ')}",
                       "\n".join(f"rank {rank}: {one}" for rank, one in enumerate(reply) if one))
