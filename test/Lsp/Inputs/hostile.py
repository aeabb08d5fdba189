"""Opens texts that would have a language server read what has no end, or take all memory. Usage: hostile.py FOLDER SERVER...

Prints what is said of each, and fails when the server stops answering, waits, or takes more than it may.
"""

import json
import os
import pathlib
import select
import subprocess
import sys
import time

folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
for pipe in ["fifo", "fifo.pp"]:
    if not (folder / pipe).exists():
        os.mkfifo(folder / pipe)
with open(folder / "sparse.pp", "wb") as sparse:
    sparse.truncate(1 << 40)
SECONDS, MEGABYTES = 120, 700
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
identifier, buffered = 0, b""


def write(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def read(deadline):
    """The next message, by the deadline."""
    global buffered
    while True:
        head, found, rest = buffered.partition(b"\r\n\r\n")
        if found and len(rest) >= (length := int(head.split(b":")[1])):
            buffered = rest[length:]
            return json.loads(rest[:length])
        assert select.select([server.stdout], [], [], max(0, deadline - time.time()))[0], "no answer"
        buffered += os.read(server.stdout.fileno(), 1 << 16)


def ask(method, params):
    global identifier
    identifier += 1
    write({"id": identifier, "method": method, "params": params})
    deadline = time.time() + SECONDS
    while (answer := read(deadline)).get("id") != identifier:
        assert "id" not in answer, answer
    return answer.get("result")


def diagnostics_of(uri):
    """What is wrong with a text, by the codes or words of its diagnostics."""
    deadline = time.time() + SECONDS
    while True:
        message = read(deadline)
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
            return [one.get("code", one["message"]) + (" " + one["message"].split(": ", 1)[-1].split("\n")[0] if one.get("code") == "E0101" else "")
                    for one in message["params"]["diagnostics"]]


ask("initialize", {"workspaceFolders": [{"uri": folder.as_uri(), "name": "all"}]})
BODY = "schedule s(P: int = 2) { ranks P; microbatches 2; placement linear; on rank r { repeat 2 { F; } repeat 2 { B; } } }\n"
LONG = "schedule s() { ranks 1; microbatches 900000000; placement linear; on rank r { repeat 900000000 { F; } } }\n"
LOOPS = "schedule s() { ranks 1; microbatches 1; placement linear; on rank r { repeat 900000000000 { } F; B; } }\n"
texts = [(f'import "{path}";\n' + BODY) for path in
         ["/dev/stdin", "/proc/self/fd/0", "/dev/fd/0", "/dev/zero", "/dev/tty", "fifo", "fifo.pp", "sparse.pp", "."]]
texts += [f"// ppcc: {option}\n" + BODY for option in
          ["--costs=-", "--costs=/dev/stdin", f"--costs={folder}/fifo", "--costs=/dev/zero", "--model=/dev/stdin", "--model=/dev/zero",
           f"--cluster={folder}/fifo", "--with=step --rules=/dev/stdin", f"--costs={folder}/sparse.pp"]]
texts += [f"// ppcc: {option}\n" + text for option in ["--max-actions=1000000000", "--max-actions=1000000000 --max-source-bytes=4000000000"]
          for text in [LONG, LOOPS]]
for number, text in enumerate(texts):
    uri = (folder / f"text{number}.pp").as_uri()
    document = {"textDocument": {"uri": uri, "version": 1, "languageId": "pp", "text": text}}
    write({"method": "textDocument/didOpen", "params": document})
    wrong = diagnostics_of(uri)
    assert wrong, text
    print(text.split("\n")[0].replace(str(folder), "FOLDER"), "->", ", ".join(wrong).replace(str(folder), "FOLDER"))
    for method in ["hover", "definition", "references", "rename"]:
        word = {"line": 0 if text.startswith("import") else 1, "character": 10}
        ask("textDocument/" + method, {**document, "position": word, "newName": "x"})
    write({"method": "textDocument/didClose", "params": document})
status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
assert peak < MEGABYTES, f"the server took {peak} MB"
ask("shutdown", None)
write({"method": "exit"})
print("exit", server.wait(timeout=SECONDS))
