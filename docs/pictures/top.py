#!/usr/bin/env python3
"""Pictures of `kymo top` and `kymo why` for docs/top.md, docs/hosts.md and docs/why.md: docs/pictures/top.py KYMO RECORDING HOSTS
[PICTURE...]; the recording is of a machine with a spike, HOSTS a folder of recordings, each named after its host.

Prints the screen once for each picture, that of hosts in tmux, and writes its text as SVG beside this file."""

import fcntl
import html
import os
import pathlib
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time

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


def hosts(kymo, folder, columns, lines, keys):
    """The screen of hosts, after these keys."""
    with tempfile.TemporaryDirectory() as place:
        way = pathlib.Path(place) / "way"
        way.write_text(f'#!/bin/sh\nexec {kymo} feed --stdio --data {folder}/"$6"\n')
        way.chmod(0o755)
        tmux = ["tmux", "-u", "-L", f"kymo-{os.getpid()}"]
        words = " ".join(f"{one.name}:" for one in sorted(pathlib.Path(folder).iterdir()))
        command = f"KYMO_SSH={way} LC_ALL=C.UTF-8 {kymo} top {words}"
        subprocess.run([*tmux, "new-session", "-d", "-x", str(columns), "-y", str(lines), command], check=True)
        for key in keys:
            time.sleep(2)
            subprocess.run([*tmux, "send-keys", key], check=True)
        time.sleep(2)
        shown = subprocess.run([*tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True)
        subprocess.run([*tmux, "kill-server"], check=True)
        return shown.stdout


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
    kymo, recording, folder, *names = sys.argv[1:]
    pictures = pathlib.Path(__file__).parent
    if not names or "hosts-80.svg" in names:
        (pictures / "hosts-80.svg").write_text(svg(hosts(kymo, folder, 80, 24, "xx"), 80, 24))
    for name, columns, lines, words in PICTURES:
        if names and name not in names:
            continue
        text = screen(kymo, recording, columns, lines, words)
        lines = lines or len(text.splitlines())
        (pictures / name).write_text(svg(text, columns, lines))


main()
