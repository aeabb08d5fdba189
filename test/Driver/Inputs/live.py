"""`ppcc serve`, and how to ask it."""

import http.client
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen(["ppcc", "serve", *arguments], stdout=subprocess.PIPE, text=True)
        port, self.token = re.search(r":(\d+)/([0-9a-f]{32})/", self.process.stdout.readline()).groups()
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def connect(self, path, **headers):
        """A request whose answer is not read yet."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        client.request("GET", f"/{self.token}/{path}", headers=headers)
        return client

    def status(self, path, **headers):
        return self.connect(path, **headers).getresponse().status

    def state(self, query=""):
        return json.loads(self.connect("state?" + query).getresponse().read())

    def states(self, queries):
        """All asked at once."""
        with ThreadPoolExecutor(len(queries)) as pool:
            return list(pool.map(self.state, queries))
