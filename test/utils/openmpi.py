"""Open MPI on one machine, in containers too, with more ranks than cores."""
import contextlib
import tempfile

SETTINGS = {"btl": "self,vader", "pml": "ob1", "btl_vader_single_copy_mechanism": "none", "mpi_yield_when_idle": "1"}
NO_LEAKS = "ASAN_OPTIONS=detect_leaks=0"  # Open MPI itself leaves memory behind.


@contextlib.contextmanager
def mpirun(ranks, *options, program="mpirun"):
    """The command line that starts `ranks` processes, up to their program."""
    command = [program, "--oversubscribe", "--allow-run-as-root", *options]
    command += ["-x", NO_LEAKS]
    for name, value in SETTINGS.items():
        command += ["--mca", name, value]
    # Two mpirun that start at once quarrel about a folder for both.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield [*command, "--mca", "orte_tmpdir_base", folder, "-np", str(ranks)]
