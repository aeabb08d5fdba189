"""Random schedules of any number of microbatches M, and options for them."""
import re
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "lib" / "schedules"
NAMES = (
    "gpipe one_f_one_b one_f_one_b_overlap eager_1f1b zb_h1 zb_h2 zb1p seq1f1b looped_bfs zero_bubble_v dualpipe dualpipe_v "
    "chimera hanayo interleaved_1f1b interleaved_1f1b_overlap v_half v_min breadth_first_fsdp slimpipe gis bitpipe"
).split()
ACTION = r"\b(?:F|B|I|W)(?:\([^;(){}]*(?:\([^()]*\)[^;(){}]*)*\))?;"


def number(rng):
    """A function of M that is small, or grows."""
    return rng.choice(["0", "1", "2", "r", "P - 1 - r", "2 * (P - 1 - r)", "M / 3", "M % 2", "M % 3", "20 - M", "M - 12", "P"])


def condition(rng):
    return rng.choice(["M % 3 == 1", "M % 2 == 0", "M > 20", "M == 17", "r == 0", "r == P - 1 and M % 4 == 1", "M < 9"])


def body(rng):
    """What ranks do with one pipe and one chunk each, in some order that is right, most of the time."""
    back = rng.choice(["B;", "B;", "I; W;", "I;"])
    steady = rng.choice(["F; " + back, f"if i % 2 == 0 {{ F; {back} }} else {{ F; {back} }}"])
    if back == "B;" and rng.random() < 0.3:
        steady = "overlap { F; B; }"
    if rng.random() < 0.25:
        w = "M"
    else:
        more = f" + ({condition(rng)} ? {rng.choice('12')} : 0)" if rng.random() < 0.5 else ""
        least = f"max({number(rng)}, P - 1 - r)" if rng.random() < 0.5 else "P - 1 - r"
        w = f"min({least}{more}, M)"
    text = f"let w = {w}; repeat w {{ F; }} for i in 0 .. M - w {{ {steady} }} repeat w {{ {back} }} drain W;"
    if rng.random() < 0.2:
        text = text.replace("repeat w { I; }", f"defer W lag {rng.choice(['r', '2', 'P'])} {{ repeat w {{ B; }} }}", 1)
    if rng.random() < 0.1:
        text = "for i in 0 .. M { F(mb: M - 1 - i); } for i in 0 .. M { B(mb: M - 1 - i); }"
    return text


def own(rng):
    """The text of a schedule of one pipe, or of two."""
    if rng.random() < 0.3:
        half = rng.choice(["(M + 1) / 2", "M / 3 + 1", "max(M - 4, 1)"])
        orders = ["repeat {0} {{ F({1}); }}", "repeat {0} {{ B({1}); }}"]
        pair = [order.format(*of) for of in (("H", "down"), ("M - H", "up")) for order in orders]
        if rng.random() < 0.5:
            pair[1], pair[2] = pair[2], pair[1]
        if rng.random() < 0.3:
            pair[2:] = ["repeat M - H { F(up); B(up); }"] if rng.random() < 0.5 else ["repeat M - H { overlap { F(up); } B(up); }"]
        return (
            "schedule s(P: int >= 1 = 2, M: int >= 2 = 8) { ranks P; let H = %s; require M > H, \"two\"; "
            "pipe down { placement linear; microbatches 0 .. H; } "
            "pipe up { stages P; stage s on rank P - 1 - s; microbatches H .. M; } on rank r { %s } }" % (half, " ".join(pair))
        )
    scale = rng.choice(["", "", "", "", "model { scale time microbatch m = m % 2 == 0 ? 1 : 2; }", "model { scale memory microbatch m = m % 3 == 0 ? 1 : 2; }"])
    if rng.random() < 0.3:
        chunks = rng.choice(["repeat M {{ {0}(0); }} repeat M {{ {0}(1); }}", "repeat M {{ {0}(0); {0}(1); }}"])
        text = chunks.format("F") + " repeat M { B(1); } repeat M { B(0); }"
        return f"schedule s(P: int >= 1 = 2, M: int >= 1 = 8) {{ ranks P; microbatches M; placement {rng.choice(['loop(2)', 'v'])}; {scale} on rank r {{ {text} }} }}"
    return f"schedule s(P: int >= 1 = 2, M: int >= 1 = 8) {{ ranks P; microbatches M; placement linear; {scale} on rank r {{ {body(rng)} }} }}"


def changed(rng, text):
    """The text with one change behind `on rank`."""
    changes = [
        (r"(?<![\w.])\d+(?![\w.])", lambda old: str(max(0, int(old) + rng.choice([-1, 1])))),
        (r"\bM\b", lambda old: rng.choice(["(M - 1)", "(M + 1)", "(M / 2)", "max(M - 3, 1)"])),
        (ACTION, lambda old: f"if {condition(rng)} {{ {old} }} else {{ {old} }}"),
        (ACTION, lambda old: old + " " + old),
    ]
    pattern, change = rng.choice(changes)
    places = list(re.finditer(pattern, text[text.find("on rank") :]))
    if not places:
        return text
    place, begin = rng.choice(places), text.find("on rank")
    return text[: begin + place.start()] + change(place.group()) + text[begin + place.end() :]


def costs(rng, numbers=(0.25, 0.5, 1, 1, 1.25, 2, 3)):
    result = {}
    for kind in rng.choice(["", "F", "FB", "FIW", "FBIW"]):
        result[kind] = rng.choice(numbers)
    if rng.random() < 0.35:
        result["latency"] = rng.choice([0.05, 0.1, 0.3, 1, 3])
    if rng.random() < 0.3:
        result |= {"bytes": rng.choice([1, 8, 10]), "bandwidth": rng.choice([10, 64, 3])}
    if rng.random() < 0.3:
        result |= rng.choice([{"group.sum": 0.8}, {"group.max": 1}, {"overlap": 2.5}])
    if rng.random() < 0.3:
        result |= {"memory.F": rng.choice([1, 2, 0.5]), "static": rng.choice([0, 1, 3])}
        if rng.random() < 0.4:
            result |= {"memory.I": -0.5, "memory.W": -0.25}
    if rng.random() < 0.2:
        result["limit"] = rng.choice([2, 4, 8, 30, 100])
    return [f"--cost={name}={value}" for name, value in result.items()]


def messages(rng):
    """Transports, orders of messages, and fusions."""
    given = []
    if rng.random() < 0.8:
        some = "data stream rendezvous buffered buffered:1 buffered:2 stream-per-peer stream-per-edge posted".split()
        given.append("--transport=" + ",".join(rng.sample(some, rng.choice([1, 1, 1, 2]))))
    if rng.random() < 0.2:
        given.append("--comm-order=" + rng.choice(["sweep", "ready-time", "late", "best"]))
    elif rng.random() < 0.15:
        given.append("--fuse=" + rng.choice(["batch", "megatron", "megatron-even-odd"]))
    return given


def rules(rng):
    some = ["recompute", f"recompute({rng.randint(1, 3)}, {rng.randint(1, 2)})", f"offload({rng.randint(1, 2)})", "release", "fsdp", "reduce_grads", "step"]
    return [f"--with={rule}" for rule in rng.sample(some, rng.choice([0, 0, 0, 0, 1, 1, 2]))]


def schedule(rng):
    """A text, or the name of a schedule of the library, and what it is given."""
    draw = rng.random()
    if draw < 0.5:
        text, p = own(rng), rng.randint(1, 5)
        given = []
    else:
        name, p = rng.choice(NAMES), rng.choice([2, 2, 4, 4, 3, 6])
        text = (LIBRARY / f"{name}.pp").read_text(encoding="utf-8")
        given = [f"--schedule={name}"]
        if draw > 0.85:
            text = changed(rng, text)
    return text, [f"-DP={p}", *given, *costs(rng), *messages(rng), *rules(rng)]
