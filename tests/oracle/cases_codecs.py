"""Cases of the decoders and encoders of src/ops/image/ beside those of JPEG and PNG (cases_image.py)."""
import struct

import image_files
import numpy as np
import picture_files
from picture_files import blocks, bmp, frame, gif


def gifs(rng):
    """Whole files, by name."""
    full = frame(rng, 0, 0, 20, 15, 4)
    return {
        'one': gif(rng, [full]), 'old': gif(rng, [frame(rng, 0, 0, 20, 15, 4, control=False)], version=b'GIF87a'),
        'interlaced': gif(rng, [frame(rng, 0, 0, 31, 17, 6, interlaced=True), frame(rng, 0, 0, 3, 1, 6, interlaced=True)], bits=6),
        'parts': gif(rng, [full, frame(rng, 3, 4, 5, 6, 4, local=True, transparent=2), frame(rng, 2, 2, 25, 10, 4, interlaced=True)]),
        'inside first': gif(rng, [frame(rng, 5, 6, 7, 8, 4), frame(rng, 0, 0, 12, 3, 4, transparent=1)]),
        'clear': gif(rng, [frame(rng, 0, 0, 20, 15, 4, transparent=0), frame(rng, 0, 0, 20, 15, 4, transparent=15)]),
        'bit': gif(rng, [frame(rng, 0, 0, 9, 9, 1)], bits=1), 'bytes': gif(rng, [frame(rng, 0, 0, 70, 90, 8, local=True)] * 2, bits=8),
        'long': gif(rng, [frame(rng, 0, 0, 150, 100, 7)], bits=7),  # the table of codes is full, and cleared
        'text': gif(rng, [b'!\xfe' + blocks(b'words'), full, b'!\xff' + blocks(b'NETSCAPE2.0') + b'', full]),
        'away': gif(rng, [full, frame(rng, 400, 300, 5, 5, 4)]), 'no end': gif(rng, [full, full], end=b''),
        'more': gif(rng, [full], end=b';') + b'and more',
    }


def decode_gif(check, rng):
    for contents in gifs(rng).values():
        check('DecodeGif', [contents])
        for attrs in ({}, {'expand_animations': False}, {'dtype': np.uint16}, {'dtype': np.float32, 'channels': 3}, {'channels': 1}):
            check('DecodeImage', [contents], attrs)
        check('DecodePng', [contents])
        check('DecodeJpeg', [contents], {'channels': 3})
    contents = gifs(rng)['parts']
    for at in range(4, len(contents), 9):
        check('DecodeGif', [contents[:at]])
    # What is wrong within a frame; lies about its size; colours that are not there.
    image = b',' + struct.pack('<HHHHB', 0, 0, 60000, 60000, 0) + b'\3' + blocks(picture_files.lzw([1] * 100, 3))
    for frames in ([image], [image[:5] + bytes(4) + image[9:]], [b'?'], [], [frame(rng, 0, 0, 4, 4, 3, most=8)]):
        check('DecodeGif', [gif(rng, frames, bits=1)])
    check('DecodeGif', [gif(rng, [frame(rng, 0, 0, 4, 4, 4)], has_map=False)])
    for op in ('DecodeBmp', 'DecodeWebP'):
        check(op, [contents])
    check('DecodeAndCropJpeg', [contents, np.int32([0, 0, 3, 3])])


def decode_bmp(check, rng):
    for channels in (1, 3, 4):
        for width, height in ((5, 4), (8, 3), (1, 1), (7, -6)):
            contents = bmp(rng, width, height, channels)
            for wanted in (0, 1, 3, 4):
                check('DecodeBmp', [contents], {'channels': wanted})
            # Of a file whose rows begin at the top TensorFlow makes no wider numbers, but ends.
            for dtype in (np.uint8, np.uint16, np.float32) if height > 0 else (np.uint8,):
                check('DecodeImage', [contents], {'dtype': dtype, 'channels': 3 if channels == 1 else 0})
    good = bmp(rng, 5, 4, 3)
    for bad in (good[:-1], good + b'x', good[:31], good[:54], bmp(rng, 5, 4, 3, extra=4), bmp(rng, -5, 4, 3), bmp(rng, 5, 0, 3),
                bmp(rng, 5, 4, 2), bmp(rng, 5, 4, 3, bits=1), bmp(rng, 2**30, 4, 3), bmp(rng, 2**31 - 1, 1, 1), bmp(rng, 5, -2**31, 3),
                bmp(rng, 20000, 20000, 4), bmp(rng, 5, 4, 3, header=60), b'BM', good[:10] + b'\xff' * 4 + good[14:]):
        check('DecodeBmp', [bad])
    check('DecodeBmp', [np.array([good], object)])
    for op in ('DecodePng', 'DecodeJpeg', 'DecodeGif'):
        check(op, [good])
    check('DecodeAndCropJpeg', [good, np.int32([0, 0, 3, 3])])


def decode_image(check, rng):
    jpeg, png = image_files.jpeg(rng, 21, 18, [(2, 2), (1, 1), (1, 1)]), image_files.png(rng, 9, 7, 6, 8)
    for contents in (jpeg, png, image_files.png(rng, 5, 4, 0, 16)):
        for attrs in ({}, {'dtype': np.uint16}, {'dtype': np.float32}, {'channels': 1, 'expand_animations': False}, {'channels': 3},
                      {'channels': 4, 'dtype': np.float32}, {'channels': 2}, {'channels': -1}):
            check('DecodeImage', [contents], attrs)
        check('DecodeGif', [contents])
        check('DecodeBmp', [contents])
    for bad in (b'', b'nothing known', b'RIFF1234WEBQ....', np.array([png], object)):
        for op in ('DecodeImage', 'DecodeGif', 'DecodeBmp', 'DecodeWebP'):
            check(op, [bad])
    check('DecodeBmp', [png], {'channels': 5})


def decode_webp(check, rng):
    for name, contents in picture_files.WEBP.items():
        for channels in (0, 1, 3, 4):
            check('DecodeWebP', [contents], {'channels': channels})
            check('DecodeImage', [contents], {'channels': channels, 'expand_animations': False})
        check('DecodeImage', [contents])
        check('DecodeImage', [contents], {'dtype': np.float32})
        for size in range(13, len(contents), 37):
            check('DecodeWebP', [contents[:size]])
    images = [picture_files.WEBP[name][12:] for name in ('lossless_alpha', 'clear', 'lossless')]
    sizes = [(7, 6), (7, 6), (9, 7)]
    for canvas in ((12, 10), (7, 6), (9, 7)):
        for _ in range(8):
            frames = []
            for i in rng.integers(0, 3, 4):
                width, height = sizes[i]
                if width <= canvas[0] and height <= canvas[1]:
                    left, top = rng.integers(0, canvas[0] - width + 1) // 2 * 2, rng.integers(0, canvas[1] - height + 1) // 2 * 2
                    frames.append((left, top, width, height, int(rng.integers(0, 4)), images[i]))
            check('DecodeWebP', [picture_files.animation(*canvas, frames)])
    good = (0, 0, 7, 6, 0, images[0])
    for frames in ([(2, 0, 7, 6, 0, images[0])], [(0, 0, 6, 6, 0, images[0])], [good, (0, 0, 7, 6, 0, images[0][:20])], [good, (0, 0, 7, 6, 0, b'')]):
        check('DecodeWebP', [picture_files.animation(7, 6, frames)])
    # TensorFlow gives these four dimensions, whatever their shape functions say.
    for op in ('DecodePng', 'DecodeJpeg', 'DecodeBmp'):
        check(op, [picture_files.WEBP['lossless']], weir_only_fails=True)
    check('DecodeGif', [picture_files.WEBP['lossless']])


def crop_jpeg(check, rng):
    for factors in ([(1, 1)] * 3, [(2, 2), (1, 1), (1, 1)], [(2, 1), (1, 1), (1, 1)], [(1, 1)], [(1, 1)] * 4):
        contents = image_files.jpeg(rng, 40, 50, factors)
        for window in ([0, 0, 40, 50], [3, 7, 20, 11], [39, 49, 1, 1], [16, 16, 16, 16], [0, 25, 40, 25]):
            for attrs in ({}, {'channels': 1}, {'fancy_upscaling': False}, {'dct_method': 'INTEGER_ACCURATE'}):
                check('DecodeAndCropJpeg', [contents, np.int32(window)], attrs)
        check('DecodeAndCropJpeg', [contents, np.int32([3, 4, 10, 12])], {'ratio': 2})
        for window in ([0, 0, 41, 50], [0, 0, 40, 51], [-1, 0, 5, 5], [0, -1, 5, 5], [2, 2, 0, 5], [2, 2, 5, -3], [1, 1, 2**31 - 1, 1]):
            check('DecodeAndCropJpeg', [contents, np.int32(window)])
    for window in ([0, 0, 4], [[0, 0, 4, 4]], [0, 0, 4, 4, 4], 3):
        check('DecodeAndCropJpeg', [contents, np.int32(window)])
    check('DecodeAndCropJpeg', [contents[:200], np.int32([0, 0, 4, 4])])
    check('DecodeAndCropJpeg', [image_files.png(rng, 9, 9, 6, 8), np.int32([0, 0, 4, 4])])
    check('DecodeAndCropJpeg', [contents, np.int32([0, 0, 4, 4])], {'channels': 4})


def jpeg_shape(check, rng):
    for factors in ([(1, 1)] * 3, [(2, 2), (1, 1), (1, 1)], [(1, 1)], [(1, 1)] * 4, [(1, 1)] * 2):
        contents = image_files.jpeg(rng, 13, 29, factors)
        for dtype in (np.int32, np.int64):
            check('ExtractJpegShape', [contents], {'output_type': dtype})
    for bad in (b'', b'x', contents[:20], contents[:300], image_files.png(rng, 9, 9, 6, 8), np.array([contents], object)):
        check('ExtractJpegShape', [bad])


def encode_variable(check, rng):
    for shape in ((16, 24, 3), (9, 7, 1), (1, 1, 3)):
        image = rng.integers(0, 256, shape, np.uint8)
        for quality in (0, 1, 50, 95, 100, -1, 101):
            check('EncodeJpegVariableQuality', [image, np.int32(quality)])
    for bad in (image[0], np.zeros((4, 4, 2), np.uint8), np.zeros((4, 0, 3), np.uint8)):
        check('EncodeJpegVariableQuality', [bad, np.int32(50)])
    check('EncodeJpegVariableQuality', [image, np.int32([50])])


def cases(check, rng):
    decode_gif(check, rng)
    decode_bmp(check, rng)
    decode_image(check, rng)
    decode_webp(check, rng)
    crop_jpeg(check, rng)
    jpeg_shape(check, rng)
    encode_variable(check, rng)
