"""forge.py CHECKER CERTIFICATE: claims more than the certificate shows, several fields at a time; all of it must be refused."""
import copy
import json
import subprocess
import sys

checker, path = sys.argv[1:]
good = json.load(open(path, encoding="utf-8"))
forgeries = {}


def forge(name):
    forgeries[name] = copy.deepcopy(good)
    return forgeries[name], forgeries[name]["ranges"][-1]


three = ["stream", "rendezvous", "buffered:1"]
file, last = forge("three transports without evidence")
last.update(transports=three, evidence=None, reason="by data dependences; valid with the chosen order of messages")
file, last = forge("three transports, with evidence of one")
last.update(transports=three, reason="by data; as above")
file, last = forge("a transport that nobody knows, in the claim alone")
last["transports"].append("foo")
for name in ("foo", "buffered:0", "buffered:99999999999999999999", ""):
    file, last = forge(f"a transport called `{name}`, everywhere")
    last["transports"] = ["data", name]
    last["makespan"]["on"] = name
    last["evidence"]["orders"][1]["transport"] = name
file, last = forge("a makespan of 1, with times of 0")
last["makespan"].update(slope="0", intercept="1")
last["evidence"]["times"] = [[0] * len(row) for row in last["evidence"]["times"]]
file, last = forge("limits that are kept, by no costs of memory")
file["models"][0].update(limits="1", memory={"F": "1"}, static_memory="0")
last.update(fits=True)
file, last = forge("limits where there are none")
last["fits"] = True
file, last = forge("other verdicts than there are")
last["verdict"] = "valid by data"
file, last = forge("right without a word of where")
last.update(transports=[], makespan=None)
file, last = forge("an order that says nothing")
for shown in last["evidence"]["orders"]:
    shown["order"] = [[0] * len(row) for row in shown["order"]]
for key in ("data", "with_messages"):
    file, last = forge(f"a row less, {key}")
    last["evidence"][key]["actions"][0].pop()
file, last = forge("numbers that lie in no range")
file["ranges"].pop()
file, last = forge("numbers that lie in two ranges")
file["ranges"].append(last)
file, last = forge("ranges that never end")
file["ranges"] = [dict(last, verdict="excluded", evidence=None, makespan=None, **{"modulus": 2**31 - 1, "residue": 2**31 - 2, "from": 1, "to": 2**60})] * 2
file, last = forge("a version that was")
file["version"] = 1
file, last = forge("rows with messages of fewer microbatches than the data has, which has no rows")
one = file["ranges"][0]
one.update(to=None, transports=["stream"])
one["evidence"].update(data={"microbatches": [[0, 0, 1, 1]], "actions": [[], []]}, orders=one["evidence"]["orders"][1:])
file["ranges"] = [one]
file, last = forge("data in another order than the rows with messages")
for rank in file["ranges"][1]["evidence"]["data"]["actions"]:
    rank[-2][3], rank[-1][3] = rank[-1][3], rank[-2][3]
file, last = forge("a transport that counts twice")
last["transports"].append("stream")
for key, value in {"declared": [{"name": "S", "per": "stage", "lane": 0, "required": "true"}],
                   "groups": [{"members": [[2**32, 0, 1], [2**32 + 1, 0, 1]], "time": "3"}],
                   "links": [{"pipe": 0, "from": 0, "to": 1, "time": time} for time in ("1", "2")]}.items():
    file, last = forge(f"a model whose {key} are not read as they are printed")
    file["models"][0][key] = value
file, last = forge("no model")
file["models"] = []


def objects(value, place=()):
    """The places of all objects, but for the parameters, which may have any name."""
    if isinstance(value, dict):
        yield place
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key != "params":
            yield from objects(inner, (*place, key))


for place in objects(good):
    file, _ = forge(f"a key that nobody reads, in {place}")
    for key in place:
        file = file[key]
    file["unknown"] = 1

for name, forged in forgeries.items():
    done = subprocess.run([checker, "-"], input=json.dumps(forged), capture_output=True, text=True, timeout=10)
    assert done.returncode == 1, (name, done)
for text in ("", "[" * 100000, "{}", "[]", "1", json.dumps(good)[:-50]):
    done = subprocess.run([checker, "-"], input=text, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1 and done.stderr.startswith("error: "), (text[:50], done)
done = subprocess.run([checker, "/dev/zero"], capture_output=True, text=True, timeout=60)
assert done.returncode == 1 and "it has more than 1 GiB" in done.stderr, done
print(f"{len(forgeries)} forgeries refused")
