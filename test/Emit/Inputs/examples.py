"""Writes the examples of a document, the blocks below `<!-- example: NAME -->`, as files into a folder."""

import pathlib
import re
import sys

document, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
examples = re.findall(r"<!-- example: (\S+) -->\n```\w*\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
assert examples, f"{document} has no examples"
for name, text in examples:
    (folder / name).write_text(text)
