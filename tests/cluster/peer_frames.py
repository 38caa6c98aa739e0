"""Peers that speak HTTP/2 by hand: any frame, of any size, in any order, at any rate."""
import dataclasses
import socket
import struct
import threading
import time

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY = 1, 4, 8, 32
NAMES = ['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY', 'WINDOW_UPDATE', 'CONTINUATION']
# What nobody sends who means it, and no server need take without an answer to give: frames, fields of headers, bytes, seconds.
MOST_FRAMES = 500000
MOST_FIELDS = 20000000
MOST_BYTES = 64 << 20
MOST_SECONDS = 10


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream & 0xffffffff) + payload


def literal(name, value, is_indexed=False):
    """A header as it is: no Huffman code."""
    def text(s):
        return bytes([len(s)]) + s
    return (b'\x40' if is_indexed else b'\0') + text(name) + text(value)


def request(path):
    return b''.join(literal(*pair) for pair in [(b':method', b'POST'), (b':scheme', b'http'), (b':path', path), (b':authority', b'x'),
                                                (b'content-type', b'application/grpc')])


@dataclasses.dataclass
class Unit:
    """Frames that are sent again and again, on one stream or on a new one each time."""
    parts: list  # (kind, flags, where: 'none', 'same', 'new', payload)
    fields: int  # of headers in it
    text: str

    def encode(self, turn):
        streams = {'none': 0, 'same': 1, 'new': 2 * turn + 1}
        return b''.join(frame(kind, flags, streams[where], payload) for kind, flags, where, payload in self.parts)

    def repeat(self, turn, count):
        if all(where != 'new' for _, _, where, _ in self.parts):
            return self.encode(turn) * count
        return b''.join(self.encode(i) for i in range(turn, turn + count))


def draw_block(chance, path):
    """Headers: of a request or not, with fields as they are, or taken from a table by one byte each. The first time that it is sent,
    it may put into the table what it refers to later."""
    is_request = chance.random() < 0.7
    count = int(2 ** chance.uniform(0, 13)) if chance.random() < 0.6 else chance.randrange(4)
    kind = chance.choice(['static', 'table', 'text', 'sizes'])
    block = b'\x3f\xe1\x1f' if kind == 'sizes' else b''  # of the table, which is said before any field
    block += request(path) if is_request else b''
    if kind == 'static':
        field = bytes([0x80 | chance.choice([15, 16, 19, 20, 28, 50])])
    elif kind == 'table':
        block += literal(b'name', bytes(chance.choice([1, 4, 60])), is_indexed=True)
        field = bytes([0x80 | 62])
    else:
        field = literal(b'a%d' % chance.randrange(100), b'b' * chance.choice([0, 1, 100]))
    count = min(count, 15000 // len(field))
    return block + field * count, count + 5 * is_request, f'{"request" if is_request else "headers"} with {count} fields ({kind})'


def draw_frame(chance, path):
    kind = chance.choice([DATA, DATA, HEADERS, HEADERS, PRIORITY, RESET, SETTINGS, PING, WINDOW, CONTINUATION, GOAWAY, PUSH, 0xfe])
    size = chance.choice([0, 0, 1, 5, 8, 40, 300, 16384])
    flags = chance.choice([0, 0, 0, 1, 4, 5]) if chance.random() < 0.9 else chance.randrange(256)
    where = chance.choice(['none', 'same', 'new'])
    fields = 0
    is_right = chance.random() < 0.9
    payload, text = bytes(chance.randrange(256) for _ in range(min(size, 8))).ljust(size, b'\0'), ''
    if kind == DATA and is_right:
        where, flags = chance.choice(['same', 'same', 'new']), chance.choice([0, 0, 0, 1])
        payload = chance.choice([b'', payload, b'\0\0\0\0' + bytes([len(payload) & 255]) + payload])
    if kind == HEADERS and is_right:
        payload, fields, text = draw_block(chance, path)
        where, flags = 'new', END_HEADERS | chance.choice([0, END_STREAM, END_STREAM])
    if kind == PRIORITY and is_right:
        payload, where = struct.pack('>IB', chance.randrange(100) * 2 + 101, chance.randrange(256)), 'same'
    if kind in (RESET, WINDOW) and is_right:
        payload = struct.pack('>I', chance.choice([1, 2, 8]))
        where = chance.choice(['same', 'new']) if kind == RESET else chance.choice(['none', 'same'])
    if kind == SETTINGS and is_right:
        flags, where = chance.choice([0, 0, 1]), 'none'
        count = 0 if flags else chance.randrange(4)
        payload = b''.join(struct.pack('>HI', chance.choice([1, 3, 6, 99]), chance.choice([0, 1, 4096, 65536])) for _ in range(count))
    if kind == PING and is_right:
        payload, flags, where = b'pingping', chance.choice([0, 1]), 'none'
    if kind > CONTINUATION:
        where = 'none'
    name = NAMES[kind] if kind < len(NAMES) else 'unknown'
    text = text if fields else f'{len(payload)} bytes'
    return (kind, flags, where, payload), fields, f'{name} with flags {flags} on {where} stream: {text}'


def draw_unit(chance, path):
    drawn = [draw_frame(chance, path) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
    return Unit([part for part, _, _ in drawn], sum(fields for _, fields, _ in drawn), '; '.join(text for _, _, text in drawn))


class Connection:
    """Sends, and reads what comes back on a thread of its own."""

    def __init__(self, world, port):
        self.world = world
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=world.bound)
        self.answers = 0  # streams with headers from the server
        self.is_ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        data, kept = b'', b''
        try:
            while True:
                part = self.socket.recv(1 << 16)
                if not part:
                    break
                self.world.look(kept + part)
                kept = part[-64:]
                data += part
                while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], 'big'):
                    self.answers += data[3] == HEADERS
                    data = data[9 + int.from_bytes(data[:3], 'big'):]
        except socket.timeout:
            return self._read()
        except OSError:
            pass
        self.is_ended.set()

    def send(self, data):
        """False when the server has had enough."""
        end = time.monotonic() + self.world.bound
        view = memoryview(data)
        while view and not self.is_ended.is_set():
            try:
                view = view[self.socket.send(view):]
            except socket.timeout:
                pass
            except OSError:
                self.is_ended.set()
                return False
            if time.monotonic() > end:
                self.world.fail('a connection takes no bytes, and is not ended')
                return False
        return not self.is_ended.is_set()

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def flood(world, chance, note):
    """Sends a unit of frames as often as it can. A peer that is answered may go on; one that is not, and has sent more than anybody
    would who means it, must lose its connection."""
    task = world.draw_task(chance)
    if world.failures:
        return
    path = chance.choice([b'/tensorflow.WorkerService/GetStatus', b'/tensorflow.MasterService/RunStep', b'/nobody'])
    unit = draw_unit(chance, path)
    note(f'flood of {unit.text}')
    connection = Connection(world, task.port)
    opening = PREFACE + frame(SETTINGS, 0, 0, b'')
    if chance.random() < 0.8:  # stream 1 is open
        opening += frame(HEADERS, END_HEADERS, 1, request(path))
    goes_on = connection.send(opening)
    frames = fields = size = turn = 0
    end = time.monotonic() + MOST_SECONDS
    count = max(1, min(2000, 200000 // len(unit.encode(1))))
    while goes_on and frames < MOST_FRAMES and fields < MOST_FIELDS and size < MOST_BYTES and time.monotonic() < end:
        data = unit.repeat(turn + 1, count)
        goes_on = connection.send(data)
        frames, fields, size, turn = frames + count * len(unit.parts), fields + count * unit.fields, size + len(data), turn + count
        if connection.answers > 10 + turn // 100:  # it is served: that is no waste
            break
    is_waste = (frames >= MOST_FRAMES or fields >= MOST_FIELDS) and connection.answers <= 10 + turn // 100
    if is_waste and not connection.is_ended.wait(world.bound):
        world.fail(f'a connection that only wastes time is not ended: {frames} frames, {fields} fields of {unit.text}')
    note(f'{frames} frames, {fields} fields, {connection.answers} answers, {"ended" if connection.is_ended.is_set() else "not ended"}')
    connection.close()


def mixture(world, chance, note):
    """Some frames of every kind, once each, with pauses; then silence."""
    task = world.draw_task(chance)
    connections = []
    for _ in range(chance.choice([1, 5, 40])):
        connection = Connection(world, task.port)
        connections.append(connection)
        data = PREFACE + frame(SETTINGS, 0, 0, b'') if chance.random() < 0.8 else b''
        data += b''.join(draw_unit(chance, b'/nobody').encode(i) for i in range(chance.randrange(20)))
        data = data[:chance.randrange(len(data) + 1)] if chance.random() < 0.5 else data
        connection.send(data[:len(data) // 2])
        time.sleep(chance.choice([0, 0.01]))
        connection.send(data[len(data) // 2:])
    note(f'{len(connections)} connections with frames of every kind')
    return connections
