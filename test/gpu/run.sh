#!/usr/bin/env bash
# All that a GPU can show, in one command: `./dev gpu pack` makes the folder that this is in, docs/gpu.md says what it gives.
# Needs python3 with torch, and nvcc where there is a GPU. The report and the logs go to $OUT, or to gpu-report/.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/day.py" "$@"
