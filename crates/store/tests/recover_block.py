"""Prints all rows and points of a segment (docs/formats/store.md): `block CHUNK POSITION`, then `chunk slot archive number
value` for each cell, the value as 16 hexadecimal digits, `point chunk slot text` for each value, and
`sample chunk slot moment value` for each sample. Needs python3 and zstd; checks no crc."""
import struct, subprocess, sys
class Bytes:
    def __init__(self, data, at=0): self.data, self.at = data, at
    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]
    def varint(self):
        byte = self.take(1)[0]
        return byte if byte < 128 else byte - 128 + (self.varint() << 7)
    def signed(self):
        folded = self.varint()
        return folded >> 1 ^ -(folded & 1)
def column(raw, count):
    kind, texts, at, out = raw.take(1)[0], {}, 0, []
    for _ in range(raw.varint() if kind & 128 else 0):
        at += raw.varint()
        texts[at], at = raw.take(raw.varint()), at + 1
    steps, first, low, unit = kind >> 6 & 1, raw.signed(), raw.signed(), raw.varint()
    width = raw.take(1)[0] if unit else 0
    bits, number = int.from_bytes(raw.take(((count - steps) * width + 7) // 8), "little"), first
    for i in range(count):
        code = bits >> (i - steps) * width & (1 << width) - 1 if i >= steps else 0
        if not steps: number = first * i + low + unit * code
        elif i > 0: number += low + unit * code
        number = (number + 2**63) % 2**64 - 2**63
        digits = str(abs(number)).rjust((kind & 31) + 1, "0")
        whole, fraction = digits[:len(digits) - (kind & 31)], digits[len(digits) - (kind & 31):]
        if kind & 32: fraction = fraction.rstrip("0")
        text = "-" * (number < 0) + whole + "." * bool(fraction) + fraction
        out.append(texts.get(i, text.encode()))
    return out
def points(raw):
    while raw.at < len(raw.data):
        member, count, size, fields = raw.take(1)[0] - 16, raw.varint(), raw.varint(), raw.varint()
        columns = [column(raw, count) for _ in range(fields)] or [[raw.take(raw.varint()) for _ in range(count)]]
        yield from ((member, b":".join(value)) for value in zip(*columns))
def integers(raw, count):
    order = raw.take(1)[0]
    number, step = raw.signed() if order > 0 else 0, raw.signed() if order > 1 else 0
    low, unit = raw.signed(), raw.varint()
    width = raw.take(1)[0] if unit else 0
    bits = int.from_bytes(raw.take(((count - order) * width + 7) // 8), "little")
    out = [number, number + step][:order]
    for i in range(count - order):
        code = low + unit * (bits >> i * width & (1 << width) - 1)
        if order == 2: step = code = step + code
        out.append(out[-1] + code if order else code)
    return [(number + 2**63) % 2**64 - 2**63 for number in out]
def samples(raw):
    moments = []
    while raw.at < len(raw.data):
        member, count, _, flags = raw.take(1)[0] - 32, raw.varint(), raw.varint(), raw.take(1)[0]
        count, before = count >> 1, count & 1
        if not flags & 1: moments = integers(raw, count)
        if flags & 2:
            planes, last, values = raw.take(8 * count), 0, []
            for i in range(count):
                last ^= int.from_bytes(bytes(planes[plane * count + i] for plane in range(8)), "big")
                values.append(last)
        else:
            digits, others, at = raw.take(1)[0], {}, 0
            for _ in range(raw.varint()):
                at += raw.varint()
                others[at], at = struct.unpack("<Q", raw.take(8))[0], at + 1
            numbers = [number / 10**digits for number in integers(raw, count)]
            values = [others.get(i, struct.unpack("<Q", struct.pack("<d", number))[0]) for i, number in enumerate(numbers)]
        yield from ((member, moment, value) for moment, value in list(zip(moments, values))[before:])
def rows(raw):
    first, parts = 0, []
    for _ in range(raw.varint()):
        member, step = raw.take(1)[0], raw.varint()
        number = first = first + (step >> 1 ^ -(step & 1)) & 2**64 - 1
        for part in [raw.varint() for _ in range(raw.varint())]:
            parts.append((member, number, part >> 1, 1 if part & 1 else part >> 1))
            number += part >> 1
    row_bytes = (len(raw.data) - raw.at) // max(1, sum(part[3] for part in parts))
    for member, number, length, stored in parts:
        cells = [struct.unpack(f"<{row_bytes // 8}Q", raw.take(row_bytes)) for _ in range(stored)]
        yield from ((member, number + row, cell) for row in range(length) for cell in cells[min(row, stored - 1)])
def frame(head, frames, same=()):
    size = head.varint()
    if size == 0 or size & 1: return same[size >> 1] if size else b"\0"
    head.varint(), head.take(4)  # length when unpacked, crc
    return subprocess.run(["zstd", "-dc"], input=frames.take(size >> 1), stdout=subprocess.PIPE, check=True).stdout
segment, at = open(sys.argv[1], "rb").read(), 4096
while at < len(segment):
    head_len, length, chunk, generation, position = struct.unpack_from("<IIIQQ", segment, at + 12)
    head, frames, _ = Bytes(segment, at + 56), Bytes(segment, at + head_len), print("block", chunk, position)
    stamp, archives, names = head.varint(), [head.varint() for _ in range(head.varint())], frame(head, frames)
    for _ in range(head.varint()):
        stripe, state, points_raw, columns = head.take(1)[0], frame(head, frames), frame(head, frames), []
        if points_raw[0] >= 32:
            for member, moment, value in samples(Bytes(points_raw)):
                print("sample", chunk, stripe * 16 + member, moment, f"{value:016x}")
            points_raw = b"\0"
        for member, text in points(Bytes(points_raw)) if points_raw != b"\0" else ():
            print("point", chunk, stripe * 16 + member, text.decode())
        for archive in range(len(archives)):
            columns.append(frame(head, frames, columns))  # an empty one for none
            for member, number, cell in rows(Bytes(columns[-1])):
                print(chunk, stripe * 16 + member, archive, number, f"{cell:016x}")
    at += length
