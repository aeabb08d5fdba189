"""Runs small programs by the clock, slowly and plainly, without a line of the compiler."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Spin"))
from checker import TRANSPORTS, Play, Program  # noqa: E402

PARTS = {"F": "F", "I": "I", "W": "W", "B": "IW"}


class Costs:
    """Whole numbers, in the form of a file of costs: `cost` by kind and stage, `overlap`, `latency` by stage."""

    def __init__(self, table):
        self.table = table

    def kind(self, letters, stage):
        if letters in self.table.get("cost", {}):
            value = self.table["cost"][letters]
            return value[stage] if isinstance(value, list) else value
        return 1 if len(PARTS[letters]) == 1 else sum(self.kind(part, stage) for part in PARTS[letters])

    def items(self, cells):
        """What compute actions take that run together."""
        times = [self.kind(cell.kind, cell.stage) for cell in cells]
        if len(times) < 2:
            return sum(times)
        if "overlap" in self.table.get("cost", {}):
            return self.table["cost"]["overlap"]
        rule = self.table.get("group", {"sum": 1})
        return rule["sum"] * sum(times) if "sum" in rule else rule["max"] * max(times)

    def message(self, one, other):
        """On its way between two stages."""
        value = self.table.get("latency", 0)
        return value[min(one, other)] if isinstance(value, list) else value


class Clock(Play):
    """A run in which everything happens as soon as it can. Looks at all actions at every moment at which one ends."""

    def __init__(self, program, transport, costs):
        super().__init__(program, TRANSPORTS[transport or "stream"])
        self.costs, self.alone = costs, transport is None
        self.start, self.through, self.now = {}, {}, 0

    def run(self):
        """From (rank, item, member) to its start and end; None when something never ends."""
        while True:
            while self.advance():
                pass
            later = [time for time in self.moments() if time > self.now]
            if not later:
                break
            self.now = min(later)
        if self.stuck():
            return None
        return {key: (self.start[key], max(self.through[other] for other in part))
                for key, part in self.part_of.items()}

    def moments(self):
        """When something may change."""
        yield from self.through.values()
        if self.alone:
            for key, time in self.through.items():
                for stage in range(self.program.stages):
                    yield time + self.costs.message(self.cell(key).stage, stage)

    def advance(self):
        """Whether anything happens now."""
        ended = {key for key, time in self.through.items() if time <= self.now} - self.ended
        self.ended |= ended
        started = any([self.try_start(queue) for queue in list(self.queues)])
        return bool(ended) | started | any([self.try_pass(key) for key in self.started - set(self.through)])

    def try_start(self, queue):
        part = self.head(queue)
        if part is None or part[0] in self.started:
            return False
        if any(self.head(other) is not part for other in self.queues_of[part[0]]):
            return False
        if not all(self.may_start(key) for key in part):
            return False
        computes = [key for key in part if not self.cell(key).is_message]
        end = self.now + self.costs.items([self.cell(key) for key in computes])
        self.started.update(part)
        self.start.update((key, self.now) for key in part)
        self.through.update((key, end) for key in computes)
        return True

    def has_data(self, key):
        if not self.alone:
            return super().has_data(key)
        cell = self.cell(key)
        for slot, stage in self.program.inputs(cell):
            home = self.program.home[stage, cell.mb]
            delay = 0 if home == key[0] else self.costs.message(stage, cell.stage)
            makers = self.made[home, slot, stage, cell.mb]
            if not any(self.ended.issuperset(self.part_of[maker]) and
                       max(self.through[other] for other in self.part_of[maker]) + delay <= self.now
                       for maker in makers):
                return False
        return True

    def try_pass(self, key):
        """Lets a message that has started go on if it can."""
        cell = self.cell(key)
        way = self.costs.message(cell.stage, cell.other)
        pair = self.program.pair(key[0], cell)
        sends, receives, capacity = self.sends[pair], self.receives[pair], self.transport.capacity
        number = (sends if cell.is_send else receives).index(key)
        if capacity is None:
            if sends[number] in self.started and receives[number] in self.started:
                self.through[key] = self.now + way
        elif cell.is_send:
            if number < capacity or receives[number - capacity] in self.ended:
                self.through[key] = self.now
        elif sends[number] in self.through:
            self.through[key] = max(self.now, self.through[sends[number]] + way)
        return key in self.through


def simulate(ranks, transport, costs):
    """The times of all actions by (rank, item, member) on a transport, or by data alone for None; None when it hangs."""
    if transport is None:
        ranks = [[item for item in rank if not item[0].is_message] for rank in ranks]
    return Clock(Program(ranks), transport, Costs(costs)).run()
