"""forge_optimality.py CHECKER LOAD CASES: claims more than two certificates of optima show; all of it must be refused."""
import copy
import json
import subprocess
import sys

checker, *paths = sys.argv[1:]
load, cases = (json.load(open(path, encoding="utf-8")) for path in paths)
forgeries = {}


def forge(name, of):
    forgeries[name] = copy.deepcopy(of)
    return forgeries[name]


for kind, good in (("load", load), ("cases", cases)):
    for key, by in (("bound", 1), ("makespan", -1), ("makespan", 1), ("version", 1)):
        forge(f"{kind}: another {key}, {by}", good)[key] += by
    forge(f"{kind}: both larger", good).update(bound=good["bound"] + 1, makespan=good["makespan"] + 1)
    for i, row in enumerate(good["order"]):
        forge(f"{kind}: rank {i} does less", good)["order"][i] = row[:-2]
        forge(f"{kind}: rank {i} does more", good)["order"][i] = row + row[-2:]
        forge(f"{kind}: rank {i} begins earlier", good)["order"][i][-1] -= 1
        forge(f"{kind}: rank {i} swaps two", good)["order"][i][-4:] = row[-2:] + row[-4:-2]
    forge(f"{kind}: two ranks swap", good)["order"][:2] = good["order"][1::-1]
    for i, limit in enumerate(good["limits"]):
        forge(f"{kind}: rank {i} has less room", good)["limits"][i] = 0
    for i, action in enumerate(good["actions"]):
        forge(f"{kind}: action {i} waits longer", good)["actions"][i]["waits"] = [[source, latency + 1000] for source, latency in action["waits"]] or [[i, 0]]
        forge(f"{kind}: action {i} is of another rank", good)["actions"][i]["rank"] = (action["rank"] + 1) % len(good["limits"])
        forge(f"{kind}: action {i} runs more often", good)["actions"][i]["count"] += 1
        forge(f"{kind}: action {i} is missing", good)["actions"].pop(i)
        forge(f"{kind}: action {i} waits for a later one", good)["actions"][i]["waits"].append([i + 1, 0])
    for place in ([], ["actions", 0], ["proof"]):
        file = forge(f"{kind}: a key that nobody reads, in {place}", good)
        for key in place:
            file = file[key]
        file["unknown"] = 1
    for key in good:
        forge(f"{kind}: without {key}", good).pop(key)
forge("a load without limits", load)["limits"] = [None] * len(load["limits"])
forge("of another rank", load)["proof"]["rank"] += 1
forge("of no rank", load)["proof"]["rank"] = len(load["limits"])
rest = forge("of a rank that does nothing", load)
rest["limits"].append(None)
rest["order"].append([])
rest["proof"] = {"rank": len(load["limits"]), "begin": [], "end": [], "chains": []}
rest["bound"] = 10**6
forge("no chain", load)["proof"]["chains"] = []
forge("a chain twice", load)["proof"]["chains"] *= 2
forge("a chain that does not wait", load)["proof"]["chains"][0].reverse()
forge("a chain of what was before", load)["proof"]["chains"].append([0])
forge("chains apart, which fit more often", load)["proof"]["chains"] = [[i] for i in load["proof"]["chains"][0]]
forge("another begin", load)["proof"]["begin"] = []
forge("fewer ranks", cases)["proof"]["ranks"].pop()
forge("no ranks", cases)["proof"]["ranks"] = []
tree = cases["proof"]["cases"]
forge("one case", cases)["proof"]["cases"] = [[]]
forge("no case", cases)["proof"]["cases"] = []
for i, case in enumerate(tree[:20]):
    forge(f"without case {i}", cases)["proof"]["cases"].pop(i)
    forge(f"case {i} twice", cases)["proof"]["cases"].insert(i, case)
    if case:
        forge(f"a leaf for case {i}", cases)["proof"]["cases"][i] = []
        forge(f"a run that is not there in case {i}", cases)["proof"]["cases"][i][1] = 99
still = forge("what takes no time waits for what comes after it", load)
still.update(limits=[None], makespan=1, bound=1, order=[[1, 0, 0, 0, 2, 0]], proof={"rank": 0, "begin": [], "end": [], "chains": []})
still["actions"] = [{"name": "x", "rank": 0, "count": 1, "time": time, "takes": 0, "frees": 0, "waits": waits} for time, waits in ((0, []), (0, [[0, 0]]), (1, []))]
for name, forged in forgeries.items():
    done = subprocess.run([checker, "-"], input=json.dumps(forged), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and not done.stdout, (name, done)
print(f"{len(forgeries)} forgeries refused")
