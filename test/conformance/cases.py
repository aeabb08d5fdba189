"""Judges cases, several at a time, and says which of them fail."""

from concurrent.futures import ThreadPoolExecutor


def failures(cases, check, jobs, name=lambda case: case["id"]):
    """How many cases fail. `check` gives what is wrong with a case, or None, and that is printed."""
    with ThreadPoolExecutor(jobs) as pool:
        problems = list(pool.map(check, cases))
    for case, problem in zip(cases, problems):
        if problem:
            print(f"{name(case)}: {problem}")
    return sum(problem is not None for problem in problems)


def print_summary(cases, failed, more=""):
    """Prints the sum, with `more` behind it. The exit status: without any cases it is a failure, too."""
    print(f"{len(cases) - failed} passed, {failed} failed{more}")
    return 1 if failed or not cases else 0
