"""Cases of the ops of src/ops/string."""
import numpy as np
from ml_dtypes import bfloat16

FLOATS = (np.float16, bfloat16, np.float32, np.float64)
INTS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
COMPLEX = (np.complex64, np.complex128)


def strings(*texts, shape=None):
    array = np.array([t.encode() if isinstance(t, str) else t for t in texts] + [None], dtype=object)[:-1]
    return array if shape is None else array.reshape(shape)


def join(check):
    pair, matrix = strings('a', 'bc' * 20), strings('1', '', 'x\0y', '\xe9', shape=(2, 2))
    empty = strings(shape=(0, 3))
    for separator in ('', ', ', 'a\0b'):
        for inputs in ([pair], [pair, pair], ['s', pair, 't'], [pair, 's'], ['s', 't'], [matrix, matrix, 'x'], [empty],
                       [empty, 'x'], [pair, matrix], [pair, strings('a')], [strings('a'), strings('b')], [pair, empty],
                       ['only'], [matrix, 'x', pair]):
            check('StringJoin', inputs, {'N': len(inputs), 'separator': separator})
    check('StringJoin', [], {'N': 0})


def decode_raw(check, rng):
    raw = bytes(rng.integers(0, 256, 96, dtype=np.uint8))
    for dtype in FLOATS + INTS[:6] + COMPLEX + (np.bool_,):
        for little in (True, False):
            data = b'\0\1' * 48 if dtype == np.bool_ else raw
            for value in (data, strings(data, data[::-1]), strings(*[data] * 6, shape=(2, 3)), b'',
                          strings(shape=(0, 2)), strings(b'', b''), strings(data, b''), strings(b'', data),
                          data[:17], data[:15], strings(data[:32], data[:48])):
                check('DecodeRaw', [value], {'out_type': dtype, 'little_endian': little})
    check('DecodeRaw', [raw], {'out_type': np.uint32})


def as_string(check):
    values = np.array([[1.5, 1e10, -1e-5, np.nan], [-np.inf, np.inf, 1 / 3, -0.0]])
    options = [{}, {'precision': 3}, {'precision': 0}, {'precision': -7}, {'precision': 40}, {'scientific': True},
               {'shortest': True}, {'scientific': True, 'shortest': True}, {'width': 12}, {'width': 0}, {'width': -7},
               {'width': 2**31}, {'precision': -2**31 - 1}, {'precision': 2, 'scientific': True, 'width': 20},
               {'fill': 'xx'}, {'fill': '\0'}, {'precision': 2, 'shortest': True}, {'precision': 400, 'width': 600}]
    for fill in ' +-0#x3%':
        options += [{'fill': fill}, {'fill': fill, 'width': 9}, {'fill': fill, 'width': 9, 'precision': 1},
                    {'fill': fill, 'precision': 1}]
    with np.errstate(all='ignore'):
        arrays = [values.astype(d) for d in FLOATS]
        arrays += [(values + 2j * values[::-1]).astype(d) for d in COMPLEX]
    arrays += [np.array([0, 1, -5, 100, np.iinfo(d).max, np.iinfo(d).min]).astype(d) if d != np.uint64 else
               np.array([0, 7, 2**64 - 1], d) for d in INTS]
    arrays += [np.array([True, False]), np.bool_(True), strings('abc', '', 'x\0yz', 'long' * 20), np.float32(2.5),
               np.zeros((2, 0), np.float32)]
    for array in arrays:
        for option in options:
            check('AsString', [array], option)


def string_format(check, rng):
    arrays = [np.arange(n, dtype=np.int32) for n in (0, 1, 5, 6, 7, 20)]
    arrays += [np.zeros(shape, np.float32) for shape in ((2, 0), (0, 2), (1, 1, 0), (2, 3, 4), (7, 2), (8, 8), (1, 8, 1))]
    arrays += [rng.standard_normal((2, 2, 9, 2)).astype(d) for d in FLOATS]
    arrays += [np.array([1.5, 1e10, 1e-5, np.nan, -np.inf, 0.1, 1 / 3]).astype(d) for d in (np.float32, np.float64)]
    arrays += [np.array([0, 1, 100]).astype(d) for d in INTS]
    arrays += [np.array([1 + 2j] * 5, d) for d in COMPLEX] + [np.array([[1j], [2j]]), np.complex64(1)]
    arrays += [np.array([True, False]), np.bool_(True), 'text', strings('a', 'b"c', "d'e", 'f\\g'),
               strings(b'\n\r\t\1\x7f\xff\0', 'é', shape=(2, 1)), np.float32(0.1), np.int64(-2**63), np.uint64(2**64 - 1)]
    arrays += [np.ones(shape, np.bool_) for shape in ((0,), (2, 0), (0, 2), (7,), (2, 3, 4))]
    for array in arrays:
        for summarize in (3, -1, 0, 1, 2, 100):
            check('StringFormat', [array], {'summarize': summarize})
    one, two = np.int32(1), np.int32(2)
    for template, placeholder, inputs in (
            ('a{}b{}c', '{}', [one, two]), ('a{}b{}c', '{}', [one]), ('abc', '', [one, two]), ('abc', '', []),
            ('', '', []), ('', '%s', []), ('%s', '%s', [one]), ('%s%s', '%s', [one, two]), ('aaa', 'aa', [one]),
            ('x\0%s\0', '%s', [one]), ('plain', '%s', [])):
        check('StringFormat', inputs, {'template': template, 'placeholder': placeholder})


def decode_csv(check):
    def csv(records, defaults, **attrs):
        check('DecodeCSV', [records] + defaults, attrs)

    floats = ('1.5', ' 1.5 ', '0x1A', '0x1.8p3', 'inf', 'INF', '-Infinity', 'nan', '-NaN', '+1', '1e400', '-1e400', '1e-400',
              '1e', '1.', '.5', '.', '1f', '1_0', 'nan(1)', '  ', '1e+5', '--1', '+-1', '1 2', '1' * 40, '1e-46', '3.5e38',
              '3.4028235677973366e38', '1e-40', '1\t', '\v1', 'infi', '0x', '-0x1A', '-', '-0', '00012', '0.1', '1\0')
    ints = ('1', ' 1 ', '+1', '0x1A', '2147483647', '2147483648', '-2147483648', '-2147483649', '1.0', '--1', '-', '', '1 2',
            '\t1', '1\v', '00012', '9223372036854775807', '9223372036854775808', '-9223372036854775808',
            '-9223372036854775809', '99999999999999999999', '+', '+ 1', '-0', '1\0')
    for text in floats + ints:
        for dtype in (np.float32, np.float64, np.int32, np.int64):
            csv(text, [np.array([], dtype)])
    some = [np.array([7], np.int32), np.array([2.5], np.float32), strings('none')]
    none = [np.array([], np.int32), np.array([], np.float32), strings()]
    for record in ('1,2,x', ',,', '1,,x', ',2,', '1,2', '1,2,3,4', '1,2,x,', '', '\n', '1,2,"x,y"', '1,2,"a""b"', '1,2,"a"b"',
                   '1,2,"a', '1,2,"', '"1","2","3"', '"1","2",""', '1,2,a"b', '1,2,a\nb', '\r\n1,2,x', '1,2,x\r\n', '1,2,"x"\n',
                   '1,2,"x\ny"', '1,\n2,x', '"",,', '1,2,NA', 'NA,NA,NA', '1, 2, x ', '1,2,""""', '1,2,"x",', '1;2;x'):
        for defaults in (some, none, [np.int32(7), np.float32(2.5), 'none']):
            csv(record, defaults)
            csv(record, defaults, na_value='NA')
            csv(record, defaults, use_quote_delim=False)
            csv(record, defaults, field_delim=';')
        csv(record, some[:2], select_cols=[0, 1])
        csv(record, some[1:2], select_cols=[1])
        csv(record, some[2:], select_cols=[3])
    csv(strings('1,2,x', '3,4,y', ',,', '5,6,z', shape=(2, 2)), some)
    csv(strings(shape=(0, 2)), some)
    csv(strings('1,2,x', '3,4'), some)
    for attrs in ({'field_delim': ''}, {'field_delim': '::'}, {'select_cols': [0]}, {'select_cols': [0, 1, 1]},
                  {'select_cols': [2, 1, 0]}, {'select_cols': [-1, 1, 2]}, {'select_cols': [0, 1, 2]}, {'field_delim': '"'}):
        csv('1,2,x', some, **attrs)
    csv('1', [np.array([1, 2], np.int32)])
    csv('1', [np.array([[1]], np.int32)])
    csv('1', [])
    csv('1', [np.array([1], np.int16)])


def lengths(check):
    for unit in ('BYTE', 'UTF8_CHAR', 'OTHER'):
        for value in ('', 'abc', 'é', strings('a', 'été', '日本語', b'\xff\x80\x80', shape=(2, 2)), strings(shape=(0,))):
            check('StringLength', [value], {'unit': unit})


def substr(check):
    for unit in ('BYTE', 'UTF8_CHAR'):
        for dtype in (np.int32, np.int64):
            for text in ('', 'abcdef', 'été', '日本語', b'\x80\x80a\xff', 'x' * 50):
                for position in (-100, -6, -3, -1, 0, 1, 2, 5, 6, 7):
                    for length in (-2, 0, 1, 3, 100):
                        check('Substr', [text, dtype(position), dtype(length)], {'unit': unit})
            matrix = strings('abc', 'défg', 'hij', 'klm', 'nop', 'qrst', shape=(2, 3))
            for shape in ((), (3,), (1, 3), (2, 1), (2, 3), (1,), (2,), (1, 2, 3), (0,), (1, 1, 1)):
                check('Substr', [matrix, np.full(shape, 1, dtype), np.full(shape, 2, dtype)], {'unit': unit})
                check('Substr', ['abc', np.full(shape, 1, dtype), np.full(shape, 2, dtype)], {'unit': unit})
                check('Substr', [strings('a', 'bc'), np.full(shape, 1, dtype), np.full(shape, 2, dtype)], {'unit': unit})
            check('Substr', [matrix, np.full((2, 3), 1, dtype), dtype(1)], {'unit': unit})
            check('Substr', [matrix, np.full((3,), 1, dtype), np.full((1,), 1, dtype)], {'unit': unit})
            check('Substr', [strings(shape=(0, 3)), np.full((3,), 1, dtype), np.full((3,), 1, dtype)], {'unit': unit})
            for shape in ((3,), (1, 3), (2, 1), (2, 3)):  # each its own
                positions = np.arange(np.prod(shape)).reshape(shape).astype(dtype) % 3
                check('Substr', [matrix, positions, 1 + positions[::-1]], {'unit': unit})
                check('Substr', ['abcdef', positions, 1 + positions[::-1]], {'unit': unit})
            cube = strings(*['abc'] * 8, shape=(2, 2, 2))
            check('Substr', [cube, np.full((2, 2, 2), 1, dtype), np.full((2, 2, 2), 1, dtype)], {'unit': unit})
            check('Substr', [cube, np.full((2,), 1, dtype), np.full((2,), 1, dtype)], {'unit': unit})
    check('Substr', ['abc', np.int64(-2**63), np.int64(2**63 - 1)])
    check('Substr', ['abc', np.int64(2**63 - 1), np.int64(-2**63)])


def hash_buckets(check, rng):
    texts = [bytes(rng.integers(0, 256, n, dtype=np.uint8)) for n in (*range(0, 140), 191, 192, 193, 1000)]
    for buckets in (1, 2, 1000, 2**31 + 1, 2**63 - 1):
        check('StringToHashBucketFast', [strings(*texts, shape=(2, -1))], {'num_buckets': buckets})
        for value in ('', 'été', 'a' * 64, 'a' * 65, strings(shape=(0,)), strings(shape=(2, 0))):
            check('StringToHashBucketFast', [value], {'num_buckets': buckets})
    check('StringToHashBucketFast', ['a'], {'num_buckets': 0})
    check('StringToHashBucketFast', ['a'], {'num_buckets': -5})
    check('StringToHashBucketFast', ['a'], {})
    check('StringToHashBucketFast', [np.int32(1)], {'num_buckets': 3})


def cases(check, rng):
    join(check)
    decode_raw(check, rng)
    as_string(check)
    string_format(check, rng)
    decode_csv(check)
    lengths(check)
    substr(check)
    hash_buckets(check, rng)
