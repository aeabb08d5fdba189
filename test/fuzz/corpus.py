#!/usr/bin/env python3
"""Inputs of a target, in one file of the tree or as libFuzzer has them, each in a file of its own:
corpus.py unpack FILE FOLDER | pack FOLDER FILE. `pack` keeps those of FILE that have a title, and takes the smallest of the folder."""

import hashlib
import pathlib
import sys

MARK = b"\n%%%%"
MAX_BYTES = 64_000  # Of those without a title.


def inputs_of(file):
    """Pairs of a title, empty for most, and an input."""
    text = b"\n" + file.read_bytes() if file.exists() else b""
    return [(head.strip(), body) for head, _, body in (part.partition(b"\n") for part in text.split(MARK)[1:])]


def main():
    command, source, destination = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    if command == "unpack":
        destination.mkdir(parents=True, exist_ok=True)
        for _, body in inputs_of(source):
            (destination / hashlib.sha1(body).hexdigest()).write_bytes(body)
        return
    titled = [(title, body) for title, body in inputs_of(destination) if title]
    found = {path.read_bytes() for path in source.iterdir()} - {body for _, body in titled}
    kept, size = titled, 0
    for body in sorted(found, key=lambda body: (len(body), body)):
        size += len(body)
        if size <= MAX_BYTES and MARK not in b"\n" + body:
            kept.append((b"", body))
    text = b"".join(MARK + (b" " + title if title else b"") + b"\n" + body for title, body in kept)
    destination.write_bytes(text.removeprefix(b"\n"))


if __name__ == "__main__":
    main()
