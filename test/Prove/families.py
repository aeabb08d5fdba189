"""families.py PPCC SCHEMA SCHEDULE...: programs of one file for all M against those of the schedule; leaves f.json."""
import json
import random
import subprocess
import sys

ppcc, schema, *schedules = sys.argv[1:]
rng = random.Random(3)
programs = 0


def run(*args):
    return subprocess.run([ppcc, *args], capture_output=True)


for schedule in schedules:
    done = run(schedule, "-D", "P=4", "--for", "M", "-o", "f.json")
    assert done.returncode == 0, done.stderr
    assert run("f.json", "--for", "M").stdout == open("f.json", "rb").read(), schedule
    try:
        import jsonschema
    except ImportError:
        pass
    else:
        jsonschema.validate(json.load(open("f.json")), json.load(open(schema)))
    for m in [1, 2, 4, 16, rng.randint(20, 99), 12 * rng.randint(20, 80)]:
        of_family, of_schedule = run("f.json", "-D", f"M={m}"), run(schedule, "-D", "P=4", "-D", f"M={m}", "--no-families")
        assert of_family.returncode == of_schedule.returncode, (schedule, m, of_family.stderr, of_schedule.stderr)
        assert of_family.stdout == of_schedule.stdout, (schedule, m)
        programs += of_family.returncode == 0
print(f"{len(schedules)} families, {programs} programs")
