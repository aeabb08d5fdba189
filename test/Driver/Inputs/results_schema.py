"""Validates results, and compares their keys with those of the schema. Usage: results_schema.py SCHEMA RESULT..."""
import json
import sys
from pathlib import Path

import jsonschema

schema, *results = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
jsonschema.Draft202012Validator.check_schema(schema)
known = {one["properties"]["format"]["const"]: one for one in schema["oneOf"]}
for result in results:
    jsonschema.validate(result, schema)
    strange = set(result) - set(known[result["format"]]["properties"])
    assert not strange, f"the schema does not know {strange} of {result['format']}"
found = {result["format"] for result in results}
assert found == set(known), f"no result of {set(known) - found}"
print(*sorted(found))
