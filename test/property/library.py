"""Small programs of the schedule library."""

import json

from program_json import from_json
from tools import expect

SMALL = [
    ("gpipe", {"P": 2, "M": 3}),
    ("gpipe", {"P": 3, "M": 2}),
    ("one_f_one_b", {"P": 2, "M": 3}),
    ("one_f_one_b", {"P": 3, "M": 3}),
    ("one_f_one_b", {"P": 4, "M": 2}),
    ("one_f_one_b", {"P": 4, "M": 3, "forward_only": "true"}),
    ("interleaved_1f1b", {"P": 2, "M": 2}),
    ("interleaved_1f1b", {"P": 3, "M": 3}),
    ("one_f_one_b_overlap", {"P": 2, "M": 4}),
    ("interleaved_1f1b_overlap", {"P": 2, "M": 2}),
    ("looped_bfs", {"P": 2, "M": 2, "V": 2}),
    ("zb1p", {"P": 3, "M": 3}),
    ("zb_h1", {"P": 2, "M": 3}),
    ("zb_h2", {"P": 2, "M": 3}),
    ("zero_bubble_v", {"P": 2, "M": 3}),
    ("zero_bubble_v", {"P": 3, "M": 2}),
    ("hanayo", {"P": 2, "M": 2}),
    ("chimera", {"P": 2, "M": 2}),
    ("chimera", {"P": 4, "M": 4}),
    ("dualpipe", {"P": 2, "M": 4}),
    ("dualpipe_v", {"P": 2, "M": 4}),
]
FUSED = [  # With their messages in batches, or as Megatron-LM posts them.
    ("one_f_one_b", {"P": 3, "M": 3}, ["--fuse=megatron"]),
    ("one_f_one_b", {"P": 3, "M": 3}, ["--fuse=megatron-even-odd"]),
    ("interleaved_1f1b", {"P": 2, "M": 2}, ["--fuse=megatron"]),
    ("interleaved_1f1b", {"P": 2, "M": 4}, ["--fuse=megatron-even-odd"]),
    ("one_f_one_b", {"P": 2, "M": 3}, ["--comm-order=late", "--fuse=batch"]),
    ("gpipe", {"P": 3, "M": 2}, ["--fuse=batch"]),
    ("zb1p", {"P": 2, "M": 3}, ["--fuse=batch"]),
    ("dualpipe_v", {"P": 2, "M": 4}, ["--fuse=batch"]),
]


def compile_schedule(tools, schedule, params, options=("--comm-order=sweep",)):
    """Its name, the JSON of its program, and the program."""
    defines = [f"-D{name}={value}" for name, value in params.items()]
    done = tools.ppcc(schedule, *defines, *options)
    expect(done.returncode == 0, "the library does not compile", done.stderr)
    data = json.loads(done.stdout)
    words = [schedule, *(f"{key}{value}" for key, value in params.items()), *(option.split("=")[1] for option in options)]
    return "-".join(words), data, from_json(data)
