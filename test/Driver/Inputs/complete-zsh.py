"""What zsh shows when TAB is pressed behind a line. Usage: complete-zsh.py SCRIPT LINE"""

import os
import pty
import re
import select
import sys
import time

script, line = sys.argv[1:]
process, terminal = pty.fork()
if process == 0:
    os.environ.update(TERM="dumb", PS1="> ", LINES="50", COLUMNS="200", ZDOTDIR="/nonexistent")
    os.execvp("zsh", ["zsh", "-f", "-i"])


def read_until(end, seconds):
    """What comes until it ends like that, or nothing comes for so long."""
    text, last = "", time.time()
    while not re.search(end, text) and time.time() < last + seconds:
        if select.select([terminal], [], [], 0.05)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
            last = time.time()
    return text


def send(text):
    os.write(terminal, text.encode())


# Everything that fits is listed at once, one below the other where it has a text.
send("PS1='> ' LISTMAX=1000; unsetopt zle_bracketed_paste 2>/dev/null; autoload -U compinit && compinit -D -u; ")
send(f"setopt no_list_beep auto_list list_packed; source '{script}'; echo re''ady\n")
assert "ready" in read_until(r"ready\r\n.*> ", 60), "zsh has not begun"
send(line + "\t")
shown = read_until(r"\0", 2)
send("\t")
shown += read_until(r"\0", 1)
send("\x15exit\n")
print(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\r]", "", shown))
os.close(terminal)
os.waitpid(process, 0)
