# How lit runs the RUN lines of this repository's schedules and tests.
import os
import shutil
import sys

ppcc = shutil.which("ppcc") or lit_config.fatal("ppcc is not on PATH")
bin_dir = os.path.dirname(os.path.realpath(ppcc))
sys.path.append(os.path.join(bin_dir, "..", "share", "ppcc", "lit"))
import ppcc_lit

ppcc_lit.configure(config, lit_config)
config.name = "training"
root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(root, "build", "lit")
config.excludes += ["build", "parts"]
config.substitutions.append(("%schedules", os.path.join(root, "schedules")))
