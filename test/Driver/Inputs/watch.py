"""Edits files below `ppcc --watch`. Usage: watch.py FOLDER PPCC"""
import os
import re
import subprocess
import sys
import time

folder, ppcc = sys.argv[1:]
os.chdir(folder)
body = "schedule s() { ranks 1; microbatches n(); placement linear; on rank r { repeat n() { F; } repeat n() { B; } } }\n"


def write(name, text):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.rename(name + ".new", name)


write("s.pp", 'import "n.pp";\n' + body)
command = [ppcc, "s.pp", "--watch", "--emit=actions"]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:

    def expect(what):
        output = []
        for line in process.stdout:
            if line.startswith("-- "):
                break
            output += re.findall(r"\[(E\d+)\]|^(rank .*)", line)
        print(what + ":", *("".join(one) for one in output), flush=True)

    try:
        expect("at first")
        write("n.pp", "fn n() = 1;\n")
        expect("the import is there")
        time.sleep(0.01)
        with open("n.pp", "w") as file:  # In its place.
            file.write("fn n() = 2;\n")
        expect("the import changed")
        write("s.pp", 'import "n.pp";\n' + body.replace("n()", "m", 1))
        expect("the file is another")
        write("s.pp", "fn n() = 1;\n" + body)
        expect("it is mended")
    finally:
        process.kill()
