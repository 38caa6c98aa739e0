"""Cases of the ops of src/ops/image/ that look at a part of images: samples of boxes, glimpses, projections."""
import ml_dtypes
import numpy as np

f32 = np.float32


def sample(check, rng):
    boxes = f32([[[.2, .3, .7, .8], [.1, .1, .4, .9]], [[.5, .5, .5, .9], [0, 0, 1, 1]]])
    none = np.zeros((1, 0, 4), f32)
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64):
        size = np.array([100, 120, 3], dtype)
        for seed in (1, 2, 77):
            for attrs in ({}, {'aspect_ratio_range': [.2, 4.], 'area_range': [.3, .9]}, {'area_range': [.9, 1.], 'max_attempts': 3}):
                check('SampleDistortedBoundingBox', [size, boxes], dict(attrs, seed=seed, seed2=5, min_object_covered=.4))
                check('SampleDistortedBoundingBoxV2', [size, boxes, f32(.9)], dict(attrs, seed=seed, seed2=9))
                for kind in (np.int32, np.int64):
                    check('StatelessSampleDistortedBoundingBox', [size, boxes, f32(.6), np.array([seed, -3], kind)], attrs)
    for height, width in ((1, 1), (3, 500), (2000, 7), (0, 4), (40000, 60000)):
        for covered in (0, .5, 1.5):
            check('StatelessSampleDistortedBoundingBox', [np.int64([height, width, 1]), boxes, f32(covered), np.int32([4, height])])
    stateless = 'StatelessSampleDistortedBoundingBox'
    size, covered, seed = np.int32([50, 60, 3]), f32(.1), np.int32([1, 2])
    check(stateless, [size, none, covered, seed], {'use_image_if_no_bounding_boxes': True})
    check(stateless, [size, none, covered, seed])
    for bad in (size[:2], size[None], np.int32([-1, 60, 3]), np.int32([50, 2**31 - 1, 3])):
        check(stateless, [bad, boxes, covered, seed])
        check('SampleDistortedBoundingBox', [bad, boxes], {'seed': 1})
    for bad in (boxes[0], boxes[..., :3], boxes + f32(.5), boxes - f32(.3), boxes * np.nan):
        check(stateless, [size, bad, covered, seed])
        check('SampleDistortedBoundingBox', [size, bad], {'seed': 1})
        check('SampleDistortedBoundingBoxV2', [size, bad, covered], {'seed': 1})
    for bad in ([f32([.1]), seed], [f32(-.1), seed], [covered, seed[:1]], [covered, seed[None]]):
        check(stateless, [size, boxes, *bad])
    for attrs in ({'aspect_ratio_range': [1.]}, {'aspect_ratio_range': [0., 1.]}, {'area_range': [.5]}, {'area_range': [-.5, .5]},
                  {'area_range': [.5, 1.5]}, {'max_attempts': 0}, {'area_range': [.9, .2]}):
        check(stateless, [size, boxes, covered, seed], attrs)
    check('SampleDistortedBoundingBox', [size, boxes], {'seed': 1, 'min_object_covered': -1.})


def glimpse(check, rng):
    images = rng.random((4, 9, 7, 2)).astype(f32)
    for op in ('ExtractGlimpse', 'ExtractGlimpseV2'):
        for size in ((3, 4), (9, 7), (12, 10), (1, 1)):
            for centered in (False, True):
                for normalized in (False, True):
                    attrs = {'centered': centered, 'normalized': normalized, 'uniform_noise': False}
                    offsets = f32(rng.uniform(-.8, .8, (4, 2)) if normalized else rng.uniform(-4, 9, (4, 2)))
                    offsets[0] = 0
                    check(op, [images, np.int32(size), offsets], dict(attrs, noise='zero'))
                    # Noise is of no use to a comparison: here there is none, as the window is inside.
                    for noise in ('uniform', 'gaussian', '') if size == (3, 4) and centered == normalized else ():
                        check(op, [images, np.int32(size), offsets / 8 if centered else abs(offsets) / 8 + f32(2)], dict(attrs, noise=noise))
        zero, inside = {'uniform_noise': False, 'noise': 'zero'}, np.zeros((4, 2), f32)
        check(op, [images, np.int32([2, 2]), inside + f32(50)], zero)
        check(op, [images[:0], np.int32([2, 2]), inside[:0]], zero)
        check(op, [images, np.int32([0, 2]), inside], zero)
        check(op, [images, np.int32([3, 3]), inside], {'noise': ''})
        for attrs in ({'noise': 'gaussian'}, {'noise': 'x', 'uniform_noise': False}):
            check(op, [images, np.int32([2, 2]), inside], attrs)
        for bad in ([2], [2, 2, 2], [[2, 2]], [-2, 2]):
            check(op, [images, np.int32(bad), inside], zero)
        for bad in (inside[0], inside[:2], inside[:, :1]):
            check(op, [images, np.int32([2, 2]), bad], zero)
        check(op, [images[0], np.int32([2, 2]), inside], zero)


def projection(check, rng):
    turn = f32([.8, -.55, 1.3, .57, .83, -.7, .003, -.002])
    move = f32([1, 0, 1.25, 0, 1, -2.25, 0, 0])
    far = f32([3.1, .2, -20.37, .1, 2.7, -15.23, 0, 0])  # nowhere halfway between two pixels
    close = {ml_dtypes.bfloat16: dict(rtol=2e-2, atol=2e-2), np.float16: dict(rtol=2e-3, atol=2e-3), np.float32: dict(rtol=1e-4, atol=1e-4),
             np.float64: dict(rtol=1e-4, atol=1e-4)}
    for dtype in (np.uint8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        images = rng.integers(0, 100, (3, 6, 8, 2)).astype(dtype)
        if dtype in close:
            images = rng.random((3, 6, 8, 2)).astype(dtype)
        for interpolation in ('NEAREST', 'BILINEAR'):
            for mode in ('CONSTANT', 'NEAREST', 'REFLECT', 'WRAP'):
                attrs = {'interpolation': interpolation, 'fill_mode': mode}
                # Where a value is whole but for rounding, integers are cut off to either side.
                for transforms in ((move, turn, far) if dtype in close or interpolation == 'NEAREST' else (move, move, move)):
                    inputs = [images, transforms[None] if transforms is not turn else np.stack([move, turn, far]), np.int32([7, 9])]
                    # Of WRAP, the inverse of an inverse jumps at a rounding.
                    keywords = dict(close.get(dtype, {}), **({'gradient': False} if mode == 'WRAP' else {}))
                    check('ImageProjectiveTransformV2', inputs, attrs, **keywords)
                    check('ImageProjectiveTransformV3', [*inputs, f32(3.7)], attrs, **keywords)
    images, size, attrs = rng.random((2, 5, 4, 1)).astype(f32), np.int32([3, 3]), {'interpolation': 'NEAREST'}
    check('ImageProjectiveTransformV2', [images[:, :1, :1], far[None], size], dict(attrs, fill_mode='WRAP'))
    check('ImageProjectiveTransformV2', [images[:, :1, :1], far[None], size], dict(attrs, fill_mode='REFLECT'))
    check('ImageProjectiveTransformV2', [images, f32([[1, 0, 0, 0, 1, 0, -1, 0]]), size], attrs)
    check('ImageProjectiveTransformV2', [images[:0], move[None], size], attrs)
    check('ImageProjectiveTransformV2', [images[..., :0], move[None], size], attrs)
    for bad in ([images[0], move[None], size], [images, move, size], [images, move[None, :7], size], [images, np.stack([move] * 3), size],
                [images, move[None], size[:1]], [images, move[None], size[None]], [images, move[None], np.int32([3, 0])]):
        check('ImageProjectiveTransformV2', bad, attrs)
        check('ImageProjectiveTransformV3', [*bad, f32(1)], attrs)
    check('ImageProjectiveTransformV3', [images, move[None], size, f32([1])], attrs)


def cases(check, rng):
    sample(check, rng)
    glimpse(check, rng)
    projection(check, rng)
