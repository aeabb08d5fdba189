#!/usr/bin/env python3
"""Reads an svg with an XML parser, prints its boxes and texts, and checks that nothing lies outside.

Usage: check-svg.py FILE [boxes=N] [arrows=N]; N counts those of the ranks and of the legend."""
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
root = ElementTree.parse(sys.argv[1]).getroot()
assert root.tag == SVG + "svg", root.tag
width, height = float(root.get("width")), float(root.get("height"))
patterns = {pattern.get("id") for pattern in root.iter(SVG + "pattern")}
counts = {"boxes": 0, "arrows": 0}
for rect in root.iter(SVG + "rect"):
    fill = rect.get("fill")
    if rect.get("x") is None:
        continue  # Of a pattern, or the ground.
    x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
    assert 0 <= x and x + w <= width and 0 <= y and y + h <= height, rect.attrib
    if fill.startswith("url(#"):
        assert fill[5:-1] in patterns, fill
        counts["boxes"] += 1
        print(f"box {x:g},{y:g} {w:g}x{h:g} {fill[5:-1]}")
for path in root.iter(SVG + "path"):
    counts["arrows"] += path.get("marker-end") is not None
for group in root.iter(SVG + "g"):
    if group.get("text-anchor") == "end":
        for text in group.iter(SVG + "text"):  # A letter takes four at least.
            assert 4 * len(text.text) <= float(text.get("x")), text.attrib
for text in root.iter(SVG + "text"):
    assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height, text.attrib
    print(f"text {text.text}")
for expected in sys.argv[2:]:
    name, number = expected.split("=")
    assert counts[name] == int(number), f"{counts[name]} {name}, not {number}"
