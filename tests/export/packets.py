# SPDX-License-Identifier: Apache-2.0
"""Reads protobuf by its encoding alone, and Perfetto's packets out of it: as much as the tests ask for.
Knows nothing of the writer; numbers of fields are from Perfetto's .proto files."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at
        assert shift < 70, "a varint without an end"


def fields(data):
    """[(number, value)]: ints, or bytes of texts and messages. Every byte is accounted for."""
    out, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        assert number > 0
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a message that is cut"
        else:
            raise AssertionError(f"wire type {wire}")
        out.append((number, value))
    assert at == len(data)
    return out


def one(pairs, number, default=None):
    found = [v for n, v in pairs if n == number]
    assert len(found) <= 1, (number, found)
    return found[0] if found else default


TYPES = {1: "begin", 2: "end", 3: "instant", 4: "counter"}


class Trace:
    """tracks: uuid -> (name, parent); events: dicts in the file's order."""

    def __init__(self, data):
        self.tracks, self.events, self.clocks, self.process = {}, [], {}, None
        self.interned = {1: {}, 2: {}, 3: {}, 4: {}}
        packets = fields(data)
        assert packets and all(number == 1 for number, _ in packets)
        for i, (_, packet) in enumerate(packets):
            self.packet(fields(packet), i == 0)

    def packet(self, packet, first):
        assert one(packet, 10) == 1, "one sequence"
        assert one(packet, 13) == (1 if first else 2), "state is cleared once, by the first packet"
        interned = one(packet, 12)
        for table, entry in fields(interned) if interned else []:
            entry = fields(entry)
            assert one(entry, 1) not in self.interned[table], "interned twice"
            self.interned[table][one(entry, 1)] = (one(entry, 2).decode() if table != 4 else
                                                   (one(entry, 2).decode(), one(entry, 3, b"").decode(), one(entry, 4)))
        if one(packet, 60):
            self.track(fields(one(packet, 60)))
        elif one(packet, 11):
            self.event(one(packet, 8), fields(one(packet, 11)))
        else:
            for _, clock in fields(one(packet, 6)):
                clock = fields(clock)
                self.clocks[one(clock, 1)] = one(clock, 2)

    def track(self, track):
        name = one(track, 2, b"").decode()
        if one(track, 4):
            name = one(fields(one(track, 4)), 5).decode()
        if one(track, 3):
            self.process = (one(fields(one(track, 3)), 1), one(fields(one(track, 3)), 6).decode())
        assert one(track, 1) not in self.tracks
        self.tracks[one(track, 1)] = (name, one(track, 5), one(track, 8) is not None)

    def event(self, ts, event):
        assert one(event, 11) in self.tracks, "an event on no track"
        args = {}
        for number, value in event:
            if number == 4:
                arg = fields(value)
                raw = one(arg, 3, one(arg, 6))
                args[self.interned[3][one(arg, 1)]] = (
                    struct.unpack("<d", struct.pack("<Q", one(arg, 5)))[0] if one(arg, 5) is not None
                    else raw.decode() if isinstance(raw, bytes) else raw)
        self.events.append({
            "ts": ts, "type": TYPES[one(event, 9)], "track": self.tracks[one(event, 11)][0], "uuid": one(event, 11),
            "name": self.interned[2].get(one(event, 10)), "category": self.interned[1].get(one(event, 3)),
            "value": one(event, 30), "source": self.interned[4].get(one(event, 34)), "args": args})
