#!/usr/bin/env python3
"""Draws the gallery. Usage: make-gallery.py PPCC FOLDER; writes FOLDER/gallery.md and the pictures in FOLDER/gallery/."""
import subprocess
import sys
from pathlib import Path

# The name of the picture, how it is made, and what to look at.
PICTURES = [
    ("dualpipe", "dualpipe -D P=8 -D M=20",
     "DualPipe, as figure 5 of the DeepSeek-V3 report (arXiv 2412.19437) has it: 8 ranks, 20 microbatches, ten in each "
     "direction. The figure leaves out the numbers of the second direction, which are 10 to 19 here, in lighter shades. "
     "Forwards and backwards that overlap share a box; without costs a pair takes as long as both."),
    ("interleaved_1f1b", "interleaved_1f1b -D P=8 -D V=2 -D M=16",
     "Interleaved 1F1B, as figure 4 of Megatron-LM's paper (arXiv 2104.04473) has it for 4 ranks: two chunks a rank, the "
     "second in lighter shades, in groups of as many microbatches as there are ranks."),
    ("zero_bubble_v", "zero_bubble_v -D P=4 -D M=8",
     "ZB-V (arXiv 2405.15362): stages go down the ranks and up again, so rank 0 has the first and the last. When F, I and W "
     "take the same time there is no bubble between the first and the last action of a rank."),
    ("arrows", "one_f_one_b -D P=4 -D M=6 --arrows",
     "1F1B with an arrow for each result that another rank reads (`--arrows`)."),
]


def main():
    ppcc, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    page = ["# Gallery", "", "Drawn by `./dev gallery`; [pictures.md](pictures.md) tells how to draw your own. The times are "
            "those of the papers' figures: F, I and W take one unit, B two, messages none.", ""]
    for name, arguments, text in PICTURES:
        command = f"{arguments} --comm-order=none --emit=svg"
        picture = folder / "gallery" / f"{name}.svg"
        subprocess.run([ppcc, *command.split(), "-o", picture], check=True)
        page += [f"## {name}", "", text, "", f"    ppcc {command} -o {name}.svg", "", f"![{name}](gallery/{name}.svg)", ""]
    (folder / "gallery.md").write_text("\n".join(page[:-1]) + "\n")


main()
