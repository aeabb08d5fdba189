"""Replaces a text of a program by another. Usage: broken_json.py FILE OLD NEW"""
import sys

text = open(sys.argv[1]).read()
assert sys.argv[2] in text, f"{sys.argv[2]} is not in the file"
sys.stdout.write(text.replace(sys.argv[2], sys.argv[3], 1))
