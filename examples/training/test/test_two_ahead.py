import ppcc

FILE = "schedules/two_ahead.pp"


def test_that_it_is_as_fast_as_it_was() -> None:
    assert ppcc.compile(FILE, P=4, M=8).simulate({"F": 1, "B": 2}).makespan == 33


def test_every_number_of_microbatches() -> None:
    assert ppcc.prove(FILE, P=4).valid
