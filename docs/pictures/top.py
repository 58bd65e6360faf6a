#!/usr/bin/env python3
"""Pictures of `kymo top` for docs/top.md: docs/pictures/top.py KYMO RECORDING; the recording is of a machine with a spike.

Prints the screen once for each picture, and writes its text as SVG beside this file."""

import html
import os
import pathlib
import subprocess
import sys

# File name, columns, lines and keys of each picture.
PICTURES = [("top-80.svg", 80, 24, "x"), ("top-200.svg", 200, 40, "xt")]
CELL = (7.25, 15)


def screen(kymo, recording, columns, lines, keys):
    size = {"COLUMNS": str(columns), "LINES": str(lines), "LC_ALL": "C.UTF-8"}
    command = [kymo, "top", recording, "--once", "--keys", keys]
    return subprocess.run(command, env=os.environ | size, check=True, capture_output=True, text=True).stdout


def svg(text, columns, lines):
    width, height = columns * CELL[0] + 20, lines * CELL[1] + 20
    rows = [
        f'<text x="10" y="{10 + (at + 1) * CELL[1] - 4}" xml:space="preserve">{html.escape(row)}</text>'
        for at, row in enumerate(text.splitlines())
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="DejaVu Sans Mono, monospace" '
        'font-size="12" fill="#d8dee9">',
        f'<rect width="{width:g}" height="{height:g}" rx="6" fill="#1b1f27"/>',
        *rows,
        "</svg>\n",
    ])


def main():
    kymo, recording = sys.argv[1:]
    for name, columns, lines, keys in PICTURES:
        text = screen(kymo, recording, columns, lines, keys)
        (pathlib.Path(__file__).parent / name).write_text(svg(text, columns, lines))

main()
