"""Cases of CropAndResize and its gradients, and of colours as hue, saturation and value."""
import ml_dtypes
import numpy as np

REALS = [np.uint8, np.uint16, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]
CLOSE = dict(rtol=1e-5, atol=5e-5)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def boxes_of(rng, count):
    """Inside, over the border, turned round, a point, and all. Where else a box ends at the border exactly, the machine's
    rounding in TensorFlow decides what is outside."""
    boxes = rng.uniform(-.3, 1.3, (count, 4)).astype(np.float32)
    boxes[::3] = np.clip(boxes[::3], .02, .98)
    boxes[1], boxes[2] = .25, (0, 0, 1, 1)
    return boxes


def crop(check, rng):
    for dtype in REALS:
        image = rng.integers(0, 100, (3, 7, 6, 2)).astype(dtype)
        for method in ('bilinear', 'nearest'):
            for size in ((4, 5), (1, 3), (3, 1), (1, 1), (9, 11)):
                boxes, index = boxes_of(rng, 6), rng.integers(0, 3, 6).astype(np.int32)
                check('CropAndResize', [image, boxes, index, np.int32(size)], {'method': method, 'extrapolation_value': 7.5}, **CLOSE)
                if dtype in REALS[6:]:
                    dy = normal(rng, 6, *size, 2)
                    tolerance = dict(rtol=2e-2, atol=2e-2) if dtype == np.float16 else CLOSE
                    check('CropAndResizeGradImage', [dy, boxes, index, np.int32(image.shape)], {'T': dtype, 'method': method}, **tolerance)
                if method == 'bilinear':
                    check('CropAndResizeGradBoxes', [normal(rng, 6, *size, 2), image, boxes, index], rtol=1e-4, atol=1e-2)
    crop_errors(check, rng)


def crop_errors(check, rng):
    image, boxes, index, size = normal(rng, 2, 5, 4, 3), boxes_of(rng, 3), np.int32([0, 1, 0]), np.int32([4, 3])
    dy, shape = normal(rng, 3, 4, 3, 3), np.int32(image.shape)
    none = [boxes[:0], index[:0]]
    check('CropAndResize', [image, *none, size])
    check('CropAndResize', [image[..., :0], boxes, index, size])
    check('CropAndResizeGradImage', [dy[:0], *none, shape], {'T': np.float32})
    check('CropAndResizeGradBoxes', [dy[:0], image, *none])
    pairs = [(boxes[0], index), (boxes[:, :3], index), (boxes, index[:2]), (boxes, index[:, None]), (boxes, index + 1), (boxes, index - 1)]
    for pair in pairs:
        check('CropAndResize', [image, *pair, size])
        # Of a gradient's inputs TensorFlow's shape functions see less.
        check('CropAndResizeGradImage', [dy, *pair, shape], {'T': np.float32})
        if pair[0].ndim == 2 and pair[0].shape[1] == 4:
            check('CropAndResizeGradBoxes', [dy, image, *pair])
    for bad in (np.full_like(boxes, np.inf), boxes + np.nan):
        check('CropAndResize', [image, bad, index, size])
    for bad in ([0, 3], [4, -1], [4], [[4, 3]], 4):
        check('CropAndResize', [image, boxes, index, np.int32(bad)])
    for bad in (image[0], image[:, :0], image[:, :, :0]):
        check('CropAndResize', [bad, boxes, index, size])
        check('CropAndResizeGradBoxes', [dy, bad, boxes, index])
    for bad in ([2, 5, 4], [2, 0, 4, 3], [2, 5, -4, 3], [2, 5, 4, 2], [[2, 5, 4, 3]]):
        check('CropAndResizeGradImage', [dy, boxes, index, np.int32(bad)], {'T': np.float32})
    for bad in (dy[0], dy[:, :0], dy[:2], dy[..., :2]):
        check('CropAndResizeGradImage', [bad, boxes, index, shape], {'T': np.float32})
        check('CropAndResizeGradBoxes', [bad, image, boxes, index])
    check('CropAndResize', [image, boxes, index, size], {'method': 'bicubic'})


def colors(check, rng):
    grid = np.stack(np.meshgrid(*[[0.0, 0.25, 1.0, 0.5]] * 3), -1).reshape(8, 8, 3)
    tolerances = {np.float32: dict(rtol=1e-5, atol=1e-5), np.float64: dict(rtol=1e-12, atol=1e-12), np.float16: dict(rtol=1e-2, atol=1e-2),
                  ml_dtypes.bfloat16: dict(rtol=1e-1, atol=1e-1)}
    for dtype, close in tolerances.items():
        for op in ('RGBToHSV', 'HSVToRGB'):
            for shape in ((3,), (5, 3), (2, 4, 5, 3), (0, 3), (2, 2, 2, 2, 3)):
                check(op, [rng.random(shape).astype(dtype)], **close)
            check(op, [grid.astype(dtype)], gradient=False, **close)
            check(op, [(grid * 3 - 1).astype(dtype)], gradient=False, **close)
    for op in ('RGBToHSV', 'HSVToRGB'):
        for bad in (np.float32(1), np.ones((2, 4), np.float32), np.ones((3, 0), np.float32)):
            check(op, [bad])


def cases(check, rng):
    crop(check, rng)
    colors(check, rng)
