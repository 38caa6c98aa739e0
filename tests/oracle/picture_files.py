"""Writes GIF and BMP files, whole or with whatever is wrong with them, and holds some WebP files."""
import base64
import struct


def lzw(pixels, bits):
    """The codes of |pixels|, each below 1 << |bits|."""
    clear, end = 1 << bits, (1 << bits) + 1
    out, room, have = bytearray(), 0, 0
    table, size, prefix = {}, bits + 1, ()

    def put(code):
        nonlocal room, have
        room |= code << have
        have += size
        while have >= 8:
            out.append(room & 255)
            room, have = room >> 8, have - 8

    put(clear)
    table, following = {(i,): i for i in range(clear)}, end + 1
    for pixel in pixels:
        if prefix + (pixel,) in table:
            prefix += (pixel,)
            continue
        put(table[prefix])
        if following == 4096:
            put(clear)
            table, following, size = {(i,): i for i in range(clear)}, end + 1, bits + 1
        else:
            table[prefix + (pixel,)] = following
            size += following == 1 << size
            following += 1
        prefix = (pixel,)
    if prefix:
        put(table[prefix])
    put(end)
    if have:
        out.append(room & 255)
    return bytes(out)


def blocks(data):
    return b''.join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b'\0'


def colors(rng, bits):
    return rng.integers(0, 256, 3 << bits).astype('u1').tobytes()


def frame(rng, left, top, width, height, bits, local=False, interlaced=False, transparent=None, control=True, most=None):
    """A control block, and an image of random pixels below |most|, in runs."""
    pixels = rng.integers(0, most or 1 << bits, (height * width + 2) // 3).repeat(3)[:height * width].tolist()
    out = b''
    if control:
        out += b'!\xf9' + blocks(bytes([transparent is not None, 5, 0, transparent or 0]))
    flags = (0x80 | bits - 1 if local else 0) | (0x40 if interlaced else 0)
    out += b',' + struct.pack('<HHHHB', left, top, width, height, flags)
    return out + (colors(rng, bits) if local else b'') + bytes([max(bits, 2)]) + blocks(lzw(pixels, max(bits, 2)))


def gif(rng, frames, width=20, height=15, bits=4, has_map=True, end=b';', version=b'GIF89a'):
    head = version + struct.pack('<HHBBB', width, height, (0x80 | bits - 1) if has_map else 0, 0, 0)
    return head + (colors(rng, bits) if has_map else b'') + b''.join(frames) + end


def bmp(rng, width, height, channels, header=54, extra=0, bits=None, magic=b'BM'):
    row = (width * channels + 3) // 4 * 4
    head = magic + struct.pack('<IHHIIiiHHIIiiII', 0, 0, 0, header, 40, width, height, 1, bits or 8 * channels, 0, 0, 0, 0, 0, 0)
    head = head[:header].ljust(min(header, 10000), b'\0')
    size = max(0, row * abs(height) + extra) if abs(row * height) < 1 << 20 else 100
    return head + rng.integers(0, 256, size).astype('u1').tobytes()

def chunk(name, data):
    return name + struct.pack('<I', len(data)) + data + bytes(len(data) % 2)


def animation(width, height, frames):
    """A WebP file of frames: left, top, width, height, flags (1: disposed of, 2: not blended) and the image's chunks."""
    def three(*numbers):
        return b''.join(struct.pack('<I', number)[:3] for number in numbers)

    data = b'WEBP' + chunk(b'VP8X', b'\x12\0\0\0' + three(width - 1, height - 1)) + chunk(b'ANIM', bytes(6))
    for left, top, w, h, flags, image in frames:
        data += chunk(b'ANMF', three(left // 2, top // 2, w - 1, h - 1, 100) + bytes([flags]) + image)
    return b'RIFF' + struct.pack('<I', len(data)) + data


# Of PIL, by libwebp: lossy of 30 by 21 pixels; lossless of less.
WEBP = {
    'lossy': base64.b64decode(
        'UklGRpoAAABXRUJQVlA4II4AAADwBQCdASoeABUAPu1mqk2ppaQiMAgBMB2JbACdMoR6eLDsK+ABLp46f7e/96DtBCDb/cbgIzLrgAD+x94iBASM+Rts1+'
        'gwzjVc8sUclgIHo4XILnVY1RKeNyWMQsVgc8loYxT2Weamt3Ypd5EMuU/oZPrqDSz3Qo2zcjzK+GSNREKDnIz7Xf2qTKZglzAA'),
    'lossy_alpha': base64.b64decode(
        'UklGRo4CAABXRUJQVlA4WAoAAAAQAAAAHQAAFAAAQUxQSOQBAAAFoCQAYNpGEtgi2zIl7TDDdb45n2TYDZhkkGXRNyIivq6jWia9gn8gU0hScVDyPjT4VZ'
        'OfsBP9/+B/bdW+JR5uj2Mh92fpGZ3zpzhW0uHvy3Rsw+ZC3NKYZ6ii/jV+AV6hVJa+P3Q3h20wGIZsxFksHmz7VOLT6f7erM6YWY3GLD45jkputE6nD2eB'
        'nhfUPaeHVvcr8xp2EEKpz8t7JXnb3j+jojWa3RYD/l/be9aDUIxn4J+yMicVqcfnc+qGYNZLs2zewoKHrQDF+A7WtnqgIG32bpL9RRy/85iivfEJLvj6Gp'
        'Yrfb7lo5/YrkdbXeqbT094j7WmRAoLTi59ZIsehaFhib65NH9qzVLe3DPhaqgJ3pWFzKPRYWIjzPvWxgPCOiSYI4RVBiahy8MccsO20H1NgFSY8HvFO94O'
        '9YBDGrlub4zubM86crDg7HkFV3nNcGEB3RJkUaWBT6FCNHYB6HqxBGZeYkTB9JROy4t5LXqgYETQGC/72TeqDJJSEmpLesCVrf6iycV7tVlIclRt9JVOME'
        'o4GcfGGxAnuw9puO3F4mAtTMWYSKPFoLovL76J7Trv+DeF3Y5yBiRdvqyWwuoXJ8W/zuK7if9E13s4nIEskwb5GuV9JGRXib642XSLuvIIVlA4IIQAAABw'
        'BQCdASoeABUAPxF2sVCsJ6SisAgBgCIJbACdMoPNScABLeUZDaM/YctFxDOuTDNG7NgAAP60ojuU54+iZgKw767cA7AOS7JvLz10HafmWjQaLgQwdKX/+T'
        'liF5CvAN0bO6KsX/6AqeM9O9MESR91Gg9SM4NdRCyHjy8E4GrEL5cgAAA='),
    'lossless': base64.b64decode(
        'UklGRlQAAABXRUJQVlA4TEcAAAAvCIABAD8gEEhCG31MgUAS2mijCwSS0EYfbf7jLgYLgn2gJpIkNf4c372Jzzk+kPAb0f/o8lGJHY1YUKM4moh7G+Yrz7'
        'dWBgA='),
    'lossless_alpha': base64.b64decode(
        'UklGRk4AAABXRUJQVlA4TEIAAAAvBkABEE8wwAKBJLTRRxMIJKGNPppAIAlt9NFihwRmAl+UBzUBgLRxcOYgg/NmFrCUEf2PK6/R0EpDahKtLFp+aAc='),
    'animated': base64.b64decode(
        'UklGRuIAAABXRUJQVlA4WAoAAAASAAAABgAABQAAQU5JTQYAAAAAAAAAAABBTk1GXAAAAAAAAAAAAAYAAAUAAAAAAAJWUDhMQwAAAC8GQAEQTyAQSEYbPU'
        'yBQBLaaKMLBJLQRh9tgCLo2khqdhEDagIAaZghqIH7n7+drED1iP7HzQ9iJo2Z1XLSkRN/TwQAQU5NRlIAAAAAAAAAAAAGAAAFAAAAAAACVlA4TDkAAAAv'
        'BkABED8wQAMkEEhGC320AQqSBho4gGIAYGJNuwWGsAiaQKdBACH0K6L/8S7AN7DdluyzKGuRDGcA'),
    'clear': base64.b64decode(
        'UklGRlQAAABXRUJQVlA4TEgAAAAvBkABEBAIECZNmrQhECBMmjRJIECYNGmSQCAZdtiwgnkGMhXpaeJdNYbTlADdvIpbLLML+K1fuceOyuKZx17bv+4TB5'
        'waoQY='),
}
