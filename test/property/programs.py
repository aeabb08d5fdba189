"""Random programs with messages and costs, as files that ppcc reads."""

import json
import re

from mutate import mutated
from generate import schedule
from oracle.check import message_violations, violations
from program_json import from_json, to_json
from tools import expect


def program(draw, tools, **how):
    """A case, its program with messages, and the file of it; None when the schedule is not right."""
    case = schedule(draw, sound=not draw.chance(0.05), has_transfers=True, **how)
    alone, refused = case.expand()
    costs = case.costs()
    if refused or violations(alone, costs):
        return None
    file = tools.file("random.pp", case.source())
    options = [f"--comm-order={draw.pick(['sweep', 'ready-time', 'late'])}", f"--fuse={draw.weighted([('none', 3), ('batch', 1)])}",
               "--transport=buffered"]
    done = tools.ppcc(file, *case.arguments(tools.folder), *options)
    if done.returncode:
        # An action that waits for a message stands after it, wherever it was written, and may then move what another has moved.
        movers = re.findall(r"`\d+([A-Z_]+)\d+` (?:has moved already \[E0688\]|restores it \[E0689\])", done.stderr)
        displaced = any(alone.head.kinds[mover].waits_for_message for mover in movers)
        expect(displaced or "[E0766]" in done.stderr or "[E0765]" in done.stderr, "messages are refused", done.stderr)
        return None
    base = json.loads(done.stdout)
    result = from_json(base)
    if draw.chance(0.5):
        other = mutated(draw, result)
        if not violations(other, costs) | message_violations(other):
            result = other
    return case, result, tools.file("random.json", json.dumps(to_json(result, base)))


def without_messages(tools, result):
    """The same program for data alone, as a file."""
    base = json.loads((tools.folder / "random.json").read_text())
    return tools.file("alone.json", json.dumps(to_json(result.without_messages(), base)))
