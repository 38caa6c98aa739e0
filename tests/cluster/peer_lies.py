"""What liars say: values for any field, damaged messages, keys that collide under hashes without a key, graphs made by hand."""
import random
import struct

from clusters import tf
from messages import graph_pb2, tensor_pb2

MASK = (1 << 64) - 1
GOLDEN = 0x9e3779b97f4a7c15
NUMBERS = [0, 1, -1, 2, 7, 255, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, (1 << 62) + 3, (1 << 63) - 1, -(1 << 63)]
TEXTS = [b'', b'x', b'\0', b'%s%n', b'x' * 5000, b'/job:worker/replica:0/task:0/device:CPU:0', b'/job:worker/replica:0/task:1',
         b'/job:nobody/task:7', b'x:0', b'y:0', b'y', b'^y', b'y:4', b'127.0.0.1:1', b'grpc://nowhere', b'\xff\xfe', b';;;;']


# ---- public hashes, and their inverses: whoever reads the source has them ----

def mix(x):
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


def _unshift(x, bits):
    y = x
    for _ in range(64 // bits + 1):
        y = x ^ (y >> bits)
    return y


def unmix(x):
    x = (_unshift(x, 31) * pow(0x94d049bb133111eb, -1, 1 << 64)) & MASK
    x = (_unshift(x, 27) * pow(0xbf58476d1ce4e5b9, -1, 1 << 64)) & MASK
    return _unshift(x, 30)


def colliding_numbers(chance, count):
    """64-bit numbers whose hashes agree in their low bits, for one of the ways to hash a number without a key."""
    undo = chance.choice([lambda h: h, unmix, lambda h: (unmix(h) - GOLDEN) & MASK, lambda h: unmix(h) ^ GOLDEN])
    start = chance.getrandbits(16)
    keys = [undo(((i << 24) | start) & MASK) for i in range(1, count + 1)]
    return [key - (1 << 64) if key >> 63 else key for key in keys]


def colliding_texts(chance, count):
    """Texts of 16 bytes with one and the same hash: the second half undoes what the first did."""
    begin = (GOLDEN * 17) & MASK
    aim = unmix((unmix(chance.getrandbits(64)) - GOLDEN) & MASK)
    texts = []
    for _ in range(count):
        first = chance.getrandbits(64)
        second = aim ^ ((mix(begin ^ first) + GOLDEN) & MASK)
        texts.append(struct.pack('<QQ', first, second))
    return texts


def is_predictable(ids):
    """Whether a sequence of numbers is one that who knows the last can go on with: a counter, plain or under a public mixer."""
    for undo in (lambda x: x, unmix):
        # A number may have lost its lowest bit, or not.
        candidates = [{undo(i & MASK), undo((i << 1) & MASK), undo((i << 1 | 1) & MASK)} for i in ids]
        seen = {}
        for a, b in zip(candidates, candidates[1:]):
            for difference in {(y - x) & MASK for x in a for y in b}:
                seen[difference] = seen.get(difference, 0) + 1
        if max(seen.values(), default=0) >= 3:
            return True
    return False


# ---- protobuf messages without their descriptions ----

def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError


def put_varint(value):
    value &= MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def parse(data):
    """[(field, type, value)], or ValueError: bytes that are no message."""
    fields, at = [], 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            kind = tag & 7
            if tag >> 3 == 0 or kind not in (0, 1, 2, 5):
                raise ValueError
            if kind == 0:
                value, at = _varint(data, at)
            else:
                size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
                if at + size > len(data):
                    raise ValueError
                value, at = data[at:at + size], at + size
                value = value if kind == 2 else int.from_bytes(value, 'little')
            fields.append((tag >> 3, kind, value))
    except IndexError:
        raise ValueError from None
    return fields


def unparse(fields):
    out = b''
    for field, kind, value in fields:
        out += put_varint(field << 3 | kind)
        if kind == 0:
            out += put_varint(value)
        elif kind == 2:
            out += put_varint(len(value)) + value
        else:
            out += (value & MASK).to_bytes(8, 'little') if kind == 1 else (value & 0xffffffff).to_bytes(4, 'little')
    return out


def change_numbers(data, change, change_bytes=lambda b: None):
    """A message with each number, wherever it stands, replaced by what |change| says; texts by what |change_bytes| says, if it does."""
    fields = []
    for field, kind, value in parse(data):
        if kind == 2:
            other = change_bytes(value)
            if other is None:
                try:
                    other = change_numbers(value, change, change_bytes) if len(value) < 4096 else value
                except ValueError:
                    other = value
            fields.append((field, kind, other))
        else:
            fields.append((field, kind, change(value)))
    return unparse(fields)


def damage(chance, data):
    data = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data[:chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data)


# ---- messages by their descriptions ----

class Liar:
    """Fills messages. |known|: values that fit somewhere, by the kind of field: 'text', 'number', or the name of a message."""

    def __init__(self, chance, known=None):
        self.chance = chance
        self.known = known or {}

    def pick(self, kind, lies):
        known = self.known.get(kind, [])
        return self.chance.choice(known if known and self.chance.random() < 0.6 else lies)

    def scalar(self, field):
        if field.type == field.TYPE_BOOL:
            return self.chance.random() < 0.5
        if field.type == field.TYPE_BYTES:
            return self.pick('text', TEXTS)
        if field.type == field.TYPE_STRING:
            return self.pick('text', TEXTS).decode('latin-1').encode('ascii', 'ignore').decode()
        if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
            return self.chance.choice([0.0, 1.0, -1.0, float('nan'), float('inf')])
        if field.type == field.TYPE_ENUM:
            return self.chance.choice(list(field.enum_type.values_by_number))
        number = self.pick('number', NUMBERS)
        bits = 32 if field.type in (field.TYPE_INT32, field.TYPE_UINT32, field.TYPE_FIXED32, field.TYPE_SFIXED32, field.TYPE_SINT32) else 64
        is_unsigned = field.type in (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_FIXED32, field.TYPE_FIXED64)
        number &= (1 << bits) - 1
        return number if is_unsigned or not number >> (bits - 1) else number - (1 << bits)

    def fill(self, message, depth=0):
        known = self.known.get(message.DESCRIPTOR.name, [])
        if known and depth and self.chance.random() < 0.8:
            message.CopyFrom(self.chance.choice(known))
            return message
        for field in message.DESCRIPTOR.fields:
            if self.chance.random() > (0.8 if depth == 0 else 0.3):
                continue
            self.set(message, field, depth)
        return message

    def set(self, message, field, depth):
        is_message = field.type == field.TYPE_MESSAGE
        if is_message and (depth > 3 or field.message_type.GetOptions().map_entry):
            return
        if not field.is_repeated:
            if is_message:
                self.fill(getattr(message, field.name), depth + 1)
            else:
                setattr(message, field.name, self.scalar(field))
            return
        for _ in range(self.chance.choice([0, 1, 1, 2, 5])):
            if is_message:
                self.fill(getattr(message, field.name).add(), depth + 1)
            else:
                getattr(message, field.name).append(self.scalar(field))


# ---- graphs ----

ANY_SHAPE = tf.TensorShape(None).as_proto()
FLOAT, INT32, STRING, INT64, BOOL, DOUBLE, UINT8, RESOURCE = 1, 3, 7, 9, 10, 2, 4, 20


def tensor(value, dtype):
    return tf.make_tensor_proto(value, dtype=tf.DType(dtype) if isinstance(dtype, int) else dtype)


def set_attr(attr, value):
    if isinstance(value, bool):
        attr.b = value
    elif isinstance(value, tuple):  # a type
        attr.type = value[0]
    elif isinstance(value, list):
        attr.list.type.extend(value)
        attr.list.SetInParent()
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, str) and value.startswith('@'):
        attr.func.name = value[1:]
    elif isinstance(value, (str, bytes)):
        attr.s = value if isinstance(value, bytes) else value.encode()
    elif isinstance(value, tensor_pb2.TensorProto):
        attr.tensor.CopyFrom(value)
    else:
        attr.shape.CopyFrom(value)


class Graph:
    """A GraphDef, node by node: types as (FLOAT,), lists of types as [FLOAT], functions as '@name'."""

    def __init__(self):
        self.graph = graph_pb2.GraphDef()
        self.graph.versions.producer = 1000

    def node(self, name, op, inputs=(), device='', into=None, **attrs):
        node = (self.graph.node if into is None else into.node_def).add(name=name, op=op, device=device)
        node.input.extend(inputs)
        for key, value in attrs.items():
            set_attr(node.attr[key], value)
        return name

    def const(self, name, value, dtype, **kwargs):
        return self.node(name, 'Const', dtype=(dtype,), value=tensor(value, dtype), **kwargs)

    def placeholder(self, name, dtype=FLOAT, **kwargs):
        return self.node(name, 'Placeholder', dtype=(dtype,), **kwargs)

    def function(self, name, dtype=FLOAT):
        """A function of one argument, "a", and one result, "r"."""
        function = self.graph.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name='a', type=dtype)
        function.signature.output_arg.add(name='r', type=dtype)
        return function


def seeded(*parts):
    return random.Random(':'.join(map(str, parts)))
