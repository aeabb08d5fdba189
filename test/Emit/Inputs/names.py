"""names.py CXX...: hostile names in every place where a file can carry one, through every format.

Each string of a program, or of programs for all M, is given names that would end the literal, comment or element that
they stand in. What a reader refuses is an error; what it takes, every format writes as a name."""
import copy
import csv
import html.parser
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

NAMES = [
    '"); int pwned = 1; (void)("',
    "*/ int pwned; /*",
    "</script><script>window.pwned = 1</script>",
    "]]><x onload='pwned'>&amp;&#0;",
    "a\nint pwned;\r\n",
    "back\\",
    '??/"??=',
    "\u202eb\u2066\u2028\u0085",
    "'%s'${x}`x`",
    '-->,"",;|\t',
    ") Tj (pwned) Tj\x01",
    'R"(x)"\x7f\ufeff\U0001f600',
]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def run(*arguments, text=None, code=0):
    done = subprocess.run(["ppcc", *arguments], input=text, capture_output=True)
    assert code is None or done.returncode == code, (arguments, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout if code is not None else done


def strings(value, path=()):
    """The paths of all strings that are not empty."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, path + (key,))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from strings(item, path + (position,))
    elif isinstance(value, str) and value:
        yield path


def put(document, path, name):
    for step in path[:-1]:
        document = document[step]
    document[path[-1]] = name


def taken(document, options):
    """The strings that may be anything: the reader takes a hostile one there, and refuses all others with an error."""
    kinds, result = {}, []
    for path in strings(document):
        kind = tuple("*" if isinstance(step, int) else step for step in path) + (path[-1] == 0,)
        if kind not in kinds:
            codes = []
            for name in (NAMES[0], "a\0b"):
                changed = copy.deepcopy(document)
                put(changed, path, name)
                done = run("-", "--from=json", *options, text=json.dumps(changed).encode(), code=None)
                codes.append(done.returncode)
                assert done.returncode in (0, 1), (path, done.returncode)
            assert codes[1] == 1, ("NUL in", path)
            kinds[kind] = codes[0] == 0
        if kinds[kind] and path[0] not in ("compiler", "digest", "transports"):
            result.append(path)
    assert result
    return result


def hostile(document, paths, turn):
    """All of them at once, and a parameter with such a name."""
    changed = copy.deepcopy(document)
    names = {}
    for number, path in enumerate(paths):
        name = NAMES[(turn + number) % len(NAMES)]
        if path[0] in ("pipes", "phases"):  # Which differ in their names.
            name += str(number)
        put(changed, path, name)
        names[path] = name
    return changed, names


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))


def elements(svg):
    """The tags with their attributes."""
    return {(element.tag, *sorted(element.attrib)) for element in xml.etree.ElementTree.fromstring(svg).iter()}


def check_texts(form, plain, text):
    found = text.decode()  # Never other than UTF-8.
    if form in ("json", "report-json", "trace"):
        json.loads(found)
        assert not CONTROL.search(found), form
    elif form == "svg":
        assert elements(found) == elements(plain.decode())
    elif form == "html":
        assert Tags(found).found == Tags(plain.decode()).found
    elif form in ("times", "torch-csv", "torch-csv-compute"):
        assert [len(row) for row in csv.reader(io.StringIO(found))] == [len(row) for row in csv.reader(io.StringIO(plain.decode()))]
    elif form != "cpp":
        assert not CONTROL.search(found), (form, CONTROL.search(found))
        if form != "ir":
            assert len(found.splitlines()) == len(plain.decode().splitlines()), form


def cpp_main(programs, for_all):
    """What prints the names of programs, with them in one source: compiling the reader of JSON takes seconds."""
    lines = ['#include "ppcc/Runtime/Json.h"', "#include <cstdio>"]
    for i in range(programs + for_all):
        lines += [f"#define ppcc_data data{i}", f"#define instance instance{i}", f'#include "names{i}.cpp"', "#undef ppcc_data", "#undef instance"]
    lines += [
        "static void print(const char *name) { while (*name) std::printf(\"%02x\", (unsigned char)*name++); std::puts(\"\"); }",
        "static void all(const ppcc::rt::Program &p) { print(p.name); for (auto &x : p.pipes) print(x.name);",
        "  for (auto x : p.phases) print(x);",
        "  for (auto x : p.files) print(x); }",
        "int main() {",
    ]
    lines += [f"  all(p{i});" for i in range(programs)]
    lines += [f"  print(p{i}.name); {{ auto one = p{i}.at(3); all(one); }}" for i in range(programs, programs + for_all)]
    return "\n".join(lines + ["}", ""])


def names_of(document, phases):
    return [document["schedule"], *(pipe["name"] for pipe in document["pipes"]), *phases, *document["files"]]


def main():
    expected = []

    def cpp(number, text):
        open(f"names{number}.cpp", "wb").write(text)

    formats = next(line for line in run("--list-options").decode().splitlines() if line.startswith("--emit\t")).split("\t")[2].split()
    program = json.loads(run("dualpipe", "-D", "P=2", "-D", "M=4"))
    program["params"] = {"text": "x", **program["params"]}
    paths = taken(program, ["--check"])
    plain, skipped = {}, set()
    for form in formats:
        done = run("-", "--from=json", f"--emit={form}", text=json.dumps(program).encode(), code=None)
        (plain.__setitem__(form, done.stdout) if done.returncode == 0 else skipped.add(form))
    for turn in range(len(NAMES)):
        document, _ = hostile(program, paths, turn)
        document["params"][NAMES[turn]] = NAMES[-turn]
        text = json.dumps(document).encode()
        for form in plain:
            options = [f"--cpp-symbol=p{turn}"] if form == "cpp" else []
            found = run("-", "--from=json", f"--emit={form}", *options, text=text)
            check_texts(form, plain[form], found)
            if form == "cpp":
                cpp(turn, found)
            if form == "ir":
                again = run("-", "--from=ir", text=found)
                assert json.loads(again)["params"] == document["params"]
                assert names_of(json.loads(again), []) == names_of(document, []), turn
        expected += names_of(document, document["phases"])
        print("program", turn, "as", len(plain), "formats, without", *sorted(skipped), file=sys.stderr)

    families = json.loads(run("gpipe", "-D", "P=2", "--for", "M"))
    paths = [path for path in taken(families, ["-D", "M=3"]) if path[0] not in ("for", "parameters", "families") or "phases" in path]
    for turn in range(len(NAMES)):
        document, names = hostile(families, paths, turn)
        text = json.dumps(document).encode()
        read = ["-", "--from=json", "--for", "M"]
        assert names_of(json.loads(run(*read, text=text)), []) == names_of(document, [])
        cpp(len(NAMES) + turn, run(*read, "--emit=cpp", f"--cpp-symbol=p{len(NAMES) + turn}", text=text))
        of_three = next(family for family in document["families"] if family["from"] == 3)
        expected += [document["schedule"], *names_of(document, of_three["phases"])]

    open("main.cpp", "w").write(cpp_main(len(NAMES), len(NAMES)))
    subprocess.run([*sys.argv[1:], "-O0", "-std=c++20", "-Wall", "-Werror", "main.cpp", "-o", "main"], check=True)
    printed = subprocess.run(["./main"], capture_output=True, check=True).stdout.decode().splitlines()
    assert [bytes.fromhex(line).decode() for line in printed] == expected
    print(f"{len(expected)} names of C++ are as they were")


main()
