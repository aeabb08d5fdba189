"""`ppcc serve` of a file that becomes something else, and what others on the machine can see. Usage: serve.py FOLDER PPCC"""

import http.client
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import time
import urllib.parse

folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(parents=True)
os.chdir(folder)
TEXT = "schedule s(P: int = 2) { ranks P; microbatches 2; placement linear; on rank r { repeat 2 { F; } repeat 2 { B; } } }\n"
pathlib.Path("live.pp").write_text(TEXT)
# A browser that tells how it was called, and waits.
browser = folder / "bin" / "xdg-open"
browser.parent.mkdir()
browser.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$0.called.new"\nmv "$0.called.new" "$0.called"\nexec sleep 60\n')
browser.chmod(0o755)
environment = {**os.environ, "PATH": f"{browser.parent}:{os.environ['PATH']}", "TMPDIR": str(folder)}


def serve(*arguments):
    """A server, and how to ask it."""
    server = subprocess.Popen([sys.argv[2], "serve", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    port, token = re.search(r":(\d+)/([0-9a-f]{32})/", server.stdout.readline()).groups()

    def ask(path):
        client = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
        client.request("GET", f"/{token}/{path}")
        return client.getresponse().read().decode()

    return server, token, ask


def replace(make):
    make("live.new")
    os.rename("live.new", "live.pp")


server, token, ask = serve("live.pp", "--open")
try:
    called = pathlib.Path(f"{browser}.called")
    while not called.exists():
        assert server.poll() is None, "the server has ended"
        time.sleep(0.05)
    page = pathlib.Path(urllib.parse.unquote(called.read_text().strip().removeprefix("file://")))
    assert token in page.read_text() and stat.S_IMODE(page.stat().st_mode) == 0o600
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            assert token.encode() not in (process / "cmdline").read_bytes(), process
            assert token.encode() not in (process / "environ").read_bytes(), process
        except OSError:
            pass  # It has ended, or belongs to somebody else.
    print("the token is in no process's arguments")
    assert "<title>ppcc</title>" in ask("") and not page.exists()
    print("the page that leads to it is gone once it is used")

    def state():
        return json.loads(ask("state"))

    assert state()["good"]
    replace(os.mkfifo)
    assert "not a regular file" in state()["messages"]
    replace(lambda name: os.symlink("/dev/zero", name))
    assert "not a regular file" in state()["messages"]
    replace(lambda name: pathlib.Path(name).write_text('import "/dev/stdin";\n' + TEXT))
    assert "not a regular file" in state()["messages"]
    os.mkfifo("costs.json")
    replace(lambda name: pathlib.Path(name).write_text('import "costs.json";\n' + TEXT))
    assert "not a regular file" in state()["messages"]
    replace(lambda name: pathlib.Path(name).write_text(TEXT.replace("2;", "90000000;").replace("repeat 2", "repeat 90000000")))
    assert "E0412" in state()["messages"]
    # A pipe that is there and not there.
    end = time.time() + 2
    while time.time() < end:
        replace(os.mkfifo)
        replace(lambda name: pathlib.Path(name).write_text(TEXT))
    assert state()["good"] and "<svg" in ask("view") or "<canvas" in ask("view")
    print("pipes and devices are refused, and it goes on")
finally:
    server.terminate()
    server.wait(timeout=60)
server, token, ask = serve("live.pp", "--costs", "costs.json")
try:
    assert "not a regular file" in state()["messages"]
    print("so are those of options")
finally:
    server.terminate()
    server.wait(timeout=60)
left = [path.name for path in folder.glob("ppcc-serve*")]
assert not left, left
