#!/usr/bin/env python3
"""Pictures of `kymo top` and `kymo why` for docs/top.md and docs/why.md: docs/pictures/top.py KYMO RECORDING [PICTURE...]; the
recording is of a machine with a spike.

Prints the screen once for each picture, and writes its text as SVG beside this file."""

import fcntl
import html
import os
import pathlib
import pty
import struct
import subprocess
import sys
import termios

# File name, columns, lines and words of each picture.
PICTURES = [
    ("top-80.svg", 80, 24, ["top", "REC", "--once", "--keys", "x"]),
    ("top-200.svg", 200, 40, ["top", "REC", "--once", "--keys", "xt"]),
    ("why-80.svg", 80, 0, ["why", "REC"]),
]
CELL = (7.25, 15)


def screen(kymo, recording, columns, lines, words):
    """Text that the command writes to a terminal of this size; with `lines` 0 the picture is as long as the text."""
    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines or 24, columns, 0, 0))
    size = {"COLUMNS": str(columns), "LINES": str(lines or 24), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    folder, name = os.path.split(os.path.abspath(recording))
    command = [os.path.abspath(kymo)] + [name if word == "REC" else word for word in words]
    with subprocess.Popen(command, env=os.environ | size, cwd=folder, stdout=terminal) as running:
        os.close(terminal)
        text = b""
        while part := read(own):
            text += part
    assert running.returncode == 0, command
    return text.decode().replace("\r\n", "\n")


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Nobody writes to it any more.
        return b""


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
    kymo, recording, *names = sys.argv[1:]
    for name, columns, lines, words in PICTURES:
        if names and name not in names:
            continue
        text = screen(kymo, recording, columns, lines, words)
        lines = lines or len(text.splitlines())
        (pathlib.Path(__file__).parent / name).write_text(svg(text, columns, lines))


main()
