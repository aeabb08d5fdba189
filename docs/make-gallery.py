#!/usr/bin/env python3
"""Draws the gallery. Usage: make-gallery.py PPCC FOLDER; writes FOLDER/gallery.md, FOLDER/paper-figures.md and the pictures in
FOLDER/gallery/."""
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
    ("offload", "one_f_one_b -D P=3 -D M=6 --with=offload --cost limit=3 --memory",
     "1F1B that brings what it holds to the host and back (`--with=offload`). Each declared kind has two letters, a colour and a "
     "hatching of its own; `--memory` draws what each rank holds, and its limit."),
]

MOE = ("dualpipe --model=deepseek_moe -D layers=4 -D P=2 -D M=4 --cost=F.attention=2 --cost=F.dispatch=1 --cost=F.mlp=2 "
       "--cost=F.combine=1 --cost=B.combine=1 --cost=B.mlp=2 --cost=B.dispatch=1 --cost=B.attention=2 --cost=W.mlp=1 "
       "--cost=W.attention=1 --print-rank=1 --time-range=49..76")

# The same at the sizes of papers: a name, how it is made, the preset, and what to look at.
PAPER = [
    ("1f1b-column", "one_f_one_b -D P=4 -D M=8", "column", "1F1B (arXiv 2006.09503)."),
    ("1f1b-page", "one_f_one_b -D P=4 -D M=8", "page", "The same over both columns."),
    ("zbv-column", "zero_bubble_v -D P=4 -D M=6", "column", "ZB-V (arXiv 2405.15362); the second chunk has lighter shades and a mark in the corner."),
    ("zbv-page", "zero_bubble_v -D P=4 -D M=8", "page", "The same with more microbatches, over both columns."),
    ("dualpipe-column", "dualpipe -D P=4 -D M=8", "column", "DualPipe (arXiv 2412.19437) on four ranks."),
    ("dualpipe-page", "dualpipe -D P=8 -D M=20", "page", "DualPipe as its paper has it, on eight."),
    ("moe-column", MOE.replace("49..76", "49..63"), "column",
     "A rank of DualPipe with the inside of a layer of experts: the all-to-all of one direction runs beside the computation of the "
     "other. `at` is attention, `di` dispatch, `ml` the experts, `co` combine."),
    ("moe-page", MOE, "page", "The same, twice as long."),
]


def draw(ppcc, folder, name, arguments):
    """Draws a picture; gives its command and how a page shows it."""
    command = f"{arguments} --comm-order=none --emit=svg"
    subprocess.run([ppcc, *command.split(), "-o", folder / "gallery" / f"{name}.svg"], check=True)
    return ["", f"    ppcc {command} -o {name}.svg", "", f"![{name}](gallery/{name}.svg)", ""]


def main():
    ppcc, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    page = ["# Gallery", "", "[Figures at the sizes of papers](paper-figures.md). Drawn by `./dev gallery`; [pictures.md](pictures.md) tells how to draw your own. The times are "
            "those of the papers' figures: F, I and W take one unit, B two, messages none.", ""]
    for name, arguments, text in PICTURES:
        page += [f"## {name}", "", text, *draw(ppcc, folder, name, arguments)]
    (folder / "gallery.md").write_text("\n".join(page[:-1]) + "\n")
    page = ["# Figures for papers", "", "`--preset=column` is 85 mm wide, `--preset=page` 178 mm, with letters of 7 pt; labels give way down "
            "to 4 pt where boxes are narrow. `rsvg-convert -f pdf` makes a page of that size of each, for "
            "`\\includegraphics`. Drawn by `./dev gallery`.", ""]
    for name, arguments, preset, text in PAPER:
        page += [f"## {name}", "", text, *draw(ppcc, folder, name, f"{arguments} --preset={preset}")]
    (folder / "paper-figures.md").write_text("\n".join(page[:-1]) + "\n")


main()
