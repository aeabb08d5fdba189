"""lit for schedules. In a lit.cfg.py: `import ppcc_lit; ppcc_lit.configure(config, lit_config)`."""
import os
import shutil

import lit.formats

# Where an installed copy of this file stands: PREFIX/share/ppcc/lit.
_prefix = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", ".."))


def find_llvm_tools():
    """The folder of FileCheck and `not`: that on PATH, else that of the newest `FileCheck-N`; None without."""
    names = ["FileCheck"] + [f"FileCheck-{version}" for version in range(40, 13, -1)]
    for found in filter(None, map(shutil.which, names)):
        folder = os.path.dirname(os.path.realpath(found))
        if all(os.access(os.path.join(folder, tool), os.X_OK) for tool in ["FileCheck", "not"]):
            return folder
    return None


def configure(config, lit_config, bin_dir=None, llvm_tools=None, timeout=300):
    """Sets up a suite whose tests are shell commands in comments, checked by FileCheck.

    `ppcc` and `ppcc-profile` in RUN lines are those of `bin_dir`, by default those installed with this file;
    `FileCheck` and `not` are those of `llvm_tools`, by default those of the system. Tests are the .pp and .test files;
    folders called Inputs are not searched. One that runs longer than `timeout` seconds fails, if the Python package
    psutil is there. Whatever is set here can be changed afterwards.
    """
    bin_dir = bin_dir or os.path.join(_prefix, "bin")
    if not os.access(os.path.join(bin_dir, "ppcc"), os.X_OK):
        lit_config.fatal(f"there is no ppcc in {bin_dir}: install it there, or give `bin_dir`")
    llvm_tools = llvm_tools or find_llvm_tools()
    if not llvm_tools:
        lit_config.fatal(
            "FileCheck and not are not on PATH: install LLVM's tools (llvm-19-tools in Debian), or give `llvm_tools`"
        )
    config.test_format = lit.formats.ShTest(execute_external=False)
    config.suffixes = [".pp", ".test"]
    config.excludes = ["Inputs"]
    config.environment["PATH"] = os.pathsep.join([bin_dir, llvm_tools, os.environ["PATH"]])
    config.environment["LC_ALL"] = "C.UTF-8"
    # A test that hangs is a test that fails.
    if lit_config.maxIndividualTestTimeIsSupported[0]:
        lit_config.maxIndividualTestTime = timeout
