#!/usr/bin/env python3
"""Interleaved 1F1B with sends and receives in plain Python, written as frameworks write it: something to run beside
ppcc. Prints the number of actions. Usage: python_baseline.py P V M"""
import sys


def compute(P, V, M, rank):
    total, group = M * V, P
    warmup = min(total, 2 * (P - 1 - rank) + (V - 1) * group)

    def chunk(k):
        return k % (group * V) // min(group, M - k // (group * V) * group)

    forwards, backwards = [0] * V, [0] * V
    actions = []

    def forward(k):
        c = chunk(k)
        actions.append((c * P + rank, "F", forwards[c]))
        forwards[c] += 1

    def backward(k):
        c = V - 1 - chunk(k)
        actions.append((c * P + rank, "B", backwards[c]))
        backwards[c] += 1

    for k in range(warmup):
        forward(k)
    for k in range(total - warmup):
        forward(warmup + k)
        backward(k)
    for k in range(total - warmup, total):
        backward(k)
    return actions


def with_messages(P, V, computes):
    stages = P * V
    out = [[] for _ in range(P)]
    ready = [set() for _ in range(P)]
    position = [0] * P
    left = sum(map(len, computes))
    while left:
        before = left
        for rank in range(P):
            if position[rank] == len(computes[rank]):
                continue
            stage, kind, mb = computes[rank][position[rank]]
            step = 1 if kind == "F" else -1
            first = stage == 0 if kind == "F" else stage == stages - 1
            if not first and (stage, kind, mb) not in ready[rank]:
                continue
            out[rank].append((stage, kind, mb))
            position[rank] += 1
            left -= 1
            reader = stage + step
            if 0 <= reader < stages:
                if reader % P != rank:
                    out[rank].append((stage, "SEND_" + kind, mb))
                    out[reader % P].append((reader, "RECV_" + kind, mb))
                ready[reader % P].add((reader, kind, mb))
        assert left < before, "deadlock"
    return out


P, V, M = map(int, sys.argv[1:])
print(sum(map(len, with_messages(P, V, [compute(P, V, M, rank) for rank in range(P)]))))
