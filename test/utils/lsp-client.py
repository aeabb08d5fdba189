"""Speaks to a language server: sends what a script says, and prints what comes. Usage: lsp-client.py SCRIPT SERVER...

A line of the script is `open NAME FILE`, `change NAME OLD NEW` (in the text, once), `type NAME N` (N random edits, and back),
`labels NAME WORD [N]` (what is completed there, by label), or a request, such as `textDocument/definition NAME WORD [N]`, at the Nth
place where the word stands.
"""

import json
import queue
import random
import shlex
import subprocess
import sys
import threading

server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
texts: dict[str, str] = {}
versions: dict[str, int] = {}
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


def show_diagnostics(name):
    """What is wrong with the text as it is."""
    while True:
        message = published.get(timeout=300)["params"]
        if message["uri"].endswith(name) and message["version"] == versions[name]:
            break
    found = message["diagnostics"]
    for one in found or []:
        start = one["range"]["start"]
        print(f"{name}:{start['line']}:{start['character']}: {one.get('code')} {one['message'].splitlines()[0]}")
        for note in one.get("relatedInformation", []):
            print(f"  note {note['location']['range']['start']['line']}: {note['message']}")
    if not found:
        print(f"{name}: nothing wrong")


threading.Thread(target=receive, daemon=True).start()
send("initialize", {"capabilities": {}}, True)
send("initialized", {})
for line in open(sys.argv[1], encoding="utf-8"):
    command, *words = shlex.split(line)
    if command == "open":
        name, file = words
        texts[name] = open(file, encoding="utf-8").read()
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
    elif command == "labels":
        name, *rest = words
        params = {"textDocument": {"uri": f"file:///{name}"}, "position": position(name, *rest)}
        print("labels", *[one["label"] for one in send("textDocument/completion", params, True)])
    else:
        name, *rest = words
        params = {"textDocument": {"uri": f"file:///{name}"}, "newName": "renamed"}
        if rest:
            params["position"] = position(name, *rest)
        else:
            params["range"] = {"start": {"line": 0, "character": 0}, "end": {"line": 10**6, "character": 0}}
        result = send(command, params, True)
        print(command.split("/")[1], json.dumps(result))
print("shutdown", send("shutdown", None, True))
send("exit", None)
print("exit", server.wait(timeout=300))
