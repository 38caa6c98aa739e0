"""Cases of the Unicode ops, and of letters' cases."""
import numpy as np


def strings(*texts, shape=None):
    array = np.array([t.encode() if isinstance(t, str) else t for t in texts] + [None], dtype=object)[:-1]
    return array if shape is None else array.reshape(shape)


UTF8 = [b'', b'abc', 'a\u00e9b\u4e2d\U0001f600'.encode(), b'a\xffb', b'\xf0\x9f\x98', b'\xf0\x9f\x98a', b'\xe0\x80\x80', b'\xed\xa0\x80', b'\xed\x9f\xbf',
        b'\xf4\x90\x80\x80', b'\xf4\x8f\xbf\xbf', b'\xc3', b'\xf8\x88\x80\x80\x80', b'\xf0\x80\x80', b'\xc0\x80', b'\xc3\xc3\xa9', b'\xe4\xb8\xc3\xa9', b'\x80',
        b'\x00\x01a\x1f\x7f\xc2\x80', b'a\xef\xbf\xbdb', b'\xef\xbb\xbfab', b'\xef\xbf\xbe\xef\xbf\xbf', b'\xf0\x9f\xc3\xa9', b'\xfe\xff', b'\xe1\x80', b'\xf1\x80\x80']
UTF16 = [b'\xfe\xff\x00a\x00b', b'\xff\xfea\x00b\x00', b'\x00a\xd8\x00\x00b', b'\xd8\x3d\xde\x00', b'\xdc\x00\x00a', b'\x00a\x00', b'\xd8\x3d', b'\xd8\x3d\xde', b'\xfe',
         b'\xfe\xff', b'\xff\xfe', b'\xd8\x00\xd8\x00\xdc\x00', b'a\x00\x00\xd8b\x00', b'\x3d\xd8\x00\xde', b'\x00\x01\x00\x00', b'\xfe\xff\xfe\xff\x00a', b'\xff\xfe\xfe\xff']
UTF32 = [b'\0\0\xfe\xff\0\0\0a', b'\xff\xfe\0\0a\0\0\0', b'\0\0\0a\0\0\xd8\0\0\0\0b', b'\0\x11\0\0', b'\0\0\0', b'\0\0\0a\0', b'a\0\0\0\0\0\x11\0', b'\xff\xfe\0',
         b'\0\x01\xf6\0', b'\x80\0\0\0', b'\0\0\xfe\xff', b'\xff\xff\xff\xff']
SHIFT_JIS = bytes(range(0x80)) + b''.join(bytes([a, b]) for a in (0x81, 0x82, 0x83, 0x8f, 0xee, 0xfa) for b in range(0x40, 0x7f))
FAMILIES = [(UTF8, ('UTF-8', 'utf8', 'UTF_8', 'US-ASCII', 'ASCII', 'ISO-8859-1', 'latin1', 'nope', '')),
            (UTF16, ('UTF-16', 'UTF16', 'UTF-16BE', 'UTF-16-BE', 'UTF-16LE', 'utf_16le')), (UTF32, ('UTF-32', 'UTF-32BE', 'UTF-32LE', 'utf32')),
            # Single bytes by iconv.
            ([bytes(range(32, 127)), bytes(range(0xc0, 0x100)), b'\xe9a\xd0'], ('koi8-r', 'ISO-8859-5', 'ISO-8859-15', 'windows-1251', 'IBM866')),
            (['\u65e5\u672c a'.encode('shift_jis'), SHIFT_JIS], ('shift_jis', 'Windows-31J', 'SJIS')), (['\u65e5\u672c a'.encode('euc_jp')], ('EUC-JP',)),
            (['\u4e2d\u6587 a'.encode('gb18030')], ('gb18030', 'GBK')), (['\u4e2d\u6587 a'.encode('big5')], ('Big5',)),
            (['\ud55c\uae00 a'.encode('euc_kr')], ('EUC-KR', 'euc_kr'))]


def decode(check):
    for texts, encodings in FAMILIES:
        for encoding in encodings:
            for errors in ('strict', 'replace', 'ignore'):
                for controls in (True, False):
                    attrs = {'input_encoding': encoding, 'errors': errors, 'replace_control_characters': controls}
                    for text in texts:
                        check('UnicodeDecodeWithOffsets', [text], attrs)
                        for out in ('UTF-8', 'UTF-16-BE', 'UTF-32-BE'):
                            check('UnicodeTranscode', [text], dict(attrs, output_encoding=out))
                    check('UnicodeDecode', [strings(*texts)], attrs)
                    check('UnicodeDecodeWithOffsets', [strings(*texts)], attrs)
                    check('UnicodeTranscode', [strings(*texts)], dict(attrs, output_encoding='UTF-8'))


def decode_attrs(check):
    for t in (np.int32, np.int64):
        for value in (strings('ab', '', 'c', 'd', shape=(2, 2)), strings(shape=(0, 2)), strings(), 'abc', b'a\xffb'):
            for char in (0x20, 0xfffd, 0x1f600, 0x10ffff):
                # TensorFlow's process dies of offsets with splits of int32.
                for op in ('UnicodeDecode', 'UnicodeDecodeWithOffsets') if t == np.int64 else ('UnicodeDecode',):
                    check(op, [value], {'input_encoding': 'UTF-8', 'Tsplits': t, 'replacement_char': char})
                check('UnicodeTranscode', [value], {'input_encoding': 'UTF-8', 'output_encoding': 'UTF-8', 'replacement_char': char})
    for char in (-1, 0x110000, 2**31, -2**31 - 1, 0xd800):
        check('UnicodeDecode', [b'a\xffb'], {'input_encoding': 'UTF-8', 'replacement_char': char})
        check('UnicodeTranscode', [b'a\xffb'], {'input_encoding': 'UTF-8', 'output_encoding': 'UTF-8', 'replacement_char': char})
    check('UnicodeDecode', ['a'], {'input_encoding': 'UTF-8', 'errors': 'x'})
    check('UnicodeTranscode', ['a'], {'input_encoding': 'UTF-8', 'output_encoding': 'UTF-16'})
    check('UnicodeTranscode', ['a'], {'input_encoding': 'nope', 'output_encoding': 'UTF-8'})


def encode(check):
    values = [97, 0x1f600, 0, 0xd800, 0xdfff, 0xfffe, 0x110000, -1, 0xfdd0, 0x10ffff, 0x7ff, 0x800, 0x80, 0x7f, 0xffff, 0x10000]
    for t in (np.int32, np.int64):
        for out in ('UTF-8', 'UTF-16-BE', 'UTF-32-BE'):
            for errors in ('replace', 'ignore', 'strict'):
                attrs = {'output_encoding': out, 'errors': errors}
                check('UnicodeEncode', [np.int32(values), np.array([0, 1, 5, 5, len(values)], t)], attrs)
                for v in values:
                    check('UnicodeEncode', [np.int32([97, v, 98]), np.array([0, 3], t)], attrs)
        for v, s in (([97], [0, 2]), ([97], [1, 1]), ([97], [0, 0]), ([97, 98], [0, 2, 1, 2]), ([], [0]), ([97], []), ([[97]], [0, 1]), ([97], [[0, 1]]),
                     ([97], [0, -1, 1]), ([], []), ([], [0, 0]), (97, [0, 1])):
            check('UnicodeEncode', [np.array(v, np.int32), np.array(s, t)], {'output_encoding': 'UTF-8'})
    for char in (-1, 0x110000, 0x1f600, 32, 0xd800):
        check('UnicodeEncode', [np.int32([97, -1]), np.int64([0, 2])], {'output_encoding': 'UTF-8', 'replacement_char': char})
    check('UnicodeEncode', [np.int32([97]), np.int64([0, 1])], {'output_encoding': 'UTF-16'})


def characters(check, rng):
    every = np.arange(0x110000, dtype=np.int32)
    check('UnicodeScript', [every])
    check('UnicodeScript', [np.int32([-1, 0x110000, 2**31 - 1, -2**31])])
    for shape in ((), (0,), (2, 0), (2, 3)):
        check('UnicodeScript', [rng.integers(0, 0x3000, shape).astype(np.int32)])
    letters = strings(*[chr(c) for c in range(0x20000) if not 0xd800 <= c < 0xe000])
    words = strings('', 'ABC def', '\u039f\u0394\u039f\u03a3', '\u03a3', 'A\u03a3', 'A\u03a3B', 'A\u0301\u03a3\u0301', 'A\u03a3.', 'a.\u03a3', '\u03a3A', 'A\u03a3\u0301B', '\u0130I', '\u00df\u0149\ufb03',
                    b'a\xffB', 'A\0B', 'stra\u00dfe', '\u01c5\u01c4\u01c6', 'A\u00ad\u03a3', 'A:\u03a3 ', '1\u03a3', '\U00010400\U00010428')
    for op in ('StringLower', 'StringUpper'):
        for encoding in ('', 'utf-8', 'UTF-8', 'x'):
            check(op, [words], {'encoding': encoding})
            check(op, [words[:4].reshape(2, 2)], {'encoding': encoding})
            check(op, [strings(shape=(0, 2))], {'encoding': encoding})
            check(op, ['\u00c0a'], {'encoding': encoding})
        check(op, [letters], {'encoding': 'utf-8'})
    for value in (words, ' \t\n\v\f\r a\0 ', '   ', '', strings(' a', 'b ', ' c ', 'd', shape=(2, 2)), strings(shape=(0, 2)), 'a b', '\u00a0a', b' \x85'):
        check('StringStrip', [value])


def cases(check, rng):
    decode(check)
    decode_attrs(check)
    encode(check)
    characters(check, rng)
