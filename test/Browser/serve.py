#!/usr/bin/env python3
"""`ppcc serve` as a browser meets it, and as others do who have no business there. Usage: serve.py PPCC FOLDER"""
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time

import browser

ppcc, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
# 10,000 compute actions.
TEXT = """schedule live(P: int >= 1 = 8, M: int >= 1 = 625) {
  ranks P; microbatches M; placement linear;
  on rank r { let w = min(P - 1 - r, M); repeat w { F; } repeat M - w { F; B; } repeat w { B; } }
}
"""


def write(text):
    with open("live.new", "w") as file:
        file.write(text)
    os.rename("live.new", "live.pp")


write(TEXT)
server = subprocess.Popen([ppcc, "serve", "live.pp"], stdout=subprocess.PIPE, text=True)
try:
    address = re.fullmatch(r"serving live.pp at (http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/))\n", server.stdout.readline())
    url, port, root = address[1], int(address[2]), address[3]

    def ask(path, method="GET", **headers):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        client.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = client.getresponse()
        return response.status, response.read().decode()

    # Clients that stop in the middle of a request keep nobody from an answer, and are sent away.
    slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(40)]
    for number, client in enumerate(slow):
        client.sendall(f"GET {root}state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ".encode()[: 1 + 2 * number])

    # Only with the token, from here, and to read.
    assert ask("/")[0] == 404 and ask("/" + 32 * "0" + "/")[0] == 404
    assert ask(root)[0] == 200 and ask(root, "POST")[0] == 405
    for headers in [{"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                    {"Host": f"evil.example:{port}"}, {"Origin": "null"}]:
        assert ask(root + "state", **headers)[0] == 403, headers
    assert ask(root + "state", Origin=f"http://127.0.0.1:{port}")[0] == 200
    with socket.create_connection(("127.0.0.1", port)) as stuck:
        stuck.sendall(b"GET /" + b"x" * 20000)
        assert stuck.recv(1) == b"", "an endless head is read"
    other = [address for _, _, _, _, address in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)]
    for host, _ in other:
        if not host.startswith("127."):
            assert socket.socket().connect_ex((host, port)) != 0, "it is there for other machines"
    print("nobody else is served")

    # Frames of other pages stay empty.
    for path in [root, root + "view"]:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        client.request("GET", path)
        assert client.getresponse().getheader("Content-Security-Policy").endswith("frame-ancestors 'self'"), path

    state = json.loads(ask(root + "state?D.M=3&cost.F=2")[1])
    assert state["good"] and [param["value"] for param in state["params"]] == ["8", "3"], state
    costs = {cost["name"]: cost["value"] for cost in state["costs"]}
    assert [*costs.items()][:2] == [("F", "2"), ("B", "2")] and [*costs.items()][-2:] == [("latency", "0"), ("limit", "")], state
    assert state["figures"] == "makespan 40, bubble 70.0 %, memory 3", state
    over = json.loads(ask(root + "state?D.M=8&cost.limit=2")[1])
    assert over["good"] and "[E1010]" in over["messages"] and over["figures"].endswith("memory 8 of 2"), over
    bad = json.loads(ask(root + "state?D.M=0")[1])
    assert not bad["good"] and "[E0480]" in bad["messages"], bad
    print("values are tried")

    with browser.page(url, fetches=True) as driver:

        def shows(what, script, limit=20.0):
            """How long until the script gives true, asked all the time."""
            start = time.time()
            while not driver.execute_script("return (() => {" + script + "})()"):
                assert time.time() < start + limit, f"{what}: not within {limit} s"
            return time.time() - start

        frame = "const frame = document.querySelector('iframe').contentWindow; if (!frame.ppcc) return false;"
        shows("the first picture", frame + "return frame.ppcc.programs[0].start.length > 10000;")
        reported = browser.accessible(driver)
        roles = {(role, name) for role, name, _ in reported}
        for one in [("form", "Parameters and costs"), ("slider", "P"), ("spinbutton", "P"), ("slider", "limit"), ("Iframe", "Timeline")]:
            assert one in roles, (one, roles)
        assert any(role == "status" and state["live"] == "polite" for role, _, state in reported), reported
        assert browser.tab_order(driver, 4) == ["INPUT", "D.P", "INPUT", "D.M"]
        driver.execute_script(frame + "frame.document.getElementById('memory').click(); frame.select(3);")
        times = []
        for count in range(600, 610):  # Each 10,000 actions or nearly so.
            write(TEXT.replace("625", str(count)))
            rows = f"return frame.ppcc.programs[0].microbatch.reduce((a, b) => Math.max(a, b)) === {count - 1};"
            times.append(shows("an edit", frame + rows))
        times.sort()
        print(f"an edit shows after {times[5]:.2f} s, at most {times[-1]:.2f}", file=sys.stderr)
        assert times[5] < float(os.environ.get("PPCC_EDIT_SECONDS", "1.5")), times
        kept = driver.execute_script(frame + "return ['memory', 'microbatch'].map((id) => frame.document.getElementById(id)).map((one) => one.ariaPressed || one.value);")
        assert kept == ["true", "3"], kept
        print("edits are drawn, and what was chosen stays")
        slide = """const slider = document.querySelector('input[type=range]'); slider.value = 4;
            slider.dispatchEvent(new Event('input')); return true;"""
        driver.execute_script(slide)
        shows("a slider", frame + "return frame.ppcc.programs[0].ranks.length === 4;")
        times = []
        for ranks in [9, 10, 11, 12, 13]:
            driver.execute_script(slide.replace("= 4", f"= {ranks}"))
            times.append(shows("a slider", frame + f"return frame.ppcc.programs[0].ranks.length === {ranks};"))
        times.sort()
        print(f"a slider shows after {times[2]:.2f} s, at most {times[-1]:.2f}", file=sys.stderr)
        assert times[2] < float(os.environ.get("PPCC_EDIT_SECONDS", "1.5")), times
        driver.execute_script(slide)
        shows("a slider", frame + "return frame.ppcc.programs[0].ranks.length === 4;")
        print("sliders are followed")
        write(TEXT.replace("repeat w { F; }", "repeat v { F; }"))
        shows("an error", "return /E0301/.test(document.getElementById('messages').textContent);")
        assert driver.execute_script(frame + "return frame.ppcc.programs[0].ranks.length;") == 4
        write(TEXT)
        shows("no error", "return document.getElementById('messages').hidden;")
        print("errors stand beside the last picture")
    assert all(client.recv(1) == b"" for client in slow), "a slow client is answered"
    print("slow clients are gone")
finally:
    server.kill()
    server.wait()
