# How lit runs the tests of this folder: text in, text out, checked by FileCheck.
import glob
import os
import shutil
import subprocess
import sys

# The set-up that users get, before what only these tests need.
sys.path.insert(0, config.ppcc_src_root + "/lib/lit")
import ppcc_lit

# Only what hangs takes longer, on a loaded machine too.
ppcc_lit.configure(config, lit_config, config.ppcc_obj_root + "/bin", config.llvm_tools, timeout=1200)
config.name = "ppcc"
config.suffixes += [".ir", ".csv"]
config.excludes += ["unit", "bench", "utils"]
config.test_source_root = config.ppcc_src_root + "/test"
config.test_exec_root = config.ppcc_obj_root + "/test"

# A command that is not found keeps lit until the time of its test is over: what is not built fails by itself.
missing = config.test_exec_root + "/missing"
os.makedirs(missing, exist_ok=True)
for tool in ["ppcc-profile", "ppcc-check-proof", "ppcc-run", "ppcc-run-faults", "ppcc-run-mpi", "ppcc-run-nccl"]:
    with open(f"{missing}/{tool}", "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as script:
        script.write(f"#!/bin/sh\necho '{tool} is not built' >&2\nexit 127\n")
config.environment["PATH"] += os.pathsep + missing

for name in ["ASAN_OPTIONS", "UBSAN_OPTIONS"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]

# AddressSanitizer reserves more address space than a limit of it leaves, and its library comes before all others. What it
# checks takes several times as long, and as much memory: bounds are wider then, or left out.
config.available_features.add("sanitized" if config.sanitized else "address-space-limit")
sanitizers = widened = without_leak_check = ""
at_most_2_gb = "ulimit -v 2000000"
if config.sanitized:
    widened, at_most_2_gb = "--sanitized", ":"
    # The operations of the model of CUDA refer to each other, and a run that a fault ends leaves objects of NCCL behind.
    without_leak_check = "env ASAN_OPTIONS=detect_leaks=0"
    of_clang = ["libclang_rt.asan-x86_64.so", "libclang_rt.asan.so"]

    def found(*names):
        paths = [subprocess.run([config.cxx, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip() for name in names]
        return list(filter(os.path.isabs, paths))

    sanitizers = f"LD_PRELOAD={':'.join(found(*of_clang) or found('libasan.so', 'libubsan.so'))} ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0"

# The judges that need not be installed.
if os.path.exists(config.spin) and shutil.which("tcc"):
    config.available_features.add("spin")
if os.path.exists(config.mpirun):
    config.available_features.add("mpi")
if shutil.which("rsvg-convert"):
    config.available_features.add("rsvg")
if shutil.which("dpkg-shlibdeps"):
    config.available_features.add("dpkg")
if config.python_module:
    config.available_features.add("python-module")
if subprocess.run([config.python, "-c", "import ortools"], capture_output=True).returncode == 0:
    config.available_features.add("ortools")
if config.nccl:
    config.available_features.add("nccl")
if glob.glob("/dev/nvidia[0-9]*"):
    config.available_features.add("gpu")
if config.torch:
    config.available_features.add("libtorch")
    for folder in glob.glob("/usr/lib/*/openblas-serial"):
        config.available_features.add("openblas-serial")
        config.substitutions.append(("%openblas_serial", folder))

config.substitutions += [
    ("%ppcc_src_root", config.ppcc_src_root),
    ("%schedules", config.ppcc_src_root + "/lib/schedules"),
    ("%with_sanitizers", sanitizers),
    ("%widened", widened),
    ("%without_leak_check", without_leak_check),
    ("%at_most_2_gb", at_most_2_gb),
    ("%python", config.python),
    ("%lit", config.python + " " + config.lit),
    ("%cxx", config.cxx + " -std=c++20 -I" + config.ppcc_src_root + "/include"),
    ("%bin", config.ppcc_obj_root + "/bin"),
    ("%mpirun", config.mpirun),
]
