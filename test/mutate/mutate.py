#!/usr/bin/env python3
"""Makes small faults in C++ code, and asks whether a test fails: mutate.py ROOT WORK [PATH...] [--seed N] [--count N].

All of these mutants are in one build, of a copy of the tree; an environment variable chooses one (mutant schemata: Untch, Offutt and
Harrold, 1993). Each test is run once to record which mutants it reaches. A mutant is then run through the tests that reach it, the
quickest first, until one fails or takes four times as long as without it.

Example: number 7 changes `a < b`. The copy has `(mutants::is(7) ? a <= b : a < b)`."""

import argparse
import collections
import dataclasses
import functools
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time

sys.path.append("/usr/lib/llvm-19/build/utils/lit")
import clang.cindex as clang
import lit.discovery
import lit.LitConfig
import lit.worker

Kind = clang.CursorKind
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=",
}
OPERATIONS = {Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.CALL_EXPR}
STATEMENTS = OPERATIONS | {Kind.UNARY_OPERATOR, Kind.UNEXPOSED_EXPR, Kind.BREAK_STMT, Kind.CONTINUE_STMT}
VARIABLES = {Kind.VAR_DECL, Kind.FIELD_DECL, Kind.PARM_DECL}
DECLARATIONS = VARIABLES | {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.FUNCTION_TEMPLATE}
CONSTANTS = {Kind.STATIC_ASSERT, Kind.ENUM_CONSTANT_DECL, Kind.TEMPLATE_NON_TYPE_PARAMETER}
CORE = ["bin/ppcc", "bin/ppcc-check-proof", "ppcc-unit", "ppcc_native"]
HEADER = pathlib.Path(__file__).with_name("Mutant.h")
INCLUDE = f'#include "{HEADER}"\n#line 1\n'.encode()


@dataclasses.dataclass
class Mutant:
    """The bytes [begin, end) of a file, and what stands there instead."""

    path: pathlib.Path  # In the tree.
    line: int
    begin: int
    end: int
    before: str
    after: str
    is_statement: bool  # It is left out, not replaced.
    number: int = -1

    def lines(self):
        return set(range(self.line, self.line + self.before.count("\n") + 1))

    def guarded(self, rest):
        """`rest` is what was written, perhaps with other mutants within."""
        if self.is_statement:
            return f"if (!mutants::is({self.number})) {rest}"
        return f"(mutants::is({self.number}) ? {self.after} : {rest})"


def find_mutants(path, text, unit):
    """All mutants of a file."""
    found = {}

    def extent(cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def written(cursor):
        begin, end = extent(cursor)
        return text[begin:end].decode()

    def add(cursor, after, is_statement=False):
        begin, end = extent(cursor)
        found[begin, end, after] = Mutant(path, cursor.extent.start.line, begin, end, written(cursor), after, is_statement)

    def is_constant(cursor, parent):
        """The compiler evaluates it: no process can reach a mutant in it."""
        if cursor.kind in CONSTANTS or parent.kind == Kind.DECL_REF_EXPR or text[:extent(cursor)[0]].endswith(b"if constexpr ("):
            return True
        begin, end = extent(parent)
        name = parent.location.offset
        # An argument of a template, in the type before a name.
        in_type = parent.kind in DECLARATIONS and begin < name <= end and extent(cursor)[0] < name
        words = text[extent(cursor)[0]:cursor.location.offset].split()
        return in_type or (cursor.kind in DECLARATIONS and (b"constexpr" in words and cursor.kind in VARIABLES or b"consteval" in words))

    def visit(cursor, parent):
        if is_constant(cursor, parent):
            return
        children = list(cursor.get_children())
        if cursor.kind in OPERATIONS and len(children) >= 2:
            left, right = children[0], children[-1]
            operator = text[extent(left)[1]:extent(right)[0]].decode().strip()
            if operator in OPERATORS and extent(left)[0] == extent(cursor)[0]:
                add(cursor, f"{written(left)} {OPERATORS[operator]} {written(right)}")
        elif cursor.kind == Kind.INTEGER_LITERAL and written(cursor).isdigit() and parent.kind != Kind.CASE_STMT:
            add(cursor, str(int(written(cursor)) + 1))
        elif cursor.kind == Kind.CXX_BOOL_LITERAL_EXPR:
            add(cursor, "true" if written(cursor) == "false" else "false")
        elif cursor.kind in (Kind.IF_STMT, Kind.WHILE_STMT) and children[0].kind.is_expression() and not is_constant(children[0], cursor):
            add(children[0], f"!bool({written(children[0])})")
        elif cursor.kind == Kind.COMPOUND_STMT:
            for child in children:
                if child.kind in STATEMENTS and text[extent(child)[1]:extent(child)[1] + 1] == b";":
                    add(child, "", is_statement=True)
        for child in children:
            visit(child, cursor)

    for cursor in unit.cursor.get_children():
        if cursor.location.file and cursor.location.file.name == str(path):
            visit(cursor, cursor)
    return list(found.values())


def with_mutants(text, mutants):
    """The text of a file with these mutants; of one that is in another, the other has what was written."""
    ordered = sorted(mutants, key=lambda mutant: (mutant.begin, -mutant.end))

    def write(begin, end, index):
        """What stands in [begin, end), and the first mutant after it."""
        written, at = "", begin
        while index < len(ordered) and ordered[index].begin < end:
            first = ordered[index]
            inner, after = write(first.begin, first.end, index + 1) if first.begin < first.end else ("", index + 1)
            written += text[at:first.begin].decode() + first.guarded(inner)
            at, index = first.end, after
        return written + text[at:end].decode(), index

    return write(0, len(text), 0)[0].encode()


class Workshop:
    """A copy of the tree, and its build."""

    def __init__(self, root, work):
        self.root, self.work, self.tree, self.build, self.headers = root, work, work / "tree", work / "build", work / "headers.pch"
        self.common = ["-std=c++20", "-w", "-resource-dir", "/usr/lib/llvm-19/lib/clang/19", f"-I{root}/include"]

    def configure(self):
        subprocess.run(
            ["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", "-DPPCC_TESTS=ON", "-DPPCC_UNITY=ON"],
            stdout=subprocess.DEVNULL, check=True)
        # The generated parser.
        subprocess.run(["ninja", "-C", self.build, "ppccParse"], stdout=subprocess.DEVNULL, check=True)

    def names(self):
        listed = subprocess.run(["git", "-C", self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True, text=True).stdout
        return [name for name in listed.split("\0") if (self.root / name).is_file()]

    def copy(self, changed):
        """Copies the tree, with these texts instead of what they are in it."""
        names = self.names()
        for name in {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if path.is_file()} - set(names):
            (self.tree / name).unlink()
        for name in names:
            source, copy = self.root / name, self.tree / name
            text = changed.get(source) or source.read_bytes()
            if not copy.exists() or copy.read_bytes() != text:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(text)
                shutil.copymode(source, copy)

    @staticmethod
    def library(path, root):
        """The name of the library that a file of a tree or of its build belongs to."""
        parts = pathlib.Path(path).relative_to(root).parts if pathlib.Path(path).is_relative_to(root) else [""]
        return parts[1] if parts[0] == "lib" else parts[2] if parts[0] == "include" else ""

    @functools.cached_property
    def arguments(self):
        """What the compiler is told of each library."""
        arguments = {}
        for command in json.loads((self.build / "compile_commands.json").read_text()):
            library, words = self.library(command["file"], self.build), shlex.split(command["command"])
            if library:
                arguments[library] = [word for before, word in zip(words, words[1:])
                                      if word.startswith(("-I", "-D", "-isystem")) or before == "-isystem"]
        return arguments

    def parse(self, path, text=None):
        return clang.Index.create().parse(
            str(path), unsaved_files=[(str(path), text.decode())] if text else None, args=[
                "-x", "c++", *self.common, *self.arguments.get(self.library(path, self.root), self.arguments["Driver"]), "-include-pch", str(self.headers)])

    def precompile(self):
        """What all files include: parsing it takes longer than they do."""
        headers = self.build / "CMakeFiles/ppccHeaders.dir/cmake_pch.hxx"
        clang.Index.create().parse(str(headers), options=clang.TranslationUnit.PARSE_INCOMPLETE, args=[
            "-x", "c++-header", *self.common, *self.arguments["Support"], "-include", str(HEADER)]).save(str(self.headers))

    def choose_in(self, path, share, seed):
        """So many mutants of a file, that compile."""
        text = path.read_bytes()
        unit, kept = self.parse(path), []
        if any(error.severity == clang.Diagnostic.Fatal for error in unit.diagnostics):
            raise RuntimeError(f"{path}: {unit.diagnostics[0]}")
        mutants = find_mutants(path, text, unit)
        random.Random(f"{seed} {path.name}").shuffle(mutants)
        while mutants and len(kept) < share:
            tried, mutants = mutants[:2 * share], mutants[2 * share:]
            wrong = {error.location.line for error in self.parse(path, with_mutants(text, tried)).diagnostics if error.severity >= 3}
            kept += [mutant for mutant in tried if not wrong & mutant.lines()]
        return kept[:share]

    def choose(self, paths, seed, count, jobs):
        """So many mutants, as many of each library; up to four of a file, since parsing one takes seconds."""
        self.precompile()
        chance, shares, libraries = random.Random(seed), collections.Counter(), collections.defaultdict(list)
        for path in paths:
            libraries[self.library(path, self.root)].append(path)
        for number, library in enumerate(libraries.values(), 1):
            wanted = count * number // len(libraries) - count * (number - 1) // len(libraries)
            lines = [path.read_bytes().count(b"\n") for path in library]
            for begin in range(0, wanted, 4):
                shares[chance.choices(library, lines)[0]] += min(4, wanted - begin)
        with multiprocessing.Pool(jobs) as pool:
            chosen = pool.starmap(self.choose_in, [(path, share, seed) for path, share in sorted(shares.items())])
        mutants = [mutant for mutants in chosen for mutant in mutants]
        for number, mutant in enumerate(mutants):
            mutant.number = number
        return mutants

    def compile(self, mutants):
        """Builds; gives the mutants without those that only clang compiles."""
        # What runs programs takes half of the time.
        targets = ["check-deps"] if any("Runtime" in mutant.path.parts for mutant in mutants) else CORE
        while True:
            by_path = collections.defaultdict(list)
            for mutant in mutants:
                by_path[mutant.path].append(mutant)
            self.copy({path: INCLUDE + with_mutants(path.read_bytes(), inside) for path, inside in by_path.items()})
            done = subprocess.run(["ninja", "-C", self.build, "-k0", *targets], stdout=subprocess.PIPE, text=True)
            if done.returncode == 0:
                return mutants
            wrong = {(name, int(line)) for name, line in re.findall(r"([^\s:]+):(\d+):\d+: (?:error|note|  required)", done.stdout)}
            kept = [mutant for mutant in mutants if not any(
                name.endswith(str(mutant.path.relative_to(self.root))) and line in mutant.lines() for name, line in wrong)]
            if len(kept) == len(mutants):
                sys.exit(f"mutate: error: the build failed\n{done.stdout[-5000:]}")
            mutants = kept


class Suite:
    """The tests as lit finds them, in a process of its own."""

    def __init__(self, build, work, name):
        self.config = lit.LitConfig.LitConfig("mutate", [], True, False, False, [], False, False, False, "smart", {})
        found = lit.discovery.find_tests_for_inputs(self.config, [str(build / "test"), str(build / "test/unit")])
        self.tests = {test.getFullName(): test for test in found if re.search(name, test.getFullName())}
        self.folder = work / multiprocessing.current_process().name
        for test in found:
            test.suite.exec_root = str(self.folder)

    def run(self, name, seconds, **environment):
        """What lit says of a test, how long it takes, and how long processors work."""
        test = self.tests[name]
        saved, test.config.environment = test.config.environment, test.config.environment | environment
        self.config.maxIndividualTestTime = seconds
        begin, worked = time.monotonic(), work_of_children()
        code = lit.worker._execute(test, self.config).code.name
        test.config.environment = saved
        return code, time.monotonic() - begin, work_of_children() - worked


def work_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


suite = None  # Of a process of the pool.


def start_worker(*arguments):
    global suite
    suite = Suite(*arguments)


def reach(name, count):
    """What lit says of a test without a mutant, how long it takes, and which mutants it reaches."""
    flags = suite.folder / "reached"
    flags.parent.mkdir(parents=True, exist_ok=True)
    flags.write_bytes(bytes(count))
    return name, *suite.run(name, 1200, PPCC_REACHED=str(flags)), {number for number, byte in enumerate(flags.read_bytes()) if byte}


def judge(mutant, tests):
    """What became of the mutant."""
    for seconds, name in sorted(tests):
        code, *_ = suite.run(name, int(10 + 4 * seconds), PPCC_MUTANT=str(mutant.number))
        if code != "PASS":
            return mutant, "killed", f" by {name} ({code})"
    return mutant, "survived" if tests else "not reached", f" ({len(tests)} tests)" if tests else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path, help="the tree")
    parser.add_argument("work", type=pathlib.Path, help="a folder for its copy and their build")
    parser.add_argument("path", nargs="*", type=pathlib.Path, default=[pathlib.Path("lib"), pathlib.Path("include")],
                        help="the folders or files that have mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--count", type=int, default=20, help="how many")
    parser.add_argument("--filter", default="", help="a regular expression for the names of tests")
    parser.add_argument("--longest", type=float, default=20, help="tests that take more seconds of processor time are left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    options = parser.parse_args()
    root = options.root.resolve()
    workshop = Workshop(root, options.work.resolve())
    paths = [root / name for name in workshop.names()
             if name.endswith((".cpp", ".h")) and any(pathlib.Path(name).is_relative_to(path) for path in options.path)]
    if not paths:
        sys.exit("mutate: error: no C++ file is in PATH")
    if not (workshop.build / "build.ninja").exists():
        workshop.copy({})
        workshop.configure()
    mutants = workshop.compile(workshop.choose(paths, options.seed, options.count, options.jobs))
    print(f"{len(mutants)} mutants", flush=True)
    with multiprocessing.Pool(options.jobs, start_worker, (workshop.build, workshop.work, options.filter)) as pool:
        reached, names = collections.defaultdict(list), Suite(workshop.build, workshop.work, options.filter).tests
        for name, code, seconds, work, numbers in pool.imap_unordered(functools.partial(reach, count=options.count), names):
            if code != "PASS" or work > options.longest:
                print(f"left out: {name} ({code}, {work:.0f} s)", flush=True)
                continue
            for number in numbers:
                reached[number].append((seconds, name))
        table = collections.defaultdict(collections.Counter)
        results = [pool.apply_async(judge, (mutant, reached[mutant.number])) for mutant in mutants]
        for result in results:
            mutant, outcome, why = result.get()
            place = mutant.path.relative_to(root)
            table[workshop.library(mutant.path, root)][outcome] += 1
            before, after = (" ".join(code.split())[:100] for code in (mutant.before, mutant.after or "nothing"))
            print(f"{mutant.number}: {place}:{mutant.line}: {outcome}{why}: {before} -> {after}", flush=True)
    for library, outcomes in sorted(table.items()):
        print(f"{library}: {outcomes.total()} mutants, " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
