#!/usr/bin/env python3
"""What ppcc holds of others, as a CycloneDX file: sbom.py BUILD, with cyclonedx-python-lib, which `./dev sbom` installs. With --check, and nothing
but Debian's tools: whether NOTICE names all of it, under licenses that Debian's packages name, too.

What the compiler has read and linked tells which packages these are, so that one nobody has listed is an error."""
import argparse
import datetime
import os
import re
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Part:
    notice: str
    """What NOTICE calls it."""
    license: str
    """As SPDX."""
    debian: tuple[str, ...]
    """What stands in Debian's file of its licenses."""


LLVM = "Apache-2.0 WITH LLVM-exception AND NCSA AND BSD-2-Clause AND CC0-1.0"
PARTS = {
    r"libantlr4-runtime-dev": Part("The C++ runtime of ANTLR 4", "BSD-3-Clause AND MIT", ("License: BSD-3-Clause", "License: MIT")),
    r"llvm-\d+-dev": Part("LLVM's support library", LLVM, ("License: APACHE-2-LLVM-EXCEPTIONS",)),
    r"libfmt-dev": Part("{fmt}", "MIT", ("License: Expat",)),
    r"libcli11-dev": Part("CLI11", "BSD-3-Clause", ("License: BSD-3-clause",)),
    r"libstdc\+\+-\d+-dev|libgcc-\d+-dev": Part("GNU's libstdc++ and libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1", ("GCC RUNTIME LIBRARY EXCEPTION",)),
}
DECLARED = r"libc6-dev|linux-libc-dev|libpython3\S*-dev|uuid-dev"
"""Only declarations of these are read: the system has the libraries."""


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def packages(build: Path) -> list[str]:
    """Debian's packages of all headers that the compiler has read for ppcc and its module, and of the archives in both."""
    target, files = "", set()
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            target = line.split(":")[0]
        elif re.match("(lib|tools|python)/", target) and line.startswith("    /usr/"):
            files.add(line.strip())
    for program in "bin/ppcc", "ppcc_native":
        files.update(re.findall(r" (/usr/\S+\.a)(?= )", output("ninja", "-C", str(build), "-t", "commands", program)))
    found = sorted({line.split(":")[0] for line in output("dpkg-query", "-S", *sorted(files)).splitlines()})
    assert found, f"{build} has compiled nothing"
    return [name for name in found if not re.fullmatch(DECLARED, name)]


def part_of(package: str) -> Part:
    for pattern, part in PARTS.items():
        if re.fullmatch(pattern, package):
            return part
    sys.exit(f"ppcc holds parts of {package}: say in NOTICE and in {Path(__file__).name} under which license")


def check(names: list[str]) -> None:
    notice = (ROOT / "NOTICE").read_text()
    for name in names:
        part, licenses = part_of(name), Path("/usr/share/doc", name, "copyright").read_text(errors="replace")
        assert f"\n- {part.notice}" in notice, f"NOTICE does not name {part.notice}"
        missing = [words for words in part.debian if words not in licenses]
        assert not missing, f"Debian's {name} has no {missing}"
        print(f"{name}: {part.license}")


def write(names: list[str]) -> None:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.license import LicenseExpression
    from cyclonedx.output.json import JsonV1Dot6
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from packageurl import PackageURL

    def component(name: str, version: str, license: str, kind: ComponentType, purl: PackageURL | None = None) -> Component:
        return Component(name=name, version=version, type=kind, licenses=[LicenseExpression(license)], purl=purl, bom_ref=name)

    version = re.search(r"project\(ppcc VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert version is not None
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"ppcc {version[1]} {made}"))
    bom.metadata.timestamp = made
    own = bom.metadata.component = component("ppcc", version[1], "Apache-2.0 WITH LLVM-exception", ComponentType.APPLICATION)
    for name in names:
        installed = output("dpkg-query", "-W", "-f=${Version}\n", name).splitlines()[0]
        bom.components.add(component(name, installed, part_of(name).license, ComponentType.LIBRARY, PackageURL("deb", "debian", name, installed)))
    bom.register_dependency(own, bom.components)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert problem is None, problem
    print(text)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", type=Path)
parser.add_argument("--check", action="store_true")
options = parser.parse_args()
(check if options.check else write)(packages(options.build))
