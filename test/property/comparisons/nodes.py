"""Actions that are made of nodes: the order in which these are launched, and the times that follow from it (docs/stage-graphs.md)."""

import json
import re
from fractions import Fraction

from generate import add_layers, schedule
from oracle.check import violations
from oracle.program import Costs
from oracle.run import row_times
from program_json import from_json
from tools import expect, expect_equal, fraction

COVERAGE = {"runs": 2, "groups": 8}
NODE = re.compile(r"(\w+):(\d+)([A-Z]+)(\d+)\.(?:L(\d+)\.)?(\w+)")


def compare(draw, tools, tally):
    case = schedule(draw, sound=True, costed=False, plain=True)
    if len(case.head.pipes) > 1 or case.expand()[1] or violations(case.expand()[0], case.costs()):
        return
    stages = add_layers(draw, case)
    file = tools.file("random.pp", case.source())
    done = tools.ppcc(file, "--comm-order=sweep", "--transport=buffered")
    expect(done.returncode == 0 or "[E0766]" in done.stderr, "refused", done.stderr)
    if done.returncode:
        return
    program = from_json(json.loads(done.stdout))
    done = tools.ppcc(file, "--comm-order=none", "--emit=nodes")
    expect(done.returncode == 0, "no nodes", done.stderr)
    takes = {}
    for rank, line in zip(program.without_messages().items, done.stdout.splitlines()):
        launches = re.findall(r"\{([^}]*)\}", line)
        expect_equal(len(launches), len(rank), "another number of items with nodes")
        for item, launched in zip(rank, launches):
            takes[item] = list_schedule_time(item, [NODE.match(word).groups() for word in launched.split()], stages, launched)
            tally["groups"] += len(item) > 1
    costs = NodeCosts(program.head, takes)
    for transport in draw.subset(["buffered", "stream", "rendezvous", "posted"], 0.5) + [None]:
        one = program if transport else program.without_messages()
        times = row_times(one, transport, costs)
        options = [f"--transport={transport}", "--comm-order=sweep"] if transport else ["--comm-order=none"]
        done = tools.ppcc(file, *options, "--emit=times")
        if times is None:
            expect(done.returncode == 1, "times of what hangs")
            continue
        expect(done.returncode == 0, "no times of what ends", done.stderr)
        rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
        got = [(int(rank), cell, fraction(start), fraction(end)) for rank, cell, _, start, end in rows]
        expect_equal(got, [(key[0], str(one.row(key)), *times[key]) for key in one.row_ids], "other times of nodes")
        report = json.loads(tools.ppcc(file, *options, "--emit=report-json").stdout, parse_float=Fraction)
        expect(report["resource_bound"] <= min(report["makespan"], report["bound"]), "a resource bound that this order beats",
               f"{report['resource_bound']}, but the makespan is {report['makespan']}, by data {report['bound']}")
        tally["runs"] += 1


class NodeCosts(Costs):
    """An action or a group takes what its nodes take on the lanes."""

    def __init__(self, head, takes):
        super().__init__(head)
        self.takes = takes

    def group_time(self, rows):
        return self.takes[tuple(rows)]


def node_graph(row, layers):
    """From each node of an action to those that it needs; its lane and time. A node is mnemonic, name and layer."""
    kind, needs, lanes, costs, last = row.kind.mnemonic, {}, {}, {}, None
    for number, layer in list(enumerate(layers))[::1 if kind == "F" else -1]:
        for i, chain in enumerate(layer.chains[kind]):
            for before, node in zip([None, *chain], chain):
                key = (*node, number)
                needs.setdefault(key, set())
                lanes[key], costs[key] = layer.lanes[kind, node], layer.costs.get(node, 0)
                if before is not None:
                    needs[key].add((*before, number))
                elif i == 0 and last is not None:
                    needs[key].add(last)  # The way of the data: from the last node of the layer before.
        last = (*layer.chains[kind][0][-1], number)
    return needs, lanes, costs


def list_schedule_time(item, launched, stages, text):
    """What an item takes whose nodes are launched in this order; it must be that of list scheduling."""
    needs, lanes, costs = {}, {}, {}
    for row in item:
        own = node_graph(row, stages[row.stage])
        for of_all, of_row in zip((needs, lanes, costs), own):
            of_all.update({(row.stage, row.mb, *key): value for key, value in of_row.items()})
        needs.update({(row.stage, row.mb, *key): {(row.stage, row.mb, *one) for one in value} for key, value in own[0].items()})
    order = [find_node(needs, stages, *one) for one in launched]
    expect_equal(sorted(order), sorted(needs), "other nodes are launched")
    path_lengths = {}

    def path_length(node):
        """The longest way from a node to the end."""
        if node not in path_lengths:
            path_lengths[node] = costs[node] + max([path_length(other) for other, reads in needs.items() if node in reads], default=0)
        return path_lengths[node]

    ends, free = {}, {}

    def start(node):
        return max([free.get(lanes[node], 0), *(ends[one] for one in needs[node])])

    for node in order:
        ready = [one for one in needs if one not in ends and needs[one] <= set(ends)]
        expect(node in ready, "a node is launched before what it needs", text)
        first = min(map(start, ready))
        best = max(path_length(one) for one in ready if start(one) == first)
        expect(start(node) == first and path_length(node) == best, "a node is launched before one with a longer way to the end", text)
        ends[node] = free[lanes[node]] = start(node) + costs[node]
    return max(ends.values())


def find_node(needs, stages, lane, stage, mnemonic, mb, number, name):
    """The node that a word of --emit=nodes means: layers have numbers when there are several of their kind in some stage."""
    fits = [node for node in needs if node[:4] == (int(stage), int(mb), mnemonic, name)]
    layers = stages[int(stage)]
    numbered = [i for i, layer in enumerate(stages[int(stage)]) if any(one.count(layer) > 1 for one in stages)]
    fits = [node for node in fits if (node[4] not in numbered if number is None else node[4] == numbered[int(number)])]
    expect(fits, "an unknown node", f"{stage}{mnemonic}{mb}.{number}.{name}")
    return fits[0]
