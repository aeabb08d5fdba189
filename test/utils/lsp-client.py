"""Speaks to a language server: sends what a script says, and prints what comes. Usage: lsp-client.py [--sanitized] SCRIPT SERVER...

A line of the script is `open NAME FILE`, `change NAME OLD NEW` (in the text, once), `type NAME N` (N random edits, and back),
`monkey NAME N PPCC` (N letters typed, pieces deleted, edits undone, and what is wrong compared with what PPCC says),
`configure WORD...` (options), `stale NAME FILE OLD NEW` (opened, and changed while it is compiled), `labels NAME WORD [N]` (what is completed there, by label), `rename NAME NEW WORD [N]`, or a request, such as `textDocument/definition NAME WORD [N]`, at the Nth
place where the word stands.
"""

import json
import os
import queue
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time

# AddressSanitizer keeps what is freed, up to 256 MB.
MAX_GROWTH_MB = 40 + 256 * (sys.argv[1] == "--sanitized" and bool(sys.argv.pop(1)))
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
texts: dict[str, str] = {}
versions: dict[str, int] = {}
known: dict[str, int] = {}  # The versions whose diagnostics have come.
answers: queue.Queue = queue.Queue()
published: queue.Queue = queue.Queue()
identifier = 0


def receive():
    while header := server.stdout.readline():
        length = int(header.split(b":")[1])
        server.stdout.readline()
        message = json.loads(server.stdout.read(length))
        (answers if "id" in message else published).put(message)
    answers.put(None)
    published.put(None)


def send(method, params, is_request=False):
    global identifier
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if is_request:
        identifier += 1
        message["id"] = identifier
    text = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
    server.stdin.flush()
    if is_request:
        answer = answers.get(timeout=300)
        assert answer and answer["id"] == identifier, answer
        return answer.get("result", answer.get("error"))


def position(name, word, count=1):
    text, at = texts[name], -1
    for _ in range(int(count)):
        at = text.index(word, at + 1)
    before = text[:at]
    line = before.count("\n")
    column = before[before.rfind("\n") + 1 :]
    return {"line": line, "character": len(column.encode("utf-16-le")) // 2}


def change(name, text):
    texts[name] = text
    versions[name] += 1
    document = {"uri": f"file:///{name}", "version": versions[name]}
    send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})


def diagnostics(name):
    """What is wrong with the text as it is."""
    while True:
        message = published.get(timeout=300)["params"]
        if message["uri"].endswith(name) and message["version"] == versions[name]:
            known[name] = versions[name]
            return message["diagnostics"]


def show_diagnostics(name):
    found = diagnostics(name)
    for one in found or []:
        start = one["range"]["start"]
        print(f"{name}:{start['line']}:{start['character']}: {one.get('code')} {one['message'].splitlines()[0]}")
        for note in one.get("relatedInformation", []):
            print(f"  note {note['location']['range']['start']['line']}:{note['location']['range']['start']['character']}: {note['message']}")
    if not found:
        print(f"{name}: nothing wrong")


def memory():
    """Of the server, in MB."""
    with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


def compare(name, ppcc):
    """What the server says of a text that is saved, and what the command line says."""
    if known.get(name) != versions[name]:
        diagnostics(name)
    send("textDocument/didSave", {"textDocument": {"uri": f"file:///{name}"}})
    said = [(one.get("code"), one["range"]["start"]["line"], one["range"]["start"]["character"]) for one in diagnostics(name)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(texts[name])
        run = subprocess.run([ppcc, "check", path, "--diagnostics-format=json", "--max-errors=100"], capture_output=True, text=True)
    found = [json.loads(line) for line in run.stderr.splitlines() if line.startswith("{")]
    wanted = [(one["code"], one.get("line", 1) - 1, one.get("column", 1) - 1) for one in found]
    assert said == wanted, f"{said}\n{wanted}\n{texts[name]}"
    return len(said)


def monkey(name, count, ppcc):
    numbers, history, checked, wrong, before = random.Random(7), [texts[name]], 0, 0, 0
    pieces = [*"(){};:-\"/ aFBMrw019\n=<,.", "repeat ", "on rank r {", "let x = ", "F;", "B;", "if r == 0 { ", "with step;", "// ", "&&"]
    for edit in range(count):
        text, choice = texts[name], numbers.random()
        if choice < 0.3 and len(history) > 1 or len(text) > 3000:
            del history[max(1, len(history) - numbers.choice([1, 1, 2, 5, 1000])) :]
            change(name, history[-1])
            continue
        at = numbers.randrange(len(text) + 1)
        deleted = numbers.choice([1, 1, 2, 9]) if choice > 0.8 else 0
        history.append(text[:at] + ("" if deleted else numbers.choice(pieces)) + text[at + deleted :])
        change(name, history[-1])
        if edit % 20 == 0:
            diagnostics(name)
        if edit % max(1, count // 50) == 0:
            if numbers.random() < 0.5:  # Often right.
                del history[2:]
                change(name, history[-1])
            checked, wrong = checked + 1, wrong + (compare(name, ppcc) != 0)
            before = before or edit > count // 5 and memory()
    change(name, history[0])
    compare(name, ppcc)
    growth = memory() - before
    print(f"{count} edits, {checked} compared, {wrong} of them texts with errors, memory {growth:+} MB", file=sys.stderr)
    assert 0 < wrong < checked and growth < MAX_GROWTH_MB
    print(f"{name}: the same as the command line")


threading.Thread(target=receive, daemon=True).start()
send("initialize", {"capabilities": {}}, True)
send("initialized", {})
for line in open(sys.argv[1], encoding="utf-8"):
    command, *words = shlex.split(line)
    if command == "open":
        name, file = words
        texts[name] = open(file, encoding="utf-8", newline="").read()
        versions[name] = 1
        document = {"uri": f"file:///{name}", "languageId": "pp", "version": 1, "text": texts[name]}
        send("textDocument/didOpen", {"textDocument": document})
        show_diagnostics(name)
    elif command == "change":
        name, old, new = words
        assert old in texts[name]
        change(name, texts[name].replace(old, new, 1))
        show_diagnostics(name)
    elif command == "type":
        name, count = words
        before, numbers = texts[name], random.Random(1)
        for _ in range(int(count)):
            text = texts[name]
            at = numbers.randrange(len(text) + 1)
            change(name, text[:at] + numbers.choice("(){};:-\"/ aF0\n") + text[at + numbers.randrange(3) :])
        change(name, before)
        show_diagnostics(name)
    elif command == "configure":
        send("workspace/didChangeConfiguration", {"settings": {"ppcc": {"options": words}}})
        for name in texts:
            show_diagnostics(name)
    elif command == "stale":
        name, file, old, new = words
        texts[name] = open(file, encoding="utf-8").read()
        versions[name] = 1
        document = {"uri": f"file:///{name}", "languageId": "pp", "version": 1, "text": texts[name]}
        send("textDocument/didOpen", {"textDocument": document})
        send("textDocument/foldingRange", {"textDocument": document}, True)
        time.sleep(0.5)
        change(name, texts[name].replace(old, new))
        messages = [published.get(timeout=300)["params"]]
        assert [one["version"] for one in messages if one["uri"].endswith(name)] == [2], messages
        print("stale", [one["code"] for one in messages[0]["diagnostics"]])
    elif command == "monkey":
        monkey(words[0], int(words[1]), words[2])
    elif command == "rename":
        name, new, *rest = words
        params = {"textDocument": {"uri": f"file:///{name}"}, "newName": new, "position": position(name, *rest)}
        result = send("textDocument/rename", params, True)
        print("rename", result or published.get(timeout=300)["params"]["message"])
    elif command == "labels":
        name, *rest = words
        params = {"textDocument": {"uri": f"file:///{name}"}, "position": position(name, *rest)}
        print("labels", *[one["label"] for one in send("textDocument/completion", params, True)])
    else:
        name, *rest = words
        params = {"textDocument": {"uri": f"file:///{name}"}, "newName": "renamed"}
        params["range"] = {"start": {"line": 0, "character": 0}, "end": {"line": 10**6, "character": 0}}
        if rest:
            params["position"] = position(name, *rest)
            params["range"] = dict.fromkeys(["start", "end"], params["position"])
        result = send(command, params, True)
        print(command.split("/")[1], json.dumps(result))
print("shutdown", send("shutdown", None, True))
send("exit", None)
print("exit", server.wait(timeout=300))
