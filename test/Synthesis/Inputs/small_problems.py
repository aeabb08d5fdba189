"""Small random problems for `ppcc synthesize`."""


def problem(rng):
    placement = rng.choice(["linear", "linear", "v", "loop:2", "wave:2"])
    chunks = 1 if placement == "linear" else 2
    ranks = rng.choice([2, 3, 4] if chunks == 1 else [2, 3])
    microbatches = rng.choice([3, 4, 5, 6] if chunks == 1 else [2, 3, 4])
    there, back = list(range(ranks)), list(reversed(range(ranks)))
    rank_of = there if chunks == 1 else there + (there if placement == "loop:2" else back)
    base, uneven = rng.choice([[1, 1, 1], [5, 6, 4], [2, 3, 1], [3, 3, 2]]), rng.random() < 0.4
    times = [[max(1, t + (rng.randint(-1, 2) if uneven else 0)) for t in base] for _ in rank_of]
    memory = rng.choice([(2, 2), (2, 1)])
    limits = [rng.randint(2 * chunks, 2 * chunks * max(2, ranks)) for _ in range(ranks)]
    return placement, rank_of, microbatches, times, rng.choice([0, 0, 1]), memory, limits, rng.random() < 0.25


def options_of(placement, rank_of, microbatches, times, latency, memory, limits, fused):
    """The costs of a problem, and the options beside them."""
    letters = "FB" if fused else "FIW"
    costs = {
        "cost": {letter: [t[p] for t in times] for p, letter in enumerate(letters)},
        "latency": latency,
        "memory": {"F": memory[0], "limit": limits},
    }
    if not fused:
        costs["memory"]["I"] = memory[1] - memory[0]
    return costs, [f"--placement={placement}", f"-DP={max(rank_of) + 1}", f"-DM={microbatches}"] + ["--fused-backward"] * fused
