"""A schedule of N lines, each with a column that only the next one keeps in place. Usage: staircase.py N"""

import sys

count = int(sys.argv[1])
print("schedule a(M: int = 4) {\n  ranks 1; microbatches M; placement linear;\n  let one   = 1;\n  let three = 3;\n  on rank r {")
for line in range(count):
    print("    F;" + " " * (3 * (count - line) + 4) + "F; F;")
print("  }\n}")
