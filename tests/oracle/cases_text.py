"""Cases of the ops of src/ops/string that take strings apart, join, number and encode them."""
import gzip
import zlib

import numpy as np
from ml_dtypes import bfloat16


def strings(*texts, shape=None):
    array = np.array([t.encode() if isinstance(t, str) else t for t in texts] + [None], dtype=object)[:-1]
    return array if shape is None else array.reshape(shape)


NONE = strings()
ROWS = strings('a b c', '', ' c  d ', '  ', 'abc', 'a,b;c', ',', ',,;', 'x\0y z', 'tab\there\v\f\r\nend', 'aXXbXXXc', 'été ü')


def split(check):
    for delimiter in (' ', '', ',', ',;', 'b', '\0', 'XX', 'é'):
        for skip in (True, False):
            for rows in (ROWS, NONE, strings(''), strings('', '')):
                check('StringSplit', [rows, delimiter], {'skip_empty': skip})
        for limit in (-5, -1, 0, 1, 2, 100, 2**31, -2**31 - 1):
            for rows in (ROWS, NONE, strings(''), strings(' a')):
                check('StringSplitV2', [rows, delimiter], {'maxsplit': limit})
    for op in ('StringSplit', 'StringSplitV2'):
        check(op, ['a b', ' '])
        check(op, [strings('a', 'b', shape=(1, 2)), ' '])
        check(op, [ROWS, strings(' ')])
        check(op, [ROWS, strings(' ', ',')])


def reduce_join(check):
    matrix, cube = strings(*'abcd', shape=(2, 2)), strings(*'abcdefghijklmnopqrstuvwx', shape=(2, 3, 4))
    for separator in ('', ', ', '\0'):
        for keep in (True, False):
            attrs = {'separator': separator, 'keep_dims': keep}
            for axes in ([], [0], [1], [0, 1], [1, 0], [2], [-1], [-3], [0, 0], [0, -2], [[0]], [-2, -1], [1, 0, 1]):
                check('ReduceJoin', [matrix, np.array(axes, np.int32)], attrs)
            for axes in ([0, 2], [2, 0], [2, 1, 0], [0, 1, 2], [-1, 0], [1], []):
                check('ReduceJoin', [cube, np.array(axes, np.int32)], attrs)
            check('ReduceJoin', [matrix, np.int32(0)], attrs)
            check('ReduceJoin', ['x', np.zeros(0, np.int32)], attrs)
            check('ReduceJoin', ['x', np.int32([0])], attrs)
            for shape in ((0, 2), (2, 0), (0,)):
                check('ReduceJoin', [strings(shape=shape), np.int32([0])], attrs)
                check('ReduceJoin', [strings(shape=shape), np.int32([-1])], attrs)


def segment_join(check):
    vector, matrix = strings('a', 'b', 'c'), strings(*'abcd', shape=(2, 2))
    for t in (np.int32, np.int64):
        for n in (np.int32, np.int64):
            for data, ids, count in (
                    (vector, [0, 1, 0], 2), (vector, [0, 1, 0], 5), (vector, [0, 1, 0], 0), (vector, [0, 1, 0], -1), (vector, [0, 1], 2),
                    (vector, [0, 1, 5], 2), (vector, [0, 1, -1], 2), (vector, [0, 1, 0], [2]), (vector, [0, 1, 0], [2, 3]), (matrix, [1, 1], 2),
                    (matrix, [1, 0], 2), (matrix, [[0, 1], [1, 1]], 3), (matrix, [[0, 1, 2], [1, 1, 2]], 3), ('a', 0, 2), (vector, 0, 1),
                    (matrix, [[[0, 1], [1, 1]]], 3), (NONE, [], 2), (NONE, [], 0), (strings(shape=(0, 2)), [], 2), (strings(shape=(2, 0)), [0, 0], 2)):
                for separator in ('', '--'):
                    check('UnsortedSegmentJoin', [data, np.array(ids, t), np.array(count, n)], {'separator': separator})


def ngrams(check):
    abc = strings('a', 'bb', '', 'd')

    def one(data, splits, widths, pad=0, keep=False, separator='|', left='L', right='R'):
        for t in (np.int32, np.int64):
            check('StringNGrams', [data, np.array(splits, t)],
                  {'separator': separator, 'ngram_widths': widths, 'left_pad': left, 'right_pad': right, 'pad_width': pad,
                   'preserve_short_sequences': keep})

    for splits in ([0, 4], [0, 1, 4], [0, 0, 2, 2, 4], [0, 4, 4]):
        for widths in ([], [1], [2], [3], [5], [2, 3], [3, 2, 3], [4, 9]):
            for pad in (-2, -1, 0, 1, 2, 5):
                for keep in (True, False):
                    one(abc, splits, widths, pad, keep)
                one(abc, splits, widths, pad, True, '', '', '')
    for splits in ([1, 4], [0, 5], [0, 3], [0, 2, 1, 4], [0, -1, 4], [0], [], [[0, 4]], 0):
        one(abc, splits, [2])
    for widths in ([0], [-1], [2, 0], [2**31]):
        one(abc, [0, 4], widths)
    one(abc, [0, 4], [2], 2**31)
    one(NONE, [], [2])
    one(NONE, [0, 0], [2], -1, True)
    one(strings('a', shape=(1, 1)), [0, 1], [1])
    one('a', [0, 1], [1])


def numbers(check):
    texts = ('1.5', ' 1.5 ', '0x1A', '0x1.8p3', 'inf', 'INF', '-Infinity', 'nan', '-NaN', '+1', '1e400', '-1e400', '1e-400', '1e', '1.', '.5',
             '.', '1f', '1_0', '  ', '1e+5', '--1', '+-1', '1 2', '1' * 40, '1e-46', '3.5e38', '1e-40', '1\t', '\v1', 'infi', '0x', '-0x1A', '-',
             '-0', '00012', '0.1', '1\0', '1', '2147483647', '2147483648', '-2147483648', '-2147483649', '4294967295', '4294967296', '1.0', '',
             '9223372036854775807', '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '18446744073709551615',
             '18446744073709551616', '+', '+ 1', '-1', 'x', '3.4028235677973366e38', '99999999999999999999')
    for t in (np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64):
        for text in texts:
            check('StringToNumber', [text], {'out_type': t})
        check('StringToNumber', [strings('1', '2', '3', '4', shape=(2, 2))], {'out_type': t})
        check('StringToNumber', [strings(shape=(2, 0))], {'out_type': t})
        check('StringToNumber', [strings('1', 'x')], {'out_type': t})
    check('StringToNumber', ['1'])
    check('StringToNumber', ['1'], {'out_type': np.int16})


def base64(check, rng):
    for n in (*range(0, 12), 100):
        data = bytes(rng.integers(0, 256, n, dtype=np.uint8))
        for pad in (True, False):
            check('EncodeBase64', [data], {'pad': pad})
            check('EncodeBase64', [strings(data, b'', data[:1], data[1:], shape=(2, 2))], {'pad': pad})
    for text in ('a', 'ab', '', 'YQ==', 'YQ=', 'YQ', 'Y', 'YW J', 'YWI=', 'a+/_', '====', '===', 'YQ==YQ==', 'YR', 'a-_0', 'abcd=', 'Y===', 'YWI',
                 'YWJj', 'YWJjZA', 'YW\nI', 'YWé', 'YQ=\0', '=', '==', 'a=b=', 'abcdefgh', b'\xff\xfe\xfd\xfc', 'ab\0d'):
        check('DecodeBase64', [text])
    check('DecodeBase64', [strings('YQ==', 'YWI', shape=(2, 1))])
    check('DecodeBase64', [strings(shape=(0, 3))])
    check('DecodeBase64', [strings('YQ==', '!')])
    check('EncodeBase64', [strings(shape=(0, 3))])


def compressed(check):
    text = b'hello ' * 50
    wrong = bytearray(zlib.compress(text))
    wrong[-1] ^= 1
    middle = bytearray(zlib.compress(text))
    middle[4] ^= 0xff
    for kind in ('', 'ZLIB', 'GZIP', 'X', 'zlib', 'NONE'):
        for data in (b'', b'abc', zlib.compress(text), gzip.compress(text, mtime=0), zlib.compress(b''), zlib.compress(text)[:-3],
                     zlib.compress(text)[:6], gzip.compress(text, mtime=0)[:-2], zlib.compress(text) + b'xxx',
                     gzip.compress(text, mtime=0) * 2, bytes(wrong), bytes(middle)):
            check('DecodeCompressed', [data], {'compression_type': kind})
        check('DecodeCompressed', [strings(shape=(2, 0))], {'compression_type': kind})
    check('DecodeCompressed', [strings(zlib.compress(b'a'), b'', zlib.compress(bytes(100000)), zlib.compress(b'b'), shape=(2, 2))],
          {'compression_type': 'ZLIB'})


def padded_raw(check, rng):
    raw = bytes(rng.integers(0, 256, 64, dtype=np.uint8))
    for t in (np.float32, np.float64, np.int32, np.uint16, np.uint8, np.int16, np.int8, np.int64, bfloat16, np.float16):
        for little in (True, False):
            for value in (raw, strings(raw, raw[:7], b'', raw[:16], shape=(2, 2)), strings(shape=(0, 2)), b''):
                for length in (8, 16, 64, 128, 3, 1, 0, -8):
                    check('DecodePaddedRaw', [value, np.int32(length)], {'out_type': t, 'little_endian': little})
    check('DecodePaddedRaw', [raw, np.int32([8])], {'out_type': np.int32})
    check('DecodePaddedRaw', [raw, np.int32([8, 8])], {'out_type': np.int32})


def hashes(check, rng):
    texts = [bytes(rng.integers(0, 256, n, dtype=np.uint8)) for n in range(0, 40)]
    for buckets in (1, 2, 1000, 2**31 + 1, 2**63 - 1):
        for value in ('', 'été', strings(*texts, shape=(2, -1)), strings(shape=(0, 2))):
            check('StringToHashBucket', [value], {'num_buckets': buckets})
            for key in ([1, 2], [0, 0], [-1, 2**62], [2**63 - 1, -2**63]):
                check('StringToHashBucketStrong', [value], {'num_buckets': buckets, 'key': key})
    for key in ([], [1], [1, 2, 3]):
        check('StringToHashBucketStrong', ['a'], {'num_buckets': 3, 'key': key})
    check('StringToHashBucketStrong', ['a'], {'num_buckets': 0, 'key': [1, 2]})
    check('StringToHashBucket', ['a'], {'num_buckets': 0})


def fingerprints(check, rng):
    # Rows of no strings are left as memory was in TensorFlow.
    for t in (np.int8, np.int32, np.float32, np.float64, np.bool_, np.complex64, np.uint16, bfloat16):
        for shape in ((3,), (2, 4), (2, 3, 5), (0, 2), (2, 0), (0,)):
            check('Fingerprint', [np.abs(rng.standard_normal(shape) * 10).astype(t), 'farmhash64'])
    for value in (strings('a', 'b', ''), strings('a', 'b', shape=(2, 1)), strings('a', 'b', 'c', '', shape=(2, 2)), strings(shape=(0, 2)),
                  strings('x' * 50, 'y', 'z', 'w', shape=(1, 2, 2))):
        check('Fingerprint', [value, 'farmhash64'])
    for method in ('x', '', strings('farmhash64')):
        check('Fingerprint', [np.int32([[1]]), method])
    check('Fingerprint', [np.int32(1), 'farmhash64'])


def cases(check, rng):
    split(check)
    reduce_join(check)
    segment_join(check)
    ngrams(check)
    numbers(check)
    base64(check, rng)
    compressed(check)
    padded_raw(check, rng)
    hashes(check, rng)
    fingerprints(check, rng)
