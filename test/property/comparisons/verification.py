"""Whether schedules, and programs with messages, are right, on each transport."""

import itertools
import json
import re

from mutate import mutated
from generate import schedule
from oracle.check import peak_receive_buffers, message_violations, first_readers, violations
from oracle.program import Costs, Program, text
from oracle.run import TRANSPORTS, is_deadlock_free
from program_json import from_json, to_json
from tools import diagnostic_codes, expect, expect_equal

# The diagnostics that speak of what the oracle calls by one word.
CODES = {
    "no microbatch": ["E0405"], "chunk": ["E0501"], "none left": ["E0504"], "microbatch": ["E0505"], "nothing pending": ["E0506"], "not pending": ["E0507"],
    "pending left": ["E0508"], "infinite loop": ["E0509"], "missing": ["E0701", "E0705"], "duplicate": ["E0702", "E0703"], "backward": ["E0704"], "order": ["E0721"],
    "group": ["E0731", "E0842"], "deadlock": ["E0741", "E0742"], "isolated stage": ["E0768"], "related action missing": ["E0681"],
    "required": ["E0682"], "absent": ["E0683"], "far end": ["E0683"], "not a member": ["E0684"], "collective order": ["E0685"], "offloaded twice": ["E0688", "E0689"], "restores too much": ["E1053"], "no peer rank": ["E0510"],
    "unmatched": ["E0752", "E0754", "E0760", "E0761", "E0762", "E0840"], "wrong messages": ["E0751", "E0752", "E0753", "E0754", "E0755", "E0763"],
    "no value to send": ["E0757"], "input missing": ["E0755", "E0756", "E0764"],
}
DEADLOCK_CODES = {"E0765", "E0766"}
COVERAGE = {"accepted": 4, "placed": 4, "verdicts": 1, "deadlock": 15, "group": 30, "order": 50, "missing": 75, "duplicate": 75, "none left": 75,
          "nothing pending": 50, "rendezvous: hangs": 20, "stream: safe": 4, "stream: refused": 4}
TRANSPORT_IN_ERROR = re.compile(r"error: deadlock under `([^`]+)`")


def compare(draw, tools, tally):
    case = schedule(draw, has_transfers=True)
    program, reasons = case.expand()
    # ppcc places the far ends of actions between ranks.
    reasons = reasons or violations(program, case.costs()) - {"far end"}
    file = tools.file("random.pp", case.source())
    costs = case.arguments(tools.folder)
    done = tools.ppcc(file, "--comm-order=none", *costs)
    tally.update(reasons or ["accepted"])
    tally["schedules"] += 1
    if reasons:
        expect_rejected(done, reasons)
        return
    expect(done.returncode == 0, "refused what is right", done.stderr)
    alone = from_json(json.loads(done.stdout))
    expect_equal(text(without_peer_sides(alone)), text(program), "other rows")
    expect_equal(phases(without_peer_sides(alone)), phases(program), "other phases")
    expect_equal([pipe._replace(padded=0) for pipe in alone.head.pipes], [pipe._replace(padded=0) for pipe in program.head.pipes],
                 "other pipes")
    expect(not violations(alone, case.costs()), "far ends in wrong places", text(alone))
    with_messages = insert_messages(draw, tools, tally, file, costs, alone)
    if with_messages:
        for _ in draw.spans_of(3):
            check_mutated(draw, tools, tally, with_messages, case.costs())


def without_peer_sides(program):
    """Without the far ends of actions between ranks."""
    home = program.head.home
    return Program(program.head, [[item for item in rank if not item[0].kind.is_transfer or home(item[0]) == r]
                                  for r, rank in enumerate(program.items)])


def phases(program):
    return [[(str(row), row.phase) for row in rank] for rank in program.rows]


def expect_rejected(done, reasons):
    codes = diagnostic_codes(done)
    expect(done.returncode == 1 and codes, "accepted what is wrong", f"the oracle: {sorted(reasons)}")
    expect(codes[0] in [code for reason in reasons for code in CODES[reason]], "refused for another reason",
           f"the oracle: {sorted(reasons)}\n{done.stderr}")


def insert_messages(draw, tools, tally, file, costs, program):
    """The program with messages; what the compiler places must be right, and safe on the transports."""
    order, fuse = draw.pick([["--comm-order=sweep"], ["--comm-order=ready-time"], ["--comm-order=late"], ["--comm-order=best"], []]), \
        draw.weighted([("none", 5), ("batch", 3), ("megatron", 1), ("megatron-even-odd", 1)])
    options = [] if fuse.startswith("megatron") else order
    transports = draw.subset(list(TRANSPORTS), 0.2) or [draw.pick(list(TRANSPORTS))]
    options += [f"--fuse={fuse}", f"--transport={','.join(transports)}"]
    prefetch = draw.pick([None, None, 1, 2]) if fuse == "none" else None
    options += [f"--prefetch={prefetch}"] if prefetch else []
    preconnect = draw.pick(["auto", "on", "off"])
    options.append(f"--preconnect={preconnect}")
    done = tools.ppcc(file, *costs, *options)
    tally["placed"] += 1
    if done.returncode:
        # A program whose collectives wait, and orders that are not safe on all transports, are refused; what they place is not.
        late = {"E0771"} if prefetch and "--comm-order=late" in options else set()  # It may need more receives ahead.
        expect(set(diagnostic_codes(done)) <= DEADLOCK_CODES | late | ({"E0762", "E0840"} if fuse.startswith("megatron") else set()),
               "messages are refused", done.stderr)
        tally["placed unsafely"] += 1
        done = tools.ppcc(file, *costs, *options[:-3 - bool(prefetch)], "--transport=buffered")
        return None if done.returncode else json.loads(done.stdout)
    data = json.loads(done.stdout)
    result = from_json(data)
    expect_equal(without_followers(result), without_followers(program), "other rows with messages")
    reasons = message_violations(result) | violations(result, Costs(result.head))
    expect(not reasons, "wrong messages", f"{reasons}\n{text(result)}")
    for transport in transports:
        expect(is_deadlock_free(result, transport), "placed messages hang", f"under {transport}\n{text(result)}")
    expect_equal(data["transports"], transports, "other transports are proven")
    ranks, edges, ahead = peak_receive_buffers(result)
    expect(not prefetch or ahead <= prefetch, "too many receives ahead", text(result))
    expect_equal(data["buffers"], ranks, "other buffers")
    mnemonic = [kind["mnemonic"] for kind in data["kinds"]]
    expect_equal({(mnemonic[kind], *edge): number for kind, *edge, number in data["edge_buffers"]}, dict(edges), "other buffers of edges")
    firsts = [[*itertools.accumulate(map(len, rank), initial=0)] for rank in result.items]
    expect_equal(data["waits"], [[firsts[r][reader] for _, reader in sorted(first_readers(rank).items())] for r, rank in enumerate(result.items)],
                 "other waits")
    pairs = {tuple(sorted(result.ends(key))) for key in result.row_ids if result.row(key).kind.is_message}
    pairs |= {tuple(sorted((key[0], result.head.home(row._replace(stage=row.peer))))) for key in result.row_ids
              for row in [result.row(key)] if row.kind.is_transfer and result.head.home(row) == key[0]}
    listed = {tuple(pair) for pair in data.get("preconnect", [])}
    streams = any(transport.startswith("stream") for transport in transports)
    wanted = pairs if preconnect == "on" or preconnect == "auto" and streams else set()
    expect_equal(listed, wanted, "other pairs connect")
    tally[f"placed by {fuse}"] += 1
    return data


def without_followers(program):
    """The items without messages, and without what is placed behind messages."""
    def follows(kind):
        return any(mnemonic.startswith(("SEND_", "RECV_")) for choice in kind.after for mnemonic in choice)

    return [[tuple(map(str, item)) for item in rank if not item[0].kind.is_message and not follows(item[0].kind)]
            for rank in program.items]


def check_mutated(draw, tools, tally, data, costs):
    """Programs with messages that are damaged by chance, on every transport."""
    program = mutated(draw, from_json(data), messages=draw.chance(0.6))
    if not program.has_messages():
        return  # The compiler would place them.
    reasons = violations(program, costs) | message_violations(program)
    path = tools.file("random.json", json.dumps(to_json(program, data)))
    # Of errors that differ in a number alone the first is reported.
    left_out = draw.pick([("buffered:1", "buffered:2"), ("buffered", "buffered:2"), ("buffered", "buffered:1")])
    transports = [transport for transport in TRANSPORTS if transport not in left_out]
    done = tools.ppcc("check", path, f"--transport={','.join(transports)}", "--max-errors=1000")
    codes = diagnostic_codes(done)
    for transport in transports:
        tally["verdicts"] += 1
        tally[f"{transport}: {'refused' if reasons else 'safe' if is_deadlock_free(program, transport) else 'hangs'}"] += 1
    if reasons:
        expect(done.returncode == 1, "accepted wrong rows", f"the oracle: {sorted(reasons)}\n{text(program)}")
        expect(set(codes) & {code for reason in reasons for code in CODES[reason]}, "refused rows for another reason",
               f"the oracle: {sorted(reasons)}\n{done.stderr}\n{text(program)}")
        return
    expect(set(codes) <= DEADLOCK_CODES, "refused right rows", f"{done.stderr}\n{text(program)}")
    deadlocking = {transport for transport in transports if not is_deadlock_free(program, transport)}
    expect_equal(set(TRANSPORT_IN_ERROR.findall(done.stderr)), deadlocking, "another verdict on a transport")
