"""Compares the keys of programs in the tables with docs/program.schema.json, and those that the runtime knows.

Usage: schema_matches_readers.py ROOT"""
import json
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])


def text(name):
    return (root / name).read_text()


schema = json.loads(text("docs/program.schema.json"))
properties, required = set(schema["properties"]), set(schema["required"])
wrong = []

rows = re.findall(r'^HEAD\w*\(\w+, "(\w+)"(?:, (\w+))?(?:, \w+)?\)', text("include/ppcc/IR/Head.def"), re.M)
if differing := {key for key, _ in rows} ^ properties:
    wrong.append(f"Head.def and the schema differ in {differing}")
if strange := {key for key, need in rows if need in ("Always", "Needed")} - required:
    wrong.append(f"Head.def needs {strange}, which the schema does not")
keys = re.findall(r'\{"(\w+)", (?:&JsonReader::\w+|nullptr)(, false)?(?:, \w+)*\}', text("include/ppcc/Runtime/Json.h"))
assert len(keys) > 12, keys
of_families = set(json.loads(text("docs/families.schema.json"))["properties"])
if strange := {key for key, _ in keys} - properties - of_families:
    wrong.append(f"the runtime knows {strange}, which the schemas do not")
if strange := {key for key, optional in keys if not optional} - required:
    wrong.append(f"the runtime needs {strange}, which the schema does not")

reported = set(re.findall(r'^KIND\("(\w+)"', text("include/ppcc/IR/KindProperties.def"), re.M)) | {"mnemonic", "class"}
if reported != set(schema["properties"]["kinds"]["items"]["properties"]):
    wrong.append(f"a kind has {reported} in the table, and others in the schema")
print("\n".join(wrong) or "the words are the same")
