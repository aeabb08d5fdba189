"""The C++ engine: engine.cpp with CUDA and the NCCL of PyTorch's wheel, or with the model of both.

    engine.py build
    engine.py plain|memcheck run|graph|host-waits|throw PROGRAM...
    engine.py model
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from results import check, figure, seconds_left, skipped

WORK = Path(os.environ["PPCC_WORK"])
HERE = Path(__file__).resolve().parent
FLAGS = ["-std=c++20", "-O0", f"-I{HERE}/include"]
LIBRARY = WORK / "programs.so"


def symbol_of(path: Path) -> str:
    return path.stem.replace("-", "_")


def compile_all(what: str, *command: object) -> bool:
    began = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds_left())
    check(f"{what} compiles", done.returncode == 0, done.stderr)
    figure(f"{what}: compiled in", time.monotonic() - began, "s")
    return done.returncode == 0


def folders() -> list[Path]:
    """Where CUDA and NCCL may be: nvcc's, and those of PyTorch's wheels."""
    found = []
    if nvcc := shutil.which("nvcc"):
        found.append(Path(nvcc).resolve().parents[1])
    spec = importlib.util.find_spec("nvidia")
    for site in (spec.submodule_search_locations or []) if spec else []:
        found += [folder for folder in sorted(Path(site).iterdir()) if folder.is_dir()]
    return [*found, Path("/usr/local/cuda"), Path("/usr")]


def find(*names: str) -> Path | None:
    """The first file of these names, below one of the folders."""
    for folder in folders():
        for name in names:
            for path in sorted(folder.glob(name)):
                return path
    return None


def build() -> None:
    """By nvcc, which finds CUDA itself; without it by g++, with the headers of PyTorch's wheels."""
    if not shutil.which("g++"):
        return skipped("the engine compiles", "no g++", 2)
    sources = sorted((HERE / "programs/cpp").glob("*.cpp"))
    text = [f'#define ppcc_data data_{symbol_of(path)}\n#include "{path}"\n#undef ppcc_data\n' for path in sources]
    (WORK / "programs.cpp").write_text("".join(text))
    if nvcc := shutil.which("nvcc"):
        home = Path(nvcc).resolve().parents[1]
        compiler: list[object] = [nvcc, f"-L{home}/lib64", f"-L{home}/lib"]
        wanted, to_compiler, to_linker = [("nccl.h", "include/nccl.h")], ["-Xcompiler"], ["-Xlinker"]
    else:
        compiler, to_compiler, to_linker = ["g++"], [], []
        wanted = [("nccl.h", "include/nccl.h"), ("cuda_runtime_api.h", "include/cuda_runtime_api.h")]
        wanted += [("crt/host_defines.h", "include/crt/host_defines.h"), ("nv/target", "include/nv/target")]
    name = Path(str(compiler[0])).name
    compile_all(f"emitted C++ by {name}", *compiler, *FLAGS, "-shared", *to_compiler, "-fPIC", WORK / "programs.cpp", "-o", LIBRARY)
    headers = {header: find(pattern) for header, pattern in wanted}
    libraries = [find("lib64/libnccl.so*", "lib/libnccl.so*", "lib/*/libnccl.so*")]
    libraries += [] if nvcc else [find("lib64/libcudart.so*", "lib/libcudart.so*")]
    missing = [header for header, path in headers.items() if path is None] + ["libnccl or libcudart"] * (None in libraries)
    if missing:
        return skipped("the engine compiles", f"not here: {', '.join(missing)}")
    includes = {str(path)[: -len(header) - 1] for header, path in headers.items()} - {"/usr/include"}
    options = [word for folder in sorted(includes) for word in ("-isystem", folder)]
    links = [word for path in libraries if path for one in (path, f"-rpath={path.parent}") for word in (*to_linker, one)]
    if not nvcc:
        links = [f"-Wl,{word}" if str(word).startswith("-rpath") else word for word in links]
    engine = WORK / "engine.new"
    if compile_all(f"the engine by {name}", *compiler, *FLAGS, *options, HERE / "engine.cpp", "-o", engine, *links, "-ldl", *to_compiler, "-pthread"):
        done = subprocess.run([engine], capture_output=True, text=True, timeout=60)
        check("the engine is linked with NCCL", done.stdout.startswith("NCCL "), done.stdout + done.stderr)
        print(done.stdout)
        engine.rename(WORK / "engine")


def arguments(patterns: list[str]) -> tuple[int, list[str]]:
    """The number of ranks, and the programs as the engine wants them."""
    paths = [path for pattern in patterns for path in sorted(HERE.glob(pattern))]
    (ranks,) = {int(path.stem.split("-")[-2]) for path in paths}
    return ranks, [str(path) if path.suffix == ".json" else f"{LIBRARY}:{symbol_of(path)}" for path in paths]


def run(tool: str, mode: str, patterns: list[str]) -> None:
    """On a GPU: a process for each rank."""
    import torch
    from tests.interop.where import environment_of_rank

    ranks, programs = arguments(patterns)
    prefix = []
    if tool == "memcheck":
        if not shutil.which("compute-sanitizer"):
            return skipped("memcheck", "no compute-sanitizer")
        prefix = ["compute-sanitizer", "--tool", "memcheck", "--track-stream-ordered-races", "all", "--error-exitcode", "9"]
    modes = [] if mode == "run" else [mode]
    gpus, logs, began = torch.cuda.device_count(), [], time.monotonic()
    processes, meeting = [], WORK / f"id-{time.time_ns()}"
    for rank in range(ranks):
        logs.append(WORK / f"rank{rank}.log")
        environment = {**os.environ, **environment_of_rank(rank, ranks, gpus), "CUDA_VISIBLE_DEVICES": str(rank % gpus)}
        command = [*prefix, str(WORK / "engine"), *modes, str(rank), str(meeting), *programs]
        with logs[-1].open("w") as log:
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
    for rank, process in enumerate(processes):
        try:
            code = process.wait(max(1, seconds_left()))
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        output = logs[rank].read_text(errors="replace")
        print(f"rank {rank}:\n{output}", flush=True)
        if mode == "throw":
            check(f"rank {rank} ends, and says why", code == 1 and "out of luck" in output, f"exit code {code}\n{output}")
        else:
            whole = f"{len(programs)} of {len(programs)} programs" in output and ", 0 failed" in output
            check(f"rank {rank}: {len(programs)} programs {mode}", code == 0 and whole, f"exit code {code}\n{output}")
    figure(f"{len(programs)} programs, {tool} {mode}", time.monotonic() - began, "s")


def model() -> None:
    """The same on the model, ranks as threads; test/Runtime/gpu-engine.test runs all programs."""
    if not shutil.which("g++"):
        return skipped("the engine on the model", "no g++")
    binary = WORK / "engine-model"
    sources = [HERE / "engine.cpp", HERE / "cuda-model/Model.cpp"]
    if not compile_all("the engine on the model", "g++", *FLAGS, f"-I{HERE}/cuda-model", *sources, "-o", binary, "-ldl", "-pthread"):
        return
    for mode, pattern in [
        ("graph", "programs/one/*.json"),
        ("host-waits", "programs/all/*-4-9.json"),
        ("run", "programs/edges/*-4-4.json"),
        ("graph", "programs/cpp/*-2-2.cpp"),
    ]:
        if pattern.endswith(".cpp") and not LIBRARY.exists():
            skipped(f"{pattern} {mode}", "the programs were not compiled")
            continue
        ranks, programs = arguments([pattern])
        modes = [] if mode == "run" else [mode]
        done = subprocess.run([binary, *modes, *programs], capture_output=True, text=True, timeout=seconds_left())
        whole = re.findall(r"^rank \d+: (\d+) of \1 programs, .* 0 failed$", done.stdout, re.M)
        check(f"{pattern} {mode}", done.returncode == 0 and whole == [str(len(programs))] * ranks, done.stdout + done.stderr)
    ranks, programs = arguments(["programs/all/one_f_one_b-2-2.json"])
    done = subprocess.run([binary, "throw", *programs], capture_output=True, text=True, timeout=seconds_left())
    check("a stage throws", done.returncode == 1 and "the stage threw: out of luck" in done.stdout, done.stdout)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build()
    elif sys.argv[1] == "model":
        model()
    else:
        run(sys.argv[1], sys.argv[2], sys.argv[3:])
