# How lit runs the tests of this folder: text in, text out, checked by FileCheck.
import os

import lit.formats

config.name = "ppcc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".pp", ".test", ".ir", ".csv"]
config.excludes = ["Inputs", "unit", "bench", "fuzz", "utils"]
config.test_source_root = config.ppcc_src_root + "/test"
config.test_exec_root = config.ppcc_obj_root + "/test"

# A test that hangs is a test that fails (lit needs python3-psutil for this).
if lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 300

config.environment["PATH"] = os.pathsep.join(
    [config.ppcc_obj_root + "/bin", config.llvm_tools, os.environ["PATH"]]
)
config.environment["LC_ALL"] = "C.UTF-8"
for name in ["ASAN_OPTIONS", "UBSAN_OPTIONS"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]

# AddressSanitizer reserves more address space than a limit of it leaves.
if not config.sanitized:
    config.available_features.add("address-space-limit")

# The judges that need not be installed.
if os.path.exists(config.spin):
    config.available_features.add("spin")
if os.path.exists(config.mpirun):
    config.available_features.add("mpi")

config.substitutions += [
    ("%ppcc_src_root", config.ppcc_src_root),
    ("%schedules", config.ppcc_src_root + "/lib/schedules"),
    ("%python", config.python),
    ("%cxx", config.cxx + " -std=c++20 -I" + config.ppcc_src_root + "/include"),
    ("%bin", config.ppcc_obj_root + "/bin"),
    ("%mpirun", config.mpirun),
]
