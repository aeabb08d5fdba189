"""one-definition.py ROOT: types of one name in two files, outside of unnamed namespaces. Linkers merge their inline functions silently."""
import collections
import pathlib
import re
import sys

SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
TOKEN = re.compile(r"namespace(?P<space>\s+[\w:]+)?\s*\{|\b(?:class|struct|union|enum(?:\s+class)?)\s+(?P<type>\w+)(?P<rest>[^;{}()<>]*)\{|\{|\}")

root = pathlib.Path(sys.argv[1])
files = collections.defaultdict(set)  # By qualified name.
for pattern in ("lib/**/*.cpp", "lib/**/*.h", "include/**/*.h", "tools/**/*.cpp"):
    for path in root.glob(pattern):
        scopes = []  # Names of namespaces; None for any other.
        for token in TOKEN.finditer(SILENT.sub("", path.read_text())):
            if token[0].startswith("namespace"):
                scopes.append((token["space"] or "").strip())
            elif token[0] == "}":
                scopes and scopes.pop()
            else:
                if token["type"] and all(scopes) and not token["rest"].startswith(("::", "<")):
                    files["::".join([*scopes, token["type"]])].add(str(path.relative_to(root)))
                scopes.append(None)
assert len(files) > 450, f"only {len(files)} types found"
for name, where in sorted(files.items()):
    if len(where) > 1:
        print(f"{name}: {', '.join(sorted(where))}")
