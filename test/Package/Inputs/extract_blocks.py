"""Writes the blocks of a document that have these names, as in ```cpp NAME, into a folder: extract_blocks.py DOCUMENT FOLDER NAME..."""

import pathlib
import re
import sys

document, folder = map(pathlib.Path, sys.argv[1:3])
folder.mkdir(parents=True)
for name in sys.argv[3:]:
    block = re.search(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    assert block, f"{document} has no block {name}"
    (folder / name).write_text(block[1])
