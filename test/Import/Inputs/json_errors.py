"""Breaks a program at one place after another: ppcc must refuse each with its own reason. Usage: json_errors.py PPCC"""
import subprocess
import sys

# Where the waits stand, there may be loops.
WAITS = '"waits": [\n[5,7],\n[1,3]\n]'

CASES = [  # What is replaced, by what, and what ppcc says.
    ('"ppcc.program"', '"mine"', ['`format` must be "ppcc.program" [E0671]']),
    ('"version": 1', '"version": 7', ['unsupported format version 7; ppcc reads versions 1, 2 and 3 [E0674]']),
    ('"version": 1', '"version": "1"', ['unsupported format version "1"; ppcc reads versions 1, 2 and 3 [E0674]']),
    ('"ranks": 2,', '', ['the program has no `ranks` [E0672]']),
    ('"name": "main", ', '', ['a pipe has no `name` [E0672]']),
    ('"ranks": 2,', '"ranks": 2, "ranks": 3,', ['`ranks` is given twice [E0673]']),
    ('"ranks": 2,', '"ranks": 2e0,', ['`ranks` must be an integer from 1 to 1048576 [E0671]']),
    ('"ranks": 2,', '"ranks": 2.0,', ['`ranks` must be an integer from 1 to 1048576 [E0671]']),
    ('"ranks": 2,', '"ranks": 99999999999999999999,', ['`ranks` must be an integer from 1 to 1048576 [E0671]']),
    ('"ranks": 2,', '"ranks": 3,', ['`actions` must be a list of 3 lists, one per rank [E0671]']),
    ('"backward": true', '"backward": 1', ['`backward` must be true or false [E0671]']),
    ('{"P": 2', '{"P": [2]', ['`params` must be an object of numbers, booleans and strings [E0671]']),
    ('"mnemonic": "F", "class": "compute"', '"mnemonic": "F", "class": "send"', ['`kinds` must be among F (compute), B (compute)']),
    ('"mnemonic": "F", ', '', ['a kind has no `mnemonic` [E0672]']),
    ('["", ', '[', ['`phases` must be a list that begins with "" [E0671]']),
    ('"microbatches": [0,2]', '"microbatches": [2,0]', ['`microbatches` must be the first, and one past the last [E0671]']),
    ('"microbatches": [0,2]', '"microbatches": [1,0]', ['`microbatches` must be the first, and one past the last [E0671]']),
    ('"microbatches": [0,2]', '"microbatches": [0]', ['`microbatches` must be a list of 2 integers [E0671]']),
    ('"rank_of_stage": [0, 1]', '"rank_of_stage": [0, 2]', ['rank 2 does not exist: the program has 2 [E0675]']),
    ('"rank_of_stage": [0, 1]', '"rank_of_stage": {}', ['`rank_of_stage` must be a list [E0671]']),
    ('"skip_edges": []', '"skip_edges": [[1,2]]', ['`skip_edges` must be pairs of stages, the second more than one beyond the first [E0671]']),
    ('"skip_edges": []', '"skip_edges": [[0,2]]', ['stage 2 does not exist: pipe `main` has 2 [E0675]']),
    ('"pipes": [', '"pipes": [{"name": "main", "microbatches": [1,3], "rank_of_stage": [], "skip_edges": []}, ', ['pipes `main` and `main` share microbatch 1 [E0677]', 'pipes `main` and `main` share their name [E0677]']),
    ('"skip_edges": []', '"skip_edges": [], "gaps": [1]', ['2 stages have no edge from stage 1 to stage 2 to remove [E0341]']),
    ('"skip_edges": []', '"skip_edges": [], "gaps": [-1]', ['`gaps` must be an integer from 0 to 65534 [E0671]']),
    ('"skip_edges": []', '"skip_edges": [], "slices": 0', ['`slices` must be an integer from 1 to 4294967294 [E0671]']),
    ('"skip_edges": []', '"skip_edges": [], "slices": 3', ['2 microbatches are not a multiple of 3 slices [E0343]']),
    ('"skip_edges": []', '"skip_edges": [], "gaps": [0], "tensors": [{"edge": [0,1], "carries": []}]', ['pipe `main` has tensors for the edge 0 -> 1, which does not exist [E0370]']),
    ('"skip_edges": []', '"skip_edges": [], "tensors": [{"edge": [1,0], "carries": []}]', ['`edge` must be two stages, the second beyond the first [E0671]']),
    ('"skip_edges": []', '"skip_edges": [], "tensors": [{"edge": [0,1], "carries": []}, {"edge": [0,1], "carries": []}]', ['`the edge 0 -> 1` is given twice [E0673]']),
    ('"skip_edges": []', '"skip_edges": [], "tensors": [{"edge": [0,1], "shapes": "all", "carries": [{"name": "a b", "type": "f31", "dims": [-2]}]}]', ['`shapes` must be "each" [E0671]', '`name` must be a word, the name of a tensor [E0671]', '`type` must be one of f64, f32', '`dims` must be an integer from -1 to 1099511627776 [E0671]']),
    ('"skip_edges": []', '"skip_edges": [], "tensors": [{"edge": [0,1], "carries": [{"name": "x", "type": "f32", "dims": [-1]}]}]', ['`shapes` must be "each" if a size is -1, and absent otherwise [E0671]']),
    ('"skip_edges": []', '"skip_edges": [], "tensors": [{"edge": [0,1], "shapes": "each", "carries": []}]', ['`shapes` must be "each" if a size is -1, and absent otherwise [E0671]']),
    ('"skip_edges": []', '"skip_edges": [], "tensors": [{}]', ['an edge has no `edge`, `carries` [E0672]']),
    ('"pipes": [', '"pipes": [7, ', ['`a pipe` must be an object [E0671]']),
    ('[[-1,0,0,0], ', '[', ['`sites` must be [-1,0,0,0], and then file, line, column, caller [E0671]']),
    ('[-1,0,0,0], [0,', '[-1,0,0,0], [1,', ['file 1 does not exist: `files` has 1 [E0675]']),
    ('[[-1,0,0,0], ', '[[-1,0,0,0], [0,1,1,4], ', ['site 4 does not exist: `sites` has']),
    ('"preconnect": [[0,1]]', '"preconnect": [[1,0]]', ['`preconnect` must be pairs of ranks, the smaller first [E0671]']),
    ('"preconnect": [[0,1]]', '"preconnect": [[1,1]]', ['`preconnect` must be pairs of ranks, the smaller first [E0671]']),
    ('"preconnect": [[0,1]]', '"preconnect": [[0,1048576]]', ['`preconnect` must be pairs of ranks, the smaller first [E0671]']),
    ('"preconnect": [[0,1]]', '"preconnect": [0,1]', ['`preconnect` must be a list of 2 integers [E0671]'] * 2),
    ('"preconnect": [[0,1]]', '"preconnect": 1', ['`preconnect` must be a list [E0671]']),
    ('"preconnect": [[0,1]]', '"preconnect": [[0,1], [0,2]]', ['rank 2 does not exist: the program has 2 [E0675]']),
    ('"preconnect": [[0,1]]', '"preconnect": [[0,1], [0,1]]', ['`preconnect` lists ranks 0 and 1 twice [E0678]']),
    (WAITS, '"loops": [[]]', ['`loops` must be a list for each rank [E0671]']),
    (WAITS, '"loops": [[[0,1,2]],[]]', ['`loops` must be a list of 4 integers [E0671]']),
    (WAITS, '"loops": [[[0,0,2,1]],[]]', ['`loops` must be the first action, a number of actions, a number of iterations, and what an iteration adds to microbatches [E0671]']),
    (WAITS, '"loops": [[[0,1,0,1]],[]]', ['`loops` must be the first action, a number of actions, a number of iterations, and what an iteration adds to microbatches [E0671]']),
    (WAITS, '"loops": [[[7,2,2,1]],[]]', ['`loops` must be in the order of the actions, apart from each other, within the rank']),
    (WAITS, '"loops": [[[0,2,1,1],[1,1,1,1]],[]]', ['`loops` must be in the order of the actions, apart from each other, within the rank']),
    (WAITS, '"loops": [[[0,1,3,1]],[]]', ['iteration 3 of this loop is at microbatch 2, which is not in pipe `main` [E0615]']),
    (WAITS, '"loops": [[[0,1,900000000,0]],[[0,1,900000000,0]]]', ['more than 10000000 actions [E0668]']),
    ('"stage", "microbatch"', '"microbatch", "stage"', ['`columns` must be kind, pipe, stage, microbatch, peer, phase, group, site [E0671]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,1,-1,2,-1]', ['`actions` must be a list of 8 integers [E0671]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,1,-1,2,-1,"2"]', ['`actions` must be a list of 8 integers [E0671]']),
    ('[1,0,0,1,-1,2,-1,2]', '[256,0,0,1,-1,2,-1,2]', ['`kind` must be from 0 to 255 [E0671]']),
    ('[1,0,0,1,-1,2,-1,2]', '[8,0,0,1,-1,2,-1,2]', ['kind 8 does not exist: `kinds` has 8 [E0675]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,1,0,1,-1,2,-1,2]', ['pipe 1 does not exist: `pipes` has 1 [E0675]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,2,1,-1,2,-1,2]', ['stage 2 does not exist: its pipe has 2 [E0675]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,2,-1,2,-1,2]', ['microbatch 2 does not exist: its pipe has 0 to, not including, 2 [E0675]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,1,1,2,-1,2]', ['`peer` must be -1 for a compute action [E0671]']),
    ('[4,0,0,0,1,', '[4,0,0,0,-1,', ['`peer` must be a stage for a send or receive [E0671]']),
    ('[4,0,0,0,1,', '[4,0,0,0,2,', ['stage 2 does not exist: its pipe has 2 [E0675]']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,1,-1,3,-1,2]', ['phase 3 does not exist: `phases` has']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,1,-1,2,-1,3]', ['site 3 does not exist: `sites` has']),
    ('[1,0,0,1,-1,2,-1,2]', '[1,0,0,1,-1,2,5,2]', ['expected group 0, found group 5 [E0676]']),
    ('"ranks": 2,', '"ranks": 2', ['invalid JSON: expected `,` or `}` [E0670]']),
    ('"ranks": 2,', '"ranks": 02,', ['invalid JSON: expected a number [E0670]']),
    ('"ranks": 2,', 'ranks: 2,', ['invalid JSON: expected a key in double quotes [E0670]']),
    ('"ranks": 2,', '"ranks" 2,', ['invalid JSON: expected `:` [E0670]']),
    ('"ranks": 2,', '"ranks": two,', ['invalid JSON: expected a value [E0670]']),
    ('"gpipe"', '"one\\q"', ['invalid JSON: a string is not UTF-8, or has an escape that JSON does not know [E0670]']),
    (']\n}\n', ']\n}\n}', ['invalid JSON: unexpected text after the last `}` [E0670]']),
    (']\n}\n', ']\n', ['invalid JSON: expected `,` or `}` [E0670]']),
    ('"ranks": 2,', '"ranks": 2, "x": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],', ['invalid JSON: it has more than 64 levels of nesting [E0670]']),
]


def ppcc(*args, **options):
    return subprocess.run([sys.argv[1], *args], capture_output=True, text=True, timeout=60, **options)


whole = ppcc("gpipe", "-D", "P=2", "-D", "M=2", "--comm-order=sweep").stdout
for old, new, messages in CASES:
    assert old in whole, f"{old} is not in the program"
    done = ppcc("-", "--check", input=whole.replace(old, new, 1))
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    assert done.returncode == 1 and len(errors) == len(messages), f"{new}: {errors}"
    for message, error in zip(messages, errors):
        assert message in error and error.startswith("<stdin>:"), f"{new}: {error}"
print(f"{len(CASES)} refused")
