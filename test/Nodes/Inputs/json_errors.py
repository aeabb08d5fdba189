"""Breaks the nodes of a program at one place after another: ppcc must refuse each with its own reason.
Usage: json_errors.py PPCC PROGRAM.json"""
import subprocess
import sys
from pathlib import Path

ROW = "`nodes` must be lists of kind, name, lane, layer, and the earlier nodes that the node needs [E0671]"
PLACE = "`a pattern` must be lists of kind, name, and 1 for `last`, or 0 [E0671]"
CASES = [  # What is replaced, by what, and what ppcc says.
    ('"nodes": {"lanes"', '"nodes": 7, "x": {"lanes"', "`nodes` must be an object [E0671]"),
    ('"lanes": ["comp","comm"]', '"lanes": ["comp"]', "`nodes` must be made of the 1 lanes [E0671]"),
    ('"lanes": ["comp","comm"]', '"lanes": []', "`nodes` must be made of the 0 lanes [E0671]"),
    ('"lanes": ["comp","comm"]', '"lanes": ["comp", "a b"]', "`lanes` must be a list of words: letters, digits and underscores [E0671]"),
    ('"lanes": ["comp","comm"]', '"lanes": ["comp", "a:b"]', "`lanes` must be a list of words: letters, digits and underscores [E0671]"),
    ('"names": ["a","b","loss"]', '"names": ["a","b.c","loss"]', "`names` must be a list of words: letters, digits and underscores [E0671]"),
    ("[0,0,0,0]", "[0,4294967296,0,0]", ROW),
    ('"lanes": ["comp","comm"]', '"lanes": {}', "`lanes` must be a list [E0671]"),
    ('"names": ["a","b","loss"]', '"names": ["a","b"]', "`nodes` must be made of the 2 names [E0671]"),
    ('{"kind": 0, "layers": 2', '{"kind": 8, "layers": 2', "`kind` must be an integer from 0 to 7 [E0671]"),
    ('{"kind": 0, "layers": 2', '{"kind": 4, "layers": 2', "`kind` must be a compute action [E0671]"),
    ('{"kind": 0, "layers": 2', '{"kind": 0, "layers": 1', "`layer` must be below the 1 layers of the graph [E0671]"),
    ('{"kind": 0, "layers": 2', '{"kind": 0, "layers": -1', "`layers` must be an integer from 0 to 1048576 [E0671]"),
    ('{"kind": 0, "layers": 2', '{"kind": 0, "layers": 1048576', "more than 1048576 layers and nodes of graphs [E0"),
    ("[0,0,0,0]", "[0,0,0,0,0]", ROW),
    ("[0,0,0,0]", "[0,0,0]", ROW),
    ("[0,0,0,0]", "[0,0,2,0]", "`nodes` must be made of the 2 lanes [E0671]"),
    ("[0,0,0,0]", "[0,3,0,0]", "`nodes` must be made of the 3 names [E0671]"),
    ("[0,0,0,0]", "[4,0,0,0]", ROW),
    ("[0,0,0,0]", '["F",0,0,0]', ROW),
    ('"pipes": [', '"pipes": [], "x": [', "`uses` must be empty: the program has no pipe [E0671]"),
    ('"pipe": 0', '"pipe": 1', "`pipe` must be an integer from 0 to 0 [E0671]"),
    ('"graphs": [0]', '"graphs": [2]', "`graphs` must be an integer from -1 to 1 [E0671]"),
    ('"graphs": [0]', '"graphs": [1]', "`graphs` must be graphs of the same kind [E0671]"),
    ('"graphs": [0]', '"graphs": [0,0]', "`graphs` must be one graph, or 1, one per stage [E0671]"),
    ('"uses": [', '"uses": [{"kind": 1, "pipe": 0, "graphs": [1]},', "`uses` must be one for each kind and pipe [E0671]"),
    ('[0,2,0,-1,3]]}', '[0,2,0,-1,3]], "costs": [1,2,3,4]}', "`costs` must be a number for each node [E0671]"),
    ('[0,2,0,-1,3]]}', '[0,2,0,-1,3]], "costs": [1,2,3,4,"x"]}', "`costs` must be a number from 0 to 10^9 [E0671]"),
    ('[0,2,0,-1,3]]}', '[0,2,0,-1,3]], "costs": [1,2,3,4,-1]}', "`costs` must be a number from 0 to 10^9 [E0671]"),
    ('"before": []', '"before": [[0,2,0]]', "the pattern has two places for `F.loss` of graph 0 [E0707]"),
    ('"layer": [[1,1,0],[0,0,0]', '"layer": [[0,1,0],[0,0,0]', "the pattern has two places for `F.L0.b` of graph 0 [E0707]"),
    ('"after": [[0,2,0]]', '"after": []', "the pattern does not place `F.loss` of graph 0 [E0707]"),
    ('"after": [[0,2,0]]', '"after": [[0,2]]', PLACE),
    ('"after": [[0,2,0]]', '"after": [[8,2,0]]', PLACE),
    ('"after": [[0,2,0]]', '"after": [[0,3,0]]', "`nodes` must be made of the 3 names [E0671]"),
    ('"after": [[0,2,0]]', '"after": [[0,4294967298,0]]', PLACE),
    ('"patterns": [', '"patterns": [7,', "`patterns` must be an object [E0671]"),
]


def main():
    ppcc, program = sys.argv[1], Path(sys.argv[2]).read_text()
    wrong = 0
    for old, new, message in CASES:
        assert old in program, old
        text = program.replace(old, new, 1)
        done = subprocess.run([ppcc, "-", "--check"], input=text, capture_output=True, text=True, timeout=60)
        if done.returncode != 1 or message not in done.stderr:
            wrong += 1
            print(f"{old} -> {new}: expected {message}, got {done.returncode}: {done.stderr}")
    print(f"{len(CASES) - wrong} of {len(CASES)} refused")


main()
