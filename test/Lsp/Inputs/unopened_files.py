"""Renames what files declare that are not open, and what they use. Usage: unopened_files.py FOLDER SERVER..."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

folder = Path(sys.argv[1]).resolve()
(folder / "deep").mkdir(parents=True, exist_ok=True)
(folder / ".hidden").mkdir(exist_ok=True)
TEXTS = {
    "depths.pp": "fn depth(P, r) = P - 1 - r;\n",
    "one.pp": 'import "depths.pp";\nschedule one(P: int = 2) { ranks P; microbatches 4; placement linear; on rank r {\n'
              "  let w = depth(P, r); repeat w { F; } repeat 4 - w { F; B; } repeat w { B; } } }\n",
    "deep/two.pp": 'import "../depths.pp";\nfn twice(P, r) = depth(P, r) + depth(P, r);\n',
    "deep/broken.pp": 'import "../depths.pp";\nfn wrong(P) = ;\nfn half(P, r) = depth(P, r) / 2;\n',
    "other.pp": "fn depth(x) = x; // of its own\nfn deeper(x) = depth(x);\n",
    ".hidden/three.pp": 'import "../depths.pp";\nfn thrice(P, r) = 3 * depth(P, r);\n',
}
for name, text in TEXTS.items():
    (folder / name).write_text(text)
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
identifier = 0


def write(message):
    text = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
    server.stdin.flush()


def ask(method, params):
    global identifier
    identifier += 1
    write({"id": identifier, "method": method, "params": params})
    while True:
        length = int(server.stdout.readline().split(b":")[1])
        server.stdout.readline()
        answer = json.loads(server.stdout.read(length))
        if answer.get("id") == identifier:
            return answer.get("result")


def rename(word, new):
    """How often which file would change."""
    line = next(i for i, text in enumerate(TEXTS["one.pp"].splitlines()) if word in text)
    position = {"line": line, "character": TEXTS["one.pp"].splitlines()[line].index(word)}
    changes = ask("textDocument/rename", {"textDocument": {"uri": uri}, "position": position, "newName": new})["changes"]
    return {unquote(name).removeprefix(f"file://{folder}/"): len(edits) for name, edits in sorted(changes.items())}


uri = f"file://{folder}/one.pp"
ask("initialize", {"capabilities": {}, "workspaceFolders": [{"uri": f"file://{folder}", "name": "work"}]})
write({"method": "textDocument/didOpen", "params": {"textDocument": {"uri": uri, "version": 1, "text": TEXTS["one.pp"]}}})
print("of a file:", rename("depth(", "behind"))
print("of a rank:", rename("w =", "warmup"))
place = {"textDocument": {"uri": uri}, "position": {"line": 2, "character": TEXTS["one.pp"].splitlines()[2].index("depth")}}
print("highlights:", [one["range"]["start"] for one in ask("textDocument/documentHighlight", place)])
write({"method": "workspace/didChangeWorkspaceFolders", "params": {"event": {"added": [], "removed": [{"uri": f"file://{folder}"}]}}})
print("without a workspace:", rename("depth(", "behind"))
ask("shutdown", None)
write({"method": "exit"})
print("exit", server.wait(timeout=300))
