"""Output files of other users, in folders where everybody may write; as root and as nobody."""
import os
import subprocess
import shutil

NOBODY = 65534


def run(as_user, path):
    if as_user == 0:
        return subprocess.run(["ppcc", "gpipe", "-o", path], capture_output=True, text=True)
    return subprocess.run(
        ["setpriv", f"--reuid={as_user}", f"--regid={as_user}", "--clear-groups", "ppcc", "gpipe", "-o", path],
        capture_output=True,
        text=True,
    )


def main():
    os.mkdir("open")
    os.chmod("open", 0o777)
    folder = os.path.abspath("open")
    for owner, user in ((NOBODY, 0), (0, NOBODY)):
        if user and (not shutil.which("setpriv") or run(user, "/dev/null").returncode != 0):
            continue  # It cannot run ppcc, or reach this folder.
        for mode in (0o644, 0o666, 0o444):
            path = f"{folder}/{owner}-{mode:o}"
            open(path, "w").write("old")
            os.chmod(path, mode)
            os.chown(path, owner, owner)
            done = run(user, path)
            assert done.returncode == 1 and "it belongs to another user [E0102]" in done.stderr, (owner, user, done)
            assert open(path).read() == "old" and os.stat(path).st_uid == owner
    mine = f"{folder}/mine"
    assert run(0, mine).returncode == 0 and run(0, mine).returncode == 0


if os.geteuid() == 0:
    main()
print("other users' files are kept")
