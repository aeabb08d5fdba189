"""Reads the runs of a page as JSON. Usage: page_json.py PAGE"""
import json
import re
import sys

runs = re.findall(r'<script type="application/json">(\{.*?)</script>', open(sys.argv[1]).read(), re.S)
for run in map(json.loads, runs):
    print(run["title"], run["ranks"], run["rowStarts"], sorted(run["columns"]))
