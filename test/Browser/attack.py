#!/usr/bin/env python3
"""What a page of somebody else can do to `ppcc serve` in a real browser, though it knows the port and even the token: nothing.
Usage: attack.py FOLDER_OF_LIVE"""
import http.server
import sys
import threading

sys.path.insert(0, sys.argv[1])
import browser
import live

ATTACK = """
const [url, done] = arguments, name = (error) => error.constructor.name;
const loaded = (element, at) => new Promise((resolve) => {
  element.onload = () => resolve("loaded");
  element.onerror = () => resolve("refused");
  element.src = at;
  document.body.append(element);
});
const asked = (options, at = url + "state") => fetch(at, options).then((answer) => answer.text()).catch(name);
const posted = () => new Promise((resolve) => {
  const frame = document.createElement("iframe"), form = document.createElement("form");
  frame.name = form.target = "posted";
  Object.assign(form, { method: "POST", action: url + "state?D.M=3" });
  document.body.append(frame, form);
  frame.onload = () => resolve(frame.contentDocument === null ? "nothing to see" : "seen");
  form.submit();
});
const socket = () => new Promise((resolve) => {
  const opened = new WebSocket(url.replace("http", "ws") + "state");
  opened.onopen = () => resolve("opened");
  opened.onerror = () => resolve("refused");
});
navigator.sendBeacon(url + "state", "D.M=3"); // Nobody hears what becomes of it.
(async () => done({
  "read": await asked({}),
  "read without CORS": await asked({ mode: "no-cors" }),
  "post": await asked({ method: "POST", mode: "no-cors", body: "D.M=3" }),
  "preflight": await asked({ headers: { "X-Own": "1" } }),
  "script": await loaded(document.createElement("script"), url + "state"),
  "image": await loaded(document.createElement("img"), url),
  "form": await posted(),
  "socket": await socket(),
}))();
"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href='data:,'><body>win a prize")

    def log_message(self, *_):
        pass


elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
with live.Server("one_f_one_b") as server, browser.chromium("host-resolver-rules=MAP rebound.example 127.0.0.1") as driver:
    before = server.state()
    for host in "localhost", "127.0.0.1", "rebound.example":
        driver.get(f"http://{host}:{elsewhere.server_port}/")
        found = driver.execute_async_script(ATTACK, f"http://127.0.0.1:{server.port}/{server.token}/")
        print(f"{host}:", ", ".join(f"{what}: {value}" for what, value in sorted(found.items())))
    # Framed, to be clicked on.
    driver.execute_script("const frame = document.createElement('iframe'); frame.id = 'framed'; frame.src = arguments[0]; document.body.append(frame)",
                          f"http://127.0.0.1:{server.port}/{server.token}/")
    driver.switch_to.frame(driver.find_element("id", "framed"))
    print("framed:", driver.execute_script("return document.querySelectorAll('form, iframe').length"), "forms")
    # A name that leads here after it has led elsewhere: the same origin, to the browser.
    driver.get(f"http://rebound.example:{server.port}/{server.token}/")
    print("rebound:", driver.execute_script("return document.body.textContent.trim()"))
    print("as before:", server.state() == before)
