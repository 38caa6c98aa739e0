"""Cases of src/ops/image/, and of Conv3D and Dilation2D of src/ops/nn/."""
import image_files
import ml_dtypes
import numpy as np
import tensorflow as tf

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
REALS = FLOATS + [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
LOOSE = {np.float32: dict(rtol=2e-5, atol=2e-5), np.float64: dict(rtol=1e-11, atol=1e-11),
         np.float16: dict(rtol=2e-2, atol=2e-2), ml_dtypes.bfloat16: dict(rtol=1e-1, atol=1e-1)}


def normal(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def real(rng, shape, dtype):
    if np.dtype(dtype).kind in 'iu':
        low = 0 if np.dtype(dtype).kind == 'u' else -20
        return rng.integers(low, 20, shape).astype(dtype)
    return normal(rng, shape, dtype)


def resize_bilinear(check, rng):
    ints = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]
    for dtype in FLOATS + ints:
        for attrs in ({}, {'align_corners': True}, {'half_pixel_centers': True}):
            x = real(rng, (2, 5, 7, 3), dtype)
            for size in ((3, 4), (10, 13), (5, 7), (1, 1), (5, 9)):
                check('ResizeBilinear', [x, np.int32(size)], attrs, rtol=1e-5, atol=2e-5)
                if dtype in FLOATS:
                    dy = normal(rng, (2, *size, 3))
                    tolerance = dict(rtol=1e-5, atol=1e-5) if dtype in FLOATS[:2] else LOOSE[dtype]
                    check('ResizeBilinearGrad', [dy, x], attrs, **tolerance)
    for shape, size in (((1, 1, 1, 1), (4, 5)), ((1, 40, 30, 3), (90, 17)), ((4, 2, 3, 5), (31, 2)),
                        ((1, 17, 9, 1), (3, 50)), ((0, 4, 4, 3), (2, 2)), ((1, 64, 64, 2), (7, 7))):
        for attrs in ({}, {'align_corners': True}, {'half_pixel_centers': True}):
            x, dy = normal(rng, shape), normal(rng, (shape[0], *size, shape[3]))
            check('ResizeBilinear', [x, np.int32(size)], attrs, rtol=1e-5, atol=2e-5)
            check('ResizeBilinearGrad', [dy, x], attrs, rtol=1e-5, atol=1e-5)
    x = normal(rng, (1, 3, 3, 2))
    special = x.copy()
    special[0, 1, 1] = np.nan, np.inf
    check('ResizeBilinear', [special, np.int32([5, 5])])
    check('ResizeBilinear', [np.array([[[[1 << 40], [-3]]]], np.int64), np.int32([1, 4])])
    check('ResizeBilinear', [x, np.int32([4, 4])], {'align_corners': True, 'half_pixel_centers': True})
    for size in ([0, 4], [4, -1], [4], [4, 4, 4], [[4, 4]], 4):
        check('ResizeBilinear', [x, np.int32(size)])
    for bad in (x[0], x[:, :0], x[..., :0]):
        check('ResizeBilinear', [bad, np.int32([4, 4])])
    dy = normal(rng, (1, 4, 4, 2))
    check('ResizeBilinearGrad', [dy[0], x])
    check('ResizeBilinearGrad', [dy, x[0]])
    check('ResizeBilinearGrad', [dy[:0], x[:0]])
    check('ResizeBilinearGrad', [dy, x], {'align_corners': True, 'half_pixel_centers': True})


def adjust(check, rng):
    for shape in ((4, 5, 3), (2, 4, 5, 3), (2, 3, 4, 5, 3), (1, 1, 3), (0, 4, 3), (64, 70, 3), (3, 0, 2, 2, 3)):
        x = rng.random(shape).astype(np.float32)
        for factor in (0.0, 0.5, 1.0, 2.0, -1.5):
            check('AdjustContrastv2', [x, np.float32(factor)], rtol=2e-5, atol=2e-5)
            check('AdjustSaturation', [x, np.float32(factor)], rtol=2e-5, atol=2e-6)
        for delta in (0.0, 0.1, -0.3, 0.5, 1.0, -1.0, 0.9):
            check('AdjustHue', [x, np.float32(delta)], rtol=2e-5, atol=5e-6)
    grid = np.stack(np.meshgrid(*[[0.0, 0.25, 1.0, 0.5]] * 3), -1).reshape(8, 8, 3).astype(np.float32)
    for x in (grid, grid * 255, -grid, grid - 0.5):
        for amount in (0.0, 0.25, -0.75, 3.0):
            check('AdjustHue', [x, np.float32(amount)], rtol=2e-5, atol=2e-3)
            check('AdjustSaturation', [x, np.float32(amount)], rtol=2e-5, atol=2e-3)
            check('AdjustContrastv2', [x, np.float32(amount)], rtol=2e-5, atol=2e-3)
    for channels in (1, 2, 4, 7):
        x = rng.random((2, 5, 4, channels)).astype(np.float32)
        check('AdjustContrastv2', [x, np.float32(1.7)], rtol=2e-5, atol=2e-6)
        check('AdjustHue', [x, np.float32(0.2)])
        check('AdjustSaturation', [x, np.float32(0.2)])
    x = rng.random((2, 5, 4, 3)).astype(np.float32)
    for op in ('AdjustContrastv2', 'AdjustHue', 'AdjustSaturation'):
        check(op, [x[0, 0], np.float32(1)])
        check(op, [x, np.float32([1])])
        check(op, [x[..., :0], np.float32(1)])
    x[0, 1, 1, 2] = np.nan
    check('AdjustContrastv2', [x, np.float32(2)], rtol=2e-5, atol=2e-6)


def conv3d_all(check, rng, shape, filter_shape, strides=(1, 1, 1), padding='SAME', dtype=np.float32,
               dilations=(1, 1, 1), channels_first=False, tf_only_fails=False):
    """Conv3D and both gradients of one geometry."""
    out = []
    for n, k, s, d in zip(shape[1:4], filter_shape, strides, dilations):
        out.append(-(-n // s) if padding == 'SAME' else (n - (k - 1) * d - 1) // s + 1)
    attrs = {'strides': [1, *strides, 1], 'padding': padding, 'dilations': [1, *dilations, 1]}
    x, f, dy = (normal(rng, s, dtype) for s in (shape, filter_shape, (shape[0], *out, filter_shape[4])))
    sizes = np.int32(shape)
    loose = dict(LOOSE[dtype])
    loose['atol'] *= 4
    if channels_first:
        attrs.update(strides=[1, 1, *strides], dilations=[1, 1, *dilations], data_format='NCDHW')
        x, dy = (np.ascontiguousarray(np.moveaxis(t, 4, 1)) for t in (x, dy))
        sizes = np.int32(x.shape)
    if tf_only_fails:
        loose['tf_only_fails'] = True
    check('Conv3D', [x, f], attrs, **loose)
    check('Conv3DBackpropInputV2', [sizes, f, dy], attrs, **loose)
    check('Conv3DBackpropInputV2', [sizes.astype(np.int64), f, dy], attrs, **loose)
    check('Conv3DBackpropFilterV2', [x, np.int32(filter_shape), dy], attrs, **loose)


def conv3d(check, rng):
    for dtype in FLOATS:
        conv3d_all(check, rng, (2, 3, 4, 5, 2), (2, 3, 2, 2, 3), dtype=dtype)
        conv3d_all(check, rng, (2, 3, 4, 5, 2), (2, 3, 2, 2, 3), (1, 2, 2), 'VALID', dtype=dtype)
    for padding in ('SAME', 'VALID'):
        for k, s in ((1, 1), (1, 2), (2, 1), (3, 2), (3, 1)):
            conv3d_all(check, rng, (2, 5, 6, 4, 3), (k, k, k, 3, 4), (s, s, s), padding)
    conv3d_all(check, rng, (9, 3, 3, 4, 5), (2, 2, 2, 5, 6))
    conv3d_all(check, rng, (1, 8, 12, 12, 4), (3, 3, 3, 4, 8))
    conv3d_all(check, rng, (3, 4, 5, 6, 17), (1, 3, 2, 17, 19), (1, 1, 3))
    for dilations in ((2, 2, 2), (1, 2, 1)):
        conv3d_all(check, rng, (2, 5, 6, 7, 2), (2, 2, 2, 2, 3), dilations=dilations, tf_only_fails=True)
        conv3d_all(check, rng, (2, 5, 6, 7, 2), (2, 2, 2, 2, 3), padding='VALID', dilations=dilations, tf_only_fails=True)
    conv3d_all(check, rng, (2, 3, 4, 5, 2), (2, 3, 2, 2, 3), (1, 2, 2), channels_first=True, tf_only_fails=True)
    conv3d_all(check, rng, (2, 3, 4, 5, 4), (2, 3, 2, 2, 6), tf_only_fails=True)
    conv3d_all(check, rng, (0, 3, 4, 5, 2), (2, 3, 2, 2, 3))
    conv3d_errors(check, rng)


def conv3d_errors(check, rng):
    same = {'strides': [1] * 5, 'padding': 'SAME'}
    x, f, dy = normal(rng, (2, 3, 4, 5, 2)), normal(rng, (2, 2, 2, 2, 3)), normal(rng, (2, 3, 4, 5, 3))
    check('Conv3D', [x[0], f], same)
    check('Conv3D', [x, f[0]], same)
    check('Conv3D', [x, normal(rng, (2, 2, 2, 3, 3))], same)
    check('Conv3D', [x, normal(rng, (4, 2, 2, 2, 3))], dict(same, padding='VALID'))
    check('Conv3D', [x, normal(rng, (5, 2, 2, 2, 3))], dict(same, padding='VALID'))
    for strides in ([1, 0, 1, 1, 1], [2, 1, 1, 1, 1], [1, 1, 1, 1, 2], [1] * 6, [1, -1, 1, 1, 1]):
        check('Conv3D', [x, f], dict(same, strides=strides))
        check('Conv3DBackpropInputV2', [np.int32(x.shape), f, dy], dict(same, strides=strides))
        check('Conv3DBackpropFilterV2', [x, np.int32(f.shape), dy], dict(same, strides=strides))
    for dilations in ([1, 0, 1, 1, 1], [2, 1, 1, 1, 1], [1, 1, 1, 1, 2], [1] * 4):
        check('Conv3D', [x, f], dict(same, dilations=dilations))
    for sizes in ([2, 3, 4, 5], [2, 3, 4, 6, 2], [1, 3, 4, 5, 2], [2, 3, 4, 5, 3], [[2, 3, 4, 5, 2]]):
        check('Conv3DBackpropInputV2', [np.int32(sizes), f, dy], same)
    for sizes in ([2, 2, 2, 2], [2, 2, 2, 3, 3], [2, 2, 2, 2, 4]):
        check('Conv3DBackpropFilterV2', [x, np.int32(sizes), dy], same)
    check('Conv3DBackpropInputV2', [np.int32(x.shape), f[0], dy], same)
    check('Conv3DBackpropInputV2', [np.int32(x.shape), f, dy[0]], same)
    check('Conv3DBackpropFilterV2', [x[0], np.int32(f.shape), dy], same)
    check('Conv3DBackpropFilterV2', [x, np.int32(f.shape), dy[0]], same)


def dilation2d_all(check, rng, shape, size, strides=(1, 1), rates=(1, 1), padding='SAME', dtype=np.float32, sums=None):
    """Dilation2D and both gradients of one geometry. |sums|: how near those of the filter's gradient come."""
    out = []
    for n, k, s, r in zip(shape[1:3], size, strides, rates):
        out.append(-(-n // s) if padding == 'SAME' else (n - (k - 1) * r - 1) // s + 1)
    attrs = {'strides': [1, *strides, 1], 'rates': [1, *rates, 1], 'padding': padding}
    x, f = real(rng, shape, dtype), real(rng, (*size, shape[3]), dtype)
    dy = real(rng, (shape[0], *out, shape[3]), dtype)
    check('Dilation2D', [x, f], attrs)
    check('Dilation2DBackpropInput', [x, f, dy], attrs)
    check('Dilation2DBackpropFilter', [x, f, dy], attrs, **(sums or LOOSE.get(dtype, {})))


def dilation2d(check, rng):
    for dtype in REALS:
        dilation2d_all(check, rng, (2, 5, 6, 3), (3, 2), dtype=dtype)
        dilation2d_all(check, rng, (2, 5, 6, 3), (2, 3), (2, 1), (1, 2), 'VALID', dtype=dtype)
    for padding in ('SAME', 'VALID'):
        for k, s, r in ((1, 1, 1), (1, 3, 1), (2, 1, 3), (3, 2, 2), (4, 1, 1)):
            dilation2d_all(check, rng, (3, 9, 8, 4), (k, k), (s, s), (r, r), padding, np.float64)
    # Hundreds of terms, which TensorFlow adds one by one: its own error is up to 1e-4.
    dilation2d_all(check, rng, (10, 20, 21, 5), (3, 3), sums=dict(rtol=2e-5, atol=2e-4))
    dilation2d_all(check, rng, (0, 4, 4, 2), (2, 2))
    attrs = {'strides': [1] * 4, 'rates': [1] * 4, 'padding': 'SAME'}
    x, f, dy = normal(rng, (2, 4, 5, 3)), normal(rng, (2, 2, 3)), normal(rng, (2, 4, 5, 3))
    x[0, 0, 0], x[0, 2, 2], x[1, 1:3, 1:3] = np.nan, np.inf, -np.inf
    check('Dilation2D', [x, f], attrs)
    check('Dilation2DBackpropInput', [x, f, dy], attrs)
    check('Dilation2DBackpropFilter', [x, f, dy], attrs, **LOOSE[np.float32])
    for op, tail in (('Dilation2D', []), ('Dilation2DBackpropInput', [dy]), ('Dilation2DBackpropFilter', [dy])):
        for bad in (dict(strides=[1] * 5), dict(strides=[2, 1, 1, 1]), dict(strides=[1, 1, 1, 2]), dict(strides=[1, 0, 1, 1]),
                    dict(rates=[1] * 5), dict(rates=[2, 1, 1, 1]), dict(rates=[1, 1, 1, 2]), dict(rates=[1, 0, 1, 1])):
            check(op, [x, f, *tail], dict(attrs, **bad))
        check(op, [x[0], f, *tail], attrs)
        check(op, [x, f[0], *tail], attrs)
        check(op, [x, f[..., :2], *tail], attrs)
        check(op, [x, normal(rng, (7, 2, 3)), *tail], dict(attrs, padding='VALID'))
    check('Dilation2D', [x, normal(rng, (5, 2, 3))], dict(attrs, padding='VALID'))
    for op in ('Dilation2DBackpropInput', 'Dilation2DBackpropFilter'):
        for bad in (dy[:1], dy[:, :3], dy[:, :, :3], dy[..., :2], dy[0]):
            check(op, [x, f, bad], attrs)


def photo(rng, height, width, channels):
    """Waves and a little noise: what encoders are made for."""
    y, x = np.mgrid[:height, :width]
    waves = np.stack([128 + 100 * np.sin(x / 7 + i) * np.cos(y / (9 + i)) for i in range(channels)], -1)
    return np.clip(waves + rng.normal(0, 12, (height, width, channels)), 0, 255).astype(np.uint8)


def decode_png(check, rng):
    transparency = {0: b'\0\1', 2: b'\0\1\0\2\0\3', 3: bytes([0, 128]), 4: b'\0\1', 6: b'\0\1'}
    for color, depths in image_files.DEPTHS.items():
        for depth in depths:
            few = np.minimum(rng.integers(0, 4, (9, 9, image_files.CHANNELS[color])), (1 << depth) - 1)
            files = [image_files.png(rng, 13, 11, color, depth), image_files.png(rng, 17, 9, color, depth, True),
                     image_files.png(rng, 1, 1, color, depth, True),
                     image_files.png(rng, 9, 9, color, depth, False, transparency[color], samples=few)]
            for contents in files:
                for channels in (0, 1, 3, 4):
                    check('DecodePng', [contents], {'channels': channels})
                    check('DecodePng', [contents], {'channels': channels, 'dtype': np.uint16})
    gamma = image_files.chunk(b'gAMA', (45455).to_bytes(4, 'big'))
    for before in (gamma, image_files.chunk(b'sRGB', b'\0'), image_files.chunk(b'tEXt', b'a\0b', crc=1)):
        check('DecodePng', [image_files.png(rng, 9, 9, 2, 8, before=before)], {'channels': 1})
    good = image_files.png(rng, 9, 9, 2, 8)
    for at in range(0, len(good), 11):
        check('DecodePng', [good[:at]])
        check('DecodePng', [good[:at] + bytes([good[at] ^ 16]) + good[at + 1:]])
    jpeg = tf.io.encode_jpeg(photo(rng, 20, 30, 3)).numpy()
    for channels in (0, 1, 3, 4, 2, -1):
        check('DecodePng', [jpeg], {'channels': channels, 'dtype': np.uint16})
        check('DecodePng', [good], {'channels': channels})
    for bad in (b'', b'BM' + bytes(60), b'nothing known', np.array([good, good], object)):
        check('DecodePng', [bad])


def decode_jpeg(check, rng):
    sampling = {'444': [(1, 1)] * 3, '422': [(2, 1), (1, 1), (1, 1)], '420': [(2, 2), (1, 1), (1, 1)],
                '440': [(1, 2), (1, 1), (1, 1)], '411': [(4, 1), (1, 1), (1, 1)], 'mixed': [(2, 2), (2, 1), (1, 2)],
                'thirds': [(3, 1), (1, 1), (1, 1)], 'broken': [(3, 1), (2, 1), (1, 1)], 'gray': [(1, 1)], 'gray22': [(2, 2)],
                'cmyk': [(1, 1)] * 4, 'cmyk420': [(2, 2), (1, 1), (1, 1), (2, 2)], 'two': [(1, 1)] * 2}
    options = ({}, {'dct_method': 'INTEGER_ACCURATE'}, {'fancy_upscaling': False}, {'ratio': 2}, {'ratio': 8},
               {'ratio': 4, 'dct_method': 'INTEGER_ACCURATE'}, {'channels': 1}, {'channels': 3, 'ratio': 2})
    for factors in sampling.values():
        for size in ((50, 37), (3, 5), (1, 1)):
            contents = image_files.jpeg(rng, *size, factors)
            for attrs in options if size[0] > 3 else options[:4]:
                check('DecodeJpeg', [contents], attrs)
        for kind in (dict(restart=3), dict(separate=True, restart=2), dict(jfif=False, adobe=0), dict(jfif=False, adobe=1),
                     dict(jfif=False, adobe=2), dict(jfif=False), dict(jfif=False, ids=(82, 71, 66, 75)), dict(tables=False),
                     dict(wide=True), dict(end=False)):
            contents = image_files.jpeg(rng, 21, 18, factors, **kind)
            check('DecodeJpeg', [contents])
            check('DecodeJpeg', [contents], {'channels': 1, 'try_recover_truncated': True})
    for progressive in (False, True):
        for quality in (5, 60, 95, 100):
            for shape in ((64, 64, 3), (33, 47, 1), (16, 5, 3)):
                contents = tf.raw_ops.EncodeJpeg(image=photo(rng, *shape), progressive=progressive, quality=quality).numpy()
                for attrs in options:
                    check('DecodeJpeg', [contents], attrs)
    for factors in (sampling['gray'], sampling['420'], sampling['444'], sampling['422']):
        contents = image_files.jpeg(rng, 60, 70, factors)
        for fraction in (.3, .5, .7, .9, .97, .995):
            cut = contents[:int(len(contents) * fraction)].rstrip(b'\xff')  # TensorFlow does not return from a file that ends so
            for attrs in ({}, {'acceptable_fraction': .1}, {'acceptable_fraction': .6}):
                check('DecodeJpeg', [cut], attrs)
            # Where it is cut off, TensorFlow decodes a few bytes twice: what those blocks show is chance, and whether it fails.
            check('DecodeJpeg', [cut], {'try_recover_truncated': True}, shapes_only=True, tf_only_fails=True)
    for attrs in ({'channels': 4}, {'channels': 2}, {'channels': -1}, {'ratio': 3}, {'ratio': 0}, {'dct_method': 'x'}):
        check('DecodeJpeg', [contents], attrs)
    for bad in (b'', b'\xff\xd8\xff', contents[:20], contents[:200], b'BM', np.array([contents], object)):
        check('DecodeJpeg', [bad])
    check('DecodeJpeg', [image_files.png(rng, 9, 9, 6, 8)], {'channels': 4})


def encode_jpeg(check, rng):
    """The bytes are TensorFlow's."""
    for shape in ((64, 64, 3), (33, 47, 3), (1, 1, 3), (17, 8, 1), (40, 31, 1), (9, 100, 3)):
        image = photo(rng, *shape)
        for attrs in ({}, {'quality': 50}, {'quality': 10}, {'quality': 0}, {'quality': 100}, {'chroma_downsampling': False},
                      {'optimize_size': True}, {'progressive': True}, {'progressive': True, 'chroma_downsampling': False},
                      {'progressive': True, 'quality': 30}, {'density_unit': 'cm', 'x_density': 7, 'y_density': 70000},
                      {'xmp_metadata': 'some <xmp/>', 'format': 'rgb' if shape[2] == 3 else 'grayscale'}):
            check('EncodeJpeg', [image], attrs)
    noise = rng.integers(0, 256, (40, 40, 3), np.uint8)
    for attrs in ({}, {'progressive': True, 'quality': 100}, {'optimize_size': True, 'quality': 100}):
        check('EncodeJpeg', [noise], attrs)
        check('EncodeJpeg', [np.zeros((24, 24, 3), np.uint8)], attrs)
    for bad in (noise[0], noise[..., :2], noise[:0], noise[None]):
        check('EncodeJpeg', [bad])
    for attrs in ({'quality': 101}, {'quality': -1}, {'format': 'grayscale'}, {'format': 'other'}, {'density_unit': 'x'}):
        check('EncodeJpeg', [noise], attrs)


def encode_png(check, rng):
    """What fails; that the files hold the same pixels is in tests/codec_test.py."""
    image = photo(rng, 5, 6, 3)
    for bad in (image[0], image[..., :0], np.zeros((5, 6, 5), np.uint8)):  # without pixels TensorFlow aborts
        check('EncodePng', [bad])
    for level in (-2, 10):
        check('EncodePng', [image], {'compression': level})
    check('EncodePng', [np.zeros((0, 4, 5, 3), np.uint8)])
    check('EncodePng', [np.zeros((2, 0, 4, 5, 3), np.uint16)])


def cases(check, rng):
    resize_bilinear(check, rng)
    adjust(check, rng)
    conv3d(check, rng)
    dilation2d(check, rng)
    decode_png(check, rng)
    decode_jpeg(check, rng)
    encode_jpeg(check, rng)
    encode_png(check, rng)
