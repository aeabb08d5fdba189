"""Writes a program of two ranks whose actions and messages are in four groups of as many members as asked for."""
import sys

N = int(sys.argv[1])


def group(cell):
    return "(" + "; ".join(f"{cell}{i}" for i in range(N)) + ")"


print(f"""program {{
  "ranks": 2,
  "backward": false,
  "pipes": [{{"name": "main", "microbatches": [0, {N}], "rank_of_stage": [0, 1], "skip_edges": []}}]
}}
rank 0 {{ {group("0F")} {group("0SEND_F")} }}
rank 1 {{ {group("1RECV_F")} {group("1F")} }}""")
