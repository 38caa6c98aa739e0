"""Image files of kinds that TensorFlow's encoders do not write: PNGs of every type, JPEGs of any sampling, GIFs, BMPs."""
import struct
import zlib

import numpy as np

# ---- PNG ----

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(name, body=b'', crc=None):
    crc = zlib.crc32(name + body) if crc is None else crc
    return struct.pack('>I', len(body)) + name + body + struct.pack('>I', crc)


def paeth(a, b, c):
    p = a + b - c
    near = [(abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c)]
    return min(near)[2]


def filter_row(kind, row, prior, step):
    out = bytearray([kind])
    for i, x in enumerate(row):
        a = row[i - step] if i >= step else 0
        b = prior[i]
        c = prior[i - step] if i >= step else 0
        out.append((x - (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255)
    return bytes(out)


def pack_rows(samples, depth, rng):
    """The bytes of one pass: rows, each by a filter of its own. |samples|: height, width, channels."""
    height, width, channels = samples.shape
    if height == 0 or width == 0:
        return b''
    step = max(1, channels * depth // 8)
    data, prior = b'', None
    for row in samples.reshape(height, -1):
        if depth == 16:
            packed = row.astype('>u2').tobytes()
        else:
            bits = (row[:, None] >> np.arange(depth)[::-1]) & 1
            packed = np.packbits(bits.astype(np.uint8).ravel()).tobytes()
        data += filter_row(int(rng.integers(5)), packed, prior or bytes(len(packed)), step)
        prior = packed
    return data


def png(rng, width, height, color, depth, interlaced=False, transparency=None, before=b'', samples=None):
    """A PNG of random pixels; |transparency|: the body of tRNS; |before|: chunks before the pixels."""
    if samples is None:
        samples = rng.integers(0, min(1 << depth, 1 << 16), (height, width, CHANNELS[color]))
    data = b''.join(pack_rows(samples[y::dy, x::dx], depth, rng) for x, y, dx, dy in PASSES) if interlaced else \
        pack_rows(samples, depth, rng)
    out = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, depth, color, 0, 0, interlaced)) + before
    if color == 3:
        out += chunk(b'PLTE', rng.integers(0, 256, 3 << depth, np.uint8).tobytes())
    if transparency is not None:
        out += chunk(b'tRNS', transparency)
    packed = zlib.compress(data)
    for at in range(0, len(packed), 100):  # in several chunks
        out += chunk(b'IDAT', packed[at:at + 100])
    return out + chunk(b'IEND')


# ---- JPEG ----

DC = bytes.fromhex('00010501010101010100000000000000'), bytes(range(12))
AC = bytes.fromhex('0002010303020403050504040000017d'), bytes.fromhex(
    '01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748'
    '494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2'
    'c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa')


def codes(table):
    out, code, at = {}, 0, 0
    for length, count in enumerate(table[0], 1):
        for _ in range(count):
            out[table[1][at]] = (code, length)
            code, at = code + 1, at + 1
        code <<= 1
    return out


class Bits:
    def __init__(self):
        self.text = []

    def put(self, value, size):
        if size:
            self.text.append(format(value & ((1 << size) - 1), f'0{size}b'))

    def take(self):
        text = ''.join(self.text)
        self.text = []
        text += '1' * (-len(text) % 8)
        data = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
        return data.replace(b'\xff', b'\xff\0')


def put_number(bits, code, value, run=0):
    size = int(abs(value)).bit_length()
    bits.put(*code[run << 4 | size])
    bits.put(value if value > 0 else value + (1 << size) - 1, size)


def put_block(bits, dc_code, ac_code, dc_difference, coefs):
    put_number(bits, dc_code, dc_difference)
    run = 0
    for value in coefs:
        if value == 0:
            run += 1
            continue
        while run > 15:
            bits.put(*ac_code[0xf0])
            run -= 16
        put_number(bits, ac_code, int(value), run)
        run = 0
    if run:
        bits.put(*ac_code[0])


def segment(marker, body=b''):
    return bytes([0xff, marker]) + struct.pack('>H', len(body) + 2) + body


def jpeg(rng, width, height, factors, ids=(1, 2, 3, 4), jfif=True, adobe=None, restart=0, separate=False, tables=True, wide=False,
         end=True):
    """A baseline JPEG of random coefficients; |factors|: sampling (h, v) of each component. |separate|: a scan for each."""
    count = len(factors)
    max_h, max_v = max(h for h, _ in factors), max(v for _, v in factors)
    dc_code, ac_code = codes(DC), codes(AC)
    out = b'\xff\xd8' + (segment(0xe0, b'JFIF\0\1\1\0\0\1\0\1\0\0') if jfif else b'')
    if adobe is not None:
        out += segment(0xee, b'Adobe\0\x64\0\0\0\0' + bytes([adobe]))
    quant = np.clip(rng.integers(1, 30, 64), 1, 255)
    out += segment(0xdb, b'\x10' + quant.astype('>u2').tobytes() if wide else b'\0' + quant.astype(np.uint8).tobytes())
    out += segment(0xc1 if wide else 0xc0, struct.pack('>BHHB', 8, height, width, count) +
                   b''.join(bytes([ids[i], h << 4 | v, 0]) for i, (h, v) in enumerate(factors)))
    if tables:
        out += segment(0xc4, b'\0' + DC[0] + DC[1] + b'\x10' + AC[0] + AC[1])
    if restart:
        out += segment(0xdd, struct.pack('>H', restart))
    for scan in [[i] for i in range(count)] if separate else [list(range(count))]:
        out += segment(0xda, bytes([len(scan)]) + b''.join(bytes([ids[i], 0]) for i in scan) + b'\0\x3f\0')
        out += jpeg_scan(rng, width, height, [factors[i] for i in scan], (max_h, max_v), (dc_code, ac_code), restart)
    return out + (b'\xff\xd9' if end else b'')


def jpeg_scan(rng, width, height, factors, most, tables, restart):
    if len(factors) == 1:
        (h, v), blocks = factors[0], [1]
        mcus = (-(-width * h // (8 * most[0]))) * (-(-height * v // (8 * most[1])))
    else:
        blocks = [h * v for h, v in factors]
        mcus = (-(-width // (8 * most[0]))) * (-(-height // (8 * most[1])))
    bits, out, last = Bits(), b'', [0] * len(factors)
    for m in range(mcus):
        if restart and m and m % restart == 0:
            out += bits.take() + bytes([0xff, 0xd0 + (m // restart - 1) % 8])
            last = [0] * len(factors)
        for i, n in enumerate(blocks):
            for _ in range(n):
                dc = int(rng.integers(-40, 41))
                coefs = rng.integers(-9, 10, 63) * (rng.random(63) < 0.15)
                put_block(bits, *tables, dc - last[i], coefs)
                last[i] = dc
    return out + bits.take()
