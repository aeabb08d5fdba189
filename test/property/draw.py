"""Random choices that can be replayed, and made smaller: each is a number, and 0 is the simplest."""

import contextlib
import random
import time


class Draw:
    """Chooses by a seed, or as a list says; what is not in the list is 0."""

    def __init__(self, seed=None, choices=None):
        self.random = None if choices is not None else random.Random(seed)
        self.replayed, self.choices = choices or [], []
        self.spans = []  # From the first choice of what belongs together to the one behind its last.

    def below(self, count):
        """A number from 0 to count - 1."""
        if self.random:
            choice = self.random.randrange(count)
        else:
            choice = self.replayed[len(self.choices)] if len(self.choices) < len(self.replayed) else 0
            choice = min(choice, count - 1)
        self.choices.append(choice)
        return choice

    def integer(self, low, high):
        return low + self.below(high - low + 1)

    def chance(self, probability):
        return self.below(100) >= 100 * (1 - probability)

    def pick(self, values):
        """One of them; the first is the simplest."""
        return values[self.below(len(values))]

    def weighted(self, pairs):
        """One of the first members of pairs, with the weights that are the second."""
        offset = self.below(sum(weight for _, weight in pairs))
        for value, weight in pairs:
            if offset < weight:
                return value
            offset -= weight

    def subset(self, values, probability):
        return [value for value in values if self.chance(probability)]

    @contextlib.contextmanager
    def span(self):
        """What is chosen meanwhile belongs together, and can be left out together."""
        begin = len(self.choices)
        yield
        self.spans.append((begin, len(self.choices)))

    def spans_of(self, count):
        """So many turns, each a span."""
        for _ in range(count):
            with self.span():
                yield

    def repeatedly(self, probability):
        """Turns as long as chance wants another one."""
        while True:
            with self.span():
                if not self.chance(probability):
                    return
                yield


def shrink(draw, fails, seconds):
    """The simplest choices that are found in so many seconds of which `fails` still holds: it makes a Draw of a list, and gives
    it back if it does."""
    end = time.monotonic() + seconds
    best = draw

    def accept_if_simpler(candidate):
        nonlocal best
        if time.monotonic() > end or candidate == best.choices:
            return False
        taken = fails(candidate)
        if taken is None or (len(taken.choices), taken.choices) >= (len(best.choices), best.choices):
            return False
        best = taken
        return True

    moved = True
    while moved and time.monotonic() < end:
        moved = False
        for begin, stop in sorted(best.spans, key=lambda span: span[0] - span[1]):  # The longest first.
            moved |= accept_if_simpler(best.choices[:begin] + best.choices[stop:])
            moved |= accept_if_simpler(best.choices[:begin] + [0] * (stop - begin) + best.choices[stop:])
        for size in (8, 3, 2, 1):
            for at in range(len(best.choices) - size, -1, -size):
                moved |= accept_if_simpler(best.choices[:at] + best.choices[at + size:])
        for at in range(len(best.choices)):
            for smaller in simpler_values(best.choices, at):
                if accept_if_simpler(best.choices[:at] + [smaller] + best.choices[at + 1:]):
                    moved = True
                    break
    return best


def simpler_values(choices, at):
    """Simpler values of one choice."""
    value = choices[at] if at < len(choices) else 0
    return sorted({0, value // 2, value - 1}) if value else []
