"""Sends a language server what no editor would: each request with odd parameters, and messages that are none. Usage: malformed.py SERVER..."""

import json
import subprocess
import sys

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
identifier = 0


def write(text):
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
    server.stdin.flush()


def ask(method, params):
    global identifier
    identifier += 1
    write(json.dumps({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}).encode())
    while True:
        length = int(server.stdout.readline().split(b":")[1])
        server.stdout.readline()
        answer = json.loads(server.stdout.read(length))
        if answer.get("id") == identifier:
            return answer.get("result")


def send(method, params):
    write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())


capabilities = ask("initialize", {"initializationOptions": {"options": [1, None, "-D", "P=3"]}})["capabilities"]
assert capabilities["textDocumentSync"]["save"]
text = 'import "std.pp";\nimport "none.pp";\nschedule s(P: int = 2) { ranks P; microbatches 2; placement linear; on rank r { F(; B }'
name, position = {"uri": "untitled:Untitled-1"}, {"line": 2, "character": 10}
methods = ["definition", "references", "documentHighlight", "prepareRename", "rename", "hover", "completion", "signatureHelp"]
methods += ["codeAction", "documentSymbol", "semanticTokens/full", "foldingRange", "formatting"]
odd = [{}, [], None, 3, {"textDocument": 1}, {"textDocument": {"uri": "file:///none"}, "position": position}]
odd += [{"textDocument": name, "position": {"line": line, "character": at}} for line in [-1, 0, 2, 99, 2**60] for at in [-5, 0, 7, 2**60]]
odd += [{"textDocument": name, "position": position, "newName": new} for new in ["", "for", "a b", "1", 7]]
odd += [{"textDocument": name, "range": {"start": 1, "end": position}}]
for content in [text, "", "\n", '"', "{" * 3000, "schedule", "// ppcc: --help", "// ppcc: -o /nonexistent", "\u0000\ud7ff\U0001f600(" * 9]:
    send("textDocument/didOpen", {"textDocument": {**name, "text": content}})
    for method in methods:
        for params in odd:
            ask("textDocument/" + method, params)
    send("textDocument/didSave", {"textDocument": name})
for method in ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "workspace/didChangeConfiguration", "$/x"]:
    for params in odd:
        send(method, params)
for body in [b"[" * 200000, b"x", b"[]", b"{}", b'{"id": 1}', b'{"method": 3, "id": []}', b"\xff\xfe"]:
    write(body)
assert ask("ppcc/text", {"uri": "ppcc://library/../../etc/passwd"}) is None
ask("shutdown", None)
send("exit", None)
print("exit", server.wait(timeout=300))
