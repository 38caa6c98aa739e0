"""Cases of DecodeProtoV2 and EncodeProto: messages that are described at run time."""
import os
import tempfile

import numpy as np
from google.protobuf import descriptor_pb2, text_format

SCALARS = {'d': ('DOUBLE', '1.5'), 'f': ('FLOAT', 'inf'), 'i64': ('INT64', '-5'), 'u64': ('UINT64', '300'), 'i32': ('INT32', '-7'),
           'x64': ('FIXED64', '1000'), 'x32': ('FIXED32', '70000'), 'b': ('BOOL', 'true'), 's': ('STRING', 'he"llo'),
           'y': ('BYTES', 'a\\001\\000\\"b'), 'u32': ('UINT32', '300'), 'sf32': ('SFIXED32', '-15'), 'sf64': ('SFIXED64', '-16'),
           's32': ('SINT32', '-17'), 's64': ('SINT64', '-18')}
REPEATED, PACKED = 40, 80  # what is added to the numbers of fields


def descriptors():
    """A message p.M with optional, repeated and packed fields of every type; p3.M of proto3."""
    out = descriptor_pb2.FileDescriptorSet()
    text_format.Parse('''file { name: "t.proto" package: "p" syntax: "proto2"
      enum_type { name: "E" value {name: "A" number: 3} value {name: "B" number: 7} value {name: "C" number: -2} }
      message_type { name: "M"
        field {name: "g" number: 30 label: LABEL_OPTIONAL type: TYPE_GROUP type_name: ".p.M.G"}
        field {name: "rg" number: 31 label: LABEL_REPEATED type: TYPE_GROUP type_name: "M.G"}
        field {name: "m" number: 32 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".p.M"}
        field {name: "rm" number: 33 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: "M"}
        field {name: "e" number: 34 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: "E" default_value: "B"}
        field {name: "e2" number: 35 label: LABEL_OPTIONAL type_name: "p.E"}
        field {name: "re" number: 36 label: LABEL_REPEATED type: TYPE_ENUM type_name: ".p.E"}
        nested_type {name: "G" field {name: "n" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32} }
        extension_range {start: 200 end: 300} }
      extension {name: "x" number: 201 label: LABEL_OPTIONAL type: TYPE_INT32 extendee: ".p.M" default_value: "9"}
      message_type { name: "R" field {name: "q" number: 1 label: LABEL_REQUIRED type: TYPE_INT32} } }
    file { name: "t3.proto" package: "p3" syntax: "proto3" dependency: "t.proto"
      message_type { name: "M"
        field {name: "i" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32}
        field {name: "r" number: 2 label: LABEL_REPEATED type: TYPE_INT32}
        field {name: "s" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING}
        field {name: "np" number: 4 label: LABEL_REPEATED type: TYPE_INT32 options {packed: false} }
        field {name: "oa" number: 5 label: LABEL_OPTIONAL type: TYPE_INT32 oneof_index: 0}
        field {name: "ob" number: 6 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0}
        field {name: "m" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".p.R"}
        oneof_decl {name: "o"} } }''', out)
    message = out.file[0].message_type[0]
    for i, (name, (kind, default)) in enumerate(SCALARS.items()):
        kind = descriptor_pb2.FieldDescriptorProto.Type.Value('TYPE_' + kind)
        message.field.add(name=name, number=1 + i, label=1, type=kind, default_value=default)
        message.field.add(name='r' + name, number=REPEATED + i, label=3, type=kind)
        if name not in 'sy':
            message.field.add(name='p' + name, number=PACKED + i, label=3, type=kind).options.packed = True
    return out


SET = descriptors()
SOURCE = b'bytes://' + SET.SerializeToString()
TYPES = {'d': (np.float64,), 'f': (np.float32, np.float64), 'i64': (np.int64,), 'u64': (np.uint64,), 'i32': (np.int32, np.int64),
         'x64': (np.uint64,), 'x32': (np.uint32, np.uint64), 'b': (np.bool_,), 's': (object,), 'y': (object,), 'u32': (np.uint32, np.uint64),
         'sf32': (np.int32, np.int64), 'sf64': (np.int64,), 's32': (np.int32, np.int64), 's64': (np.int64,)}
NUMBERS = {name: i + 1 for i, name in enumerate(SCALARS)}


def strings(*values):
    return np.array(list(values) + [None], object)[:-1]


def tf_type(t):
    return 'string' if t is object else t


def varint(n):
    n &= 2**64 - 1
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def tag(field, wire):
    return varint(field << 3 | wire)


def decoder(check):
    def decode(data, fields, types, message='p.M', source=SOURCE, **options):
        attrs = {k: options.pop(k) for k in ('message_format', 'sanitize') if k in options}
        data = data if isinstance(data, np.ndarray) else np.array(data, object)
        check('DecodeProtoV2', [data], {'message_type': message, 'field_names': fields, 'output_types': [tf_type(t) for t in types],
                                        'descriptor_source': source, **attrs}, **options)
    return decode


def draw(rng, t, shape):
    if t is object:
        return strings(*[rng.bytes(rng.integers(5)) for _ in range(int(np.prod(shape)))]).reshape(shape)
    if t is np.bool_:
        return rng.integers(2, size=shape) > 0
    if np.dtype(t).kind == 'f':
        return rng.standard_normal(shape).astype(t)
    info = np.iinfo(t)
    return rng.integers(info.min, info.max, shape, t) >> t(rng.integers(40 if info.bits == 64 else 20))


def every_type(check, rng):
    """Values of every type through the encoder, and its bytes, with those of others, through the decoder."""
    decode = decoder(check)
    for name, types in TYPES.items():
        for t in types:
            for prefix in ('', 'r', 'p'):
                if prefix == 'p' and name in 'sy':
                    continue
                values = draw(rng, t, (4, 3))
                # Of a negative number of packed values TensorFlow writes a length that is wrong.
                sizes = np.int32([[0], [1], [3 if prefix else 1], [2 if prefix == 'p' else -1]])
                check('EncodeProto', [sizes, values], {'field_names': [prefix + name], 'message_type': 'p.M', 'descriptor_source': SOURCE})
    numbers = [n for n in TYPES if n not in 'sy']
    for _ in range(8):
        data = [b''.join(wire(rng, str(rng.choice(list(TYPES))), int(rng.choice([0, REPEATED, PACKED]))) for _ in range(rng.integers(12)))
                for _ in range(4)]
        for prefix in ('', 'r', 'p'):
            names = list(TYPES) if prefix != 'p' else numbers
            choice = int(rng.integers(2))
            # Packed values of a singular field fail or not by what is before them.
            decode(strings(*data).reshape(2, 2), [prefix + n for n in names], [TYPES[n][-choice] for n in names])


def wire(rng, name, group):
    """A field of the message, now and then packed."""
    number = NUMBERS[name] + (group - 1 if group else 0)
    kind = SCALARS[name][0]
    if kind in ('STRING', 'BYTES'):
        text = rng.bytes(rng.integers(4))
        return (tag(number, 2) + varint(len(text)) + text) if group != PACKED else b''
    size = {'DOUBLE': 8, 'FIXED64': 8, 'SFIXED64': 8, 'FLOAT': 4, 'FIXED32': 4, 'SFIXED32': 4}.get(kind, 0)

    def value():
        return rng.bytes(size) if size else varint(int(rng.integers(-2**62, 2**62)) >> int(rng.integers(60)))
    if group and rng.integers(2):
        data = b''.join(value() for _ in range(rng.integers(4)))
        return tag(number, 2) + varint(len(data)) + data
    return tag(number, {8: 1, 4: 5, 0: 0}[size]) + value()


def odd_bytes(check):
    decode = decoder(check)
    i32, i64, s = np.int32, np.int64, object
    n = NUMBERS['i32']
    packed = tag(PACKED + n - 1, 2) + varint(11) + varint(-3) + b'\x04'
    decode(packed, ['pi32'], [i64])  # not as negative as it was
    decode(packed, ['pi32'], [i32])
    decode(tag(n, 2) + b'\x02\x05\x06', ['i32'], [i32])
    decode(tag(n, 2) + b'\x00', ['i32'], [i32])
    decode(tag(n, 0) + b'\1' + tag(n, 2) + b'\x02\x05\x06', ['i32'], [i32])
    decode(tag(n, 2) + b'\x02\x05\x06' + tag(n, 0) + b'\1', ['i32'], [i32])
    decode(tag(30, 3) + tag(1, 0) + b'\5' + tag(30, 4) + tag(31, 3) + tag(31, 4) + tag(31, 3) + tag(30, 3) + tag(30, 4) + tag(31, 4),
           ['g', 'rg'], [s, s])
    decode(tag(34, 0) + varint(55) + tag(36, 0) + varint(-2) + tag(36, 2) + b'\2\3\x10', ['e', 're', 'e2'], [i32, i32, i32])
    decode(tag(201, 0) + b'\1' + tag(n, 0) + b'\7', ['i32', 'p.x', 'i32'], [i32, i32, i64])
    decode(tag(32, 2) + b'\2zz' + tag(33, 2) + b'\0', ['rm', 'm'], [s, s])
    for bad in (tag(n, 5) + b'abc', b'\0', tag(1, 4), tag(n, 0) + b'\7\0\0', tag(n, 0) + b'\x80', b'\x80', tag(n, 6) + b'\7', tag(99, 2) + b'\7',
                tag(31, 3) + tag(1, 0) + b'\5', tag(31, 2) + b'\1a', tag(REPEATED + n - 1, 2) + b'\x02\x05\x86', tag(PACKED, 2) + b'\7abcdefg',
                tag(9, 2) + b'\5abc', tag(31, 3) + tag(30, 4)):
        decode(bad, ['i32', 'rg', 'ri32', 'pd', 's'], [i32, s, i32, np.float64, s])
    decode(tag(9, 0) + b'\5' + tag(n, 5) + b'abcd', ['s', 'i32'], [s, i32])  # other types are passed over
    decode(strings(), ['i32'], [i32])
    decode(np.zeros((2, 0), object), ['i32'], [i32])


def attributes(check):
    decode = decoder(check)
    i32 = np.int32
    decode(b'', ['i32'], [np.uint32])
    decode(b'', ['b'], [object])
    decode(b'', ['nope'], [i32])
    decode(b'', ['x'], [i32])
    decode(b'', ['i32'], [i32, i32])
    decode(b'', ['i32'], [i32], message='p.X')
    decode(b'', ['i32'], [i32], message='p.E')
    decode(b'', ['i32'], [i32], message='.p.M')
    decode(b'', ['i32'], [i32], message_format='json')
    for source in (b'bytes://zzz', b'bytes://', b'/no/such/file', b'', b'local://x', SOURCE[:-1]):
        decode(b'', ['i32'], [i32], source=source)
    for change in ('file {name: "u" dependency: "v"}', 'file {name: "u" message_type {name: "M" field {name: "a" number: 1 type_name: "N"} } }',
                   'file {name: "u" message_type {name: "M" field {name: "a" number: 0 type: TYPE_INT32} } }',
                   'file {name: "u" message_type {name: "M"} message_type {name: "M"} }',
                   'file {name: "u" message_type {name: "M" field {name: "a" number: 1 type: TYPE_INT32 default_value: "x"} } }',
                   'file {name: "u" message_type {name: "M" field {name: "a" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32} '
                   'field {name: "b" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32} } }'):
        bad = text_format.Parse(change, descriptor_pb2.FileDescriptorSet())
        decode(b'', ['a'], [i32], message='M', source=b'bytes://' + bad.SerializeToString())
    path = os.path.join(tempfile.gettempdir(), 'weir_oracle_descriptors.bin')
    with open(path, 'wb') as f:
        f.write(SET.SerializeToString())
    decode(tag(NUMBERS['i32'], 0) + b'\5', ['i32'], [i32], source=path.encode())
    # TensorFlow's own messages; Weir has those that it speaks.
    decode(b'\x0a\3abc\x1a\1x\x1a\1y', ['input', 'name', 'op', 'attr'], [object] * 4, message='tensorflow.NodeDef', source=b'local://')
    decode(b'\x0a\2\x0a\0', ['features'], [object], message='tensorflow.Example', source=b'local://')
    decode(b'\x08\1\x18\2\x18\3', ['dtype', 'version_number', 'int_val'], [i32, i32, i32], message='tensorflow.TensorProto', source=b'local://')
    decode(b'', ['i32'], [i32], source=b'local://')


def sanitized(check):
    decode = decoder(check)
    i32, s, n = np.int32, object, NUMBERS['i32']

    def clean(data, fields, types, **options):
        decode(data, fields, types, sanitize=True, **options)
    text = tag(NUMBERS['s'], 2)
    clean(tag(n, 0) + b'\1' + tag(n, 2) + b'\x02\x05\x06', ['i32'], [i32])
    clean(tag(34, 0) + varint(55) + tag(36, 2) + b'\3\3\x37\7', ['e', 're'], [i32, i32])
    clean(text + b'\1\xff', ['s'], [s])
    clean(b'\x1a\1\xff', ['s'], [s], message='p3.M')
    clean(b'\x08\0\x20\5\x22\1\6\x12\2\0\1', ['i', 'r', 'np'], [i32] * 3, message='p3.M')
    clean(b'\x28\0\x32\1a', ['oa', 'ob'], [i32, s], message='p3.M')
    clean(b'\x32\1a\x28\0', ['oa', 'ob'], [i32, s], message='p3.M')
    clean(b'\x3a\0', ['m'], [s], message='p3.M')
    clean(b'\x3a\2\x08\1', ['m'], [s], message='p3.M')
    clean(tag(32, 2) + b'\5' + text + b'\1q' + tag(n, 0) + b'\1' + tag(32, 2) + b'\3' + tag(n, 0) + b'\x80\0', ['m'], [s])
    clean(tag(33, 2) + b'\5' + tag(99, 0) + b'\5' + tag(NUMBERS['b'], 0) + b'\7' + tag(33, 2) + b'\0', ['rm'], [s])
    clean(tag(33, 2) + b'\4' + tag(99, 0) + b'\5' + tag(NUMBERS['b'], 0), ['rm'], [s])
    clean(tag(31, 3) + tag(7, 0) + b'\5' + tag(1, 0) + b'\x85\0' + tag(31, 4), ['rg'], [s])
    clean(b'', ['q'], [i32], message='p.R')
    clean(tag(201, 0) + b'\1', ['p.x', 'i32'], [i32, i32])
    for bad in (b'\0', tag(1, 4), tag(n, 5) + b'abc', tag(PACKED, 2) + b'\7abcdefg'):
        clean(bad, ['i32'], [i32])


def texts(check):
    decode = decoder(check)
    i32, i64, s = np.int32, np.int64, object

    def read(text, fields, types, **options):
        decode(text, fields, types, message_format='text', **options)
    read(b'i32: 5 ri32: 1 ri32: [2,3] s: "a\\n\\x41" "b" b: true f: 1.5 d: -inf e: B g { n: 4 } m { i32: 9 rs: "x" } y: "\\377" rs: "\\377"',
         ['i32', 'ri32', 's', 'b', 'f', 'd', 'e', 'g', 'm', 'y', 'rs'], [i32, i32, s, np.bool_, np.float32, np.float64, i32, s, s, s, s])
    read(b's32: -5 s64: -6 sf32: -7 sf64: -8 x32: 9 x64: 10 u32: 4294967295 rs32: [-1,1] ps64: -9',
         ['s32', 's64', 'sf32', 'sf64', 'x32', 'x64', 'u32', 'rs32', 'ps64'], [i32, i64, i32, i64, np.uint32, np.uint64, np.uint32, i32, i64])
    read(b'[p.x]: 4', ['p.x'], [i32])
    read(b'[p.y]: 4', ['p.x'], [i32])
    read(b'G { n: 1}', ['g'], [s])
    read(b'rg { n: 1} rg <n: 2>', ['rg'], [s])
    for text in (b'nope: 1', b'i32: 1 i32: 2', b'i32: 99999999999', b'e: 7', b'e: 8', b'e: D', b'i32', b's32: 2147483648', b'm {', b'[p.x: 1', b'[]'):
        read(text, ['i32', 'e'], [i32, i32])
    read(b'i: 0 r: 3', ['i', 'r'], [i32, i32], message='p3.M')
    read(b'oa: 1 ob: "q"', ['oa', 'ob'], [i32, s], message='p3.M')
    read(b'', ['q'], [i32], message='p.R')
    read(b'q: 1', ['q'], [i32], message='p.R')


def encoding(check):
    i32, one = np.int32, np.int32([[1]])

    def encode(sizes, values, fields, message='p.M', source=SOURCE, **options):
        check('EncodeProto', [sizes] + values, {'field_names': fields, 'message_type': message, 'descriptor_source': source}, **options)
    encode(i32([[1, 2]]), [i32([[5, 6]]), np.float32([[1, 2]])], ['ri32', 'rf'])
    encode(i32([[1, 2]]), [i32([[5, 6]]), np.float32([[1, 2]])], ['pi32', 'f'])
    encode(i32([[2]]), [i32([[5, 6]])], ['r'], 'p3.M')
    encode(i32([[2]]), [i32([[5, 6]])], ['np'], 'p3.M')
    encode(i32([[2, 1]]), [strings(b'\x08\1', b'').reshape(1, 2), strings(b'zz').reshape(1, 1)], ['rg', 'm'])
    encode(i32([[1]]), [np.int32([[-3]])], ['e'])
    encode(i32([[1]]), [np.int64([[2**40 + 3]])], ['i32'])
    encode(i32([[1]]), [np.int64([[2**40 - 3]])], ['s32'])
    encode(i32([[1]]), [np.uint64([[2**40 + 3]])], ['x32'])
    encode(i32([[1, 1]]), [one, one + 1], ['i32', 'i32'])
    encode(i32([[[1], [1]]]), [i32([[[1], [2]]])], ['i32'])
    encode(np.zeros((0, 1), i32), [np.zeros((0, 3), i32)], ['i32'])
    encode(i32([[1]]), [strings(b'abc').reshape(1, 1)], ['name'], 'tensorflow.NodeDef', b'local://')
    for sizes, values, fields, message in (
            ([[3]], [i32([[5, 6]])], ['ri32'], 'p.M'), ([[1]], [np.float64([[1]])], ['i32'], 'p.M'), ([[1]], [one], ['nope'], 'p.M'),
            ([[1]], [one], ['i32'], 'p.Q'), ([1], [i32([1])], ['i32'], 'p.M'), ([[1, 2]], [one], ['i32'], 'p.M'), ([[1]], [one], ['p.x'], 'p.M'),
            ([[1, 1]], [one, i32([[1], [2]])], ['i32', 'ri32'], 'p.M'), ([[1]], [one], ['i32', 'ri32'], 'p.M'), (1, [one], ['i32'], 'p.M'),
            ([[1]], [i32(1)], ['i32'], 'p.M')):
        encode(i32(sizes), values, fields, message)


def cases(check, rng):
    every_type(check, rng)
    odd_bytes(check)
    attributes(check)
    sanitized(check)
    texts(check)
    encoding(check)
