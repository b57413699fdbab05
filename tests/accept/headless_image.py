# SPDX-License-Identifier: Apache-2.0
"""Pictures for headless.py with nothing but Python: Xvfb's frame buffer, PNG in and out."""

import struct
import zlib


class Image:
    """RGB, 8 bits each, rows without padding."""

    def __init__(self, width, height, pixels):
        assert len(pixels) == width * height * 3
        self.width, self.height, self.pixels = width, height, pixels

    def crop(self, x, y, width, height):
        assert 0 <= x and x + width <= self.width and 0 <= y and y + height <= self.height
        rows = (self.row(y + i)[x * 3 : (x + width) * 3] for i in range(height))
        return Image(width, height, b"".join(rows))

    def row(self, y):
        return self.pixels[y * self.width * 3 : (y + 1) * self.width * 3]

    def differing(self, other):
        """How many pixels are not the same; all, if the sizes are not."""
        if (self.width, self.height) != (other.width, other.height):
            return max(len(self.pixels), len(other.pixels)) // 3
        if self.pixels == other.pixels:
            return 0
        a, b = self.pixels, other.pixels
        return sum(a[i : i + 3] != b[i : i + 3] for i in range(0, len(a), 3))

    def colours(self):
        p = self.pixels
        return len({p[i : i + 3] for i in range(0, len(p), 3)})

    def used(self):
        """Without the black of an empty screen at the right and at the bottom."""
        empty = bytes(self.width * 3)
        height = max((y + 1 for y in range(self.height) if self.row(y) != empty), default=0)
        width = max((len(self.row(y).rstrip(b"\0")) + 2 for y in range(height)), default=0) // 3
        return self.crop(0, 0, width, height)


def read_xwd(path):
    """The file that Xvfb -fbdir keeps: 24 bits of colour in 32, least byte first."""
    with open(path, "rb") as f:
        data = f.read()
    header = struct.unpack(">25I", data[:100])
    size, bits, stride, colours = header[0], header[11], header[12], header[19]
    width, height = header[4], header[5]
    assert bits == 32 and header[7] == 0, "not the kind of screen that was asked for"
    start = size + colours * 12
    rows = []
    for y in range(height):
        row = data[start + y * stride : start + y * stride + width * 4]
        rgb = bytearray(width * 3)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        rows.append(bytes(rgb))
    return Image(width, height, b"".join(rows))


def _chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_png(path, image):
    rows = b"".join(b"\0" + image.row(y) for y in range(image.height))
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header)
                + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b""))


def _unfilter(kind, row, above, step):
    for i in range(len(row)):
        left = row[i - step] if i >= step else 0
        up = above[i]
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            corner = above[i - step] if i >= step else 0
            p = left + up - corner
            guess = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
        row[i] = (row[i] + guess) & 255


def read_png(path):
    """RGB or RGBA of 8 bits, not interlaced; alpha is left out."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and not interlaced
            step = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw = zlib.decompress(packed)
    above, rows = bytearray(width * step), []
    for y in range(height):
        start = y * (width * step + 1)
        row = bytearray(raw[start + 1 : start + 1 + width * step])
        if raw[start]:
            _unfilter(raw[start], row, above, step)
        above = row
        if step == 4:
            row = bytearray(width * 3)
            row[0::3], row[1::3], row[2::3] = above[0::4], above[1::4], above[2::4]
        rows.append(bytes(row))
    return Image(width, height, b"".join(rows))
