"""Compares the keys that readers know with docs/program.schema.json. Usage: same_words.py ROOT"""
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


def check(name, known, needed):
    if strange := known - properties:
        wrong.append(f"{name} knows {strange}, which the schema does not")
    if strange := needed - required:
        wrong.append(f"{name} needs {strange}, which the schema does not")


head = text("lib/Import/Json.cpp").split("void readHead()")[1].split("\n  }\n")[0]
keys = re.findall(r'(optional\()?\s*(?:\{|json\.\w+Field\()"(\w+)"', head)
assert len(keys) > 15, keys
check("lib/Import", {key for _, key in keys}, {key for absent, key in keys if not absent})
keys = re.findall(r'\{"(\w+)", (?:&JsonReader::\w+|nullptr)(, false)?\}', text("include/ppcc/Runtime/Json.h"))
assert len(keys) > 12, keys
check("the runtime", {key for key, _ in keys}, {key for key, optional in keys if not optional})

told = set(re.findall(r'^KIND_\w+\("(\w+)"', text("include/ppcc/IR/KindProperties.def"), re.M)) | {"letters", "class"}
if told != set(schema["properties"]["kinds"]["items"]["properties"]):
    wrong.append(f"a kind has {told} in the table, and others in the schema")
print("\n".join(wrong) or "the words are the same")
