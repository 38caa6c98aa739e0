"""Cases of the ops of src/ops/image/ on boxes: suppression and drawing."""
import numpy as np

f32 = np.float32


def some_boxes(rng, *shape):
    """Clusters, so that many overlap; corners in any order."""
    centers = rng.integers(0, 4, (*shape, 2)) / 4
    sizes = rng.uniform(.1, .5, (*shape, 2))
    jitter = rng.normal(0, .03, (*shape, 2))
    boxes = np.concatenate([centers + jitter, centers + jitter + sizes], -1).astype(f32)
    boxes[..., 0, :] = boxes[..., 0, [2, 3, 0, 1]]
    return boxes


def suppression(check, rng):
    for dtype in (np.float32, np.float16):
        for count, most in ((30, 10), (30, 100), (1, 1), (0, 3), (8, 0)):
            boxes = (some_boxes(rng, count) if count else np.zeros((0, 4))).astype(dtype)
            scores = rng.permutation(count).astype(dtype) / 16 - dtype(.5)
            for iou in (0, .3, 1):
                if dtype == f32:
                    check('NonMaxSuppression', [boxes, scores, np.int32(most)], {'iou_threshold': iou})
                for threshold in (np.float32, np.float16):
                    rest = [threshold(iou), threshold(.2)]
                    check('NonMaxSuppressionV2', [boxes, scores, np.int32(most), rest[0]])
                    check('NonMaxSuppressionV3', [boxes, scores, np.int32(most), *rest])
                    for pad in (False, True):
                        check('NonMaxSuppressionV4', [boxes, scores, np.int32(most), *rest], {'pad_to_max_output_size': pad})
                for pad, sigma in ((False, 0), (True, 0), (False, .3), (True, 1)):
                    check('NonMaxSuppressionV5', [boxes, scores, np.int32(most), dtype(iou), dtype(.1), dtype(sigma)],
                          {'pad_to_max_output_size': pad})
    boxes, scores, most = some_boxes(rng, 12), f32(rng.integers(0, 3, 12)), np.int32(5)
    scores[3], scores[5] = np.nan, -np.inf
    boxes[4, 2] = boxes[4, 0]
    check('NonMaxSuppression', [boxes, scores, most])
    check('NonMaxSuppressionV5', [boxes, scores, most, f32(.5), f32(-1), f32(.5)])
    for bad in ([boxes[0], scores], [boxes[:, :3], scores], [boxes, scores[:5]], [boxes, scores[None]]):
        check('NonMaxSuppression', [*bad, most])
        check('NonMaxSuppressionV2', [*bad, most, f32(.5)])
        check('NonMaxSuppressionV3', [*bad, most, f32(.5), f32(0)])
        check('NonMaxSuppressionV4', [*bad, most, f32(.5), f32(0)])
        check('NonMaxSuppressionV5', [*bad, most, f32(.5), f32(0), f32(0)])
    for bad in ([np.int32(-1), f32(.5), f32(0)], [np.int32([5]), f32(.5), f32(0)], [most, f32(1.5), f32(0)], [most, f32(-.5), f32(0)],
                [most, f32(np.nan), f32(0)], [most, f32([.5]), f32(0)], [most, f32(.5), f32([0])]):
        check('NonMaxSuppressionV2', [boxes, scores, *bad[:2]])
        check('NonMaxSuppressionV3', [boxes, scores, *bad])
        check('NonMaxSuppressionV4', [boxes, scores, *bad], {'pad_to_max_output_size': True})
        check('NonMaxSuppressionV5', [boxes, scores, *bad, f32(0)])
    check('NonMaxSuppressionV5', [boxes, scores, most, f32(.5), f32(0), f32(-1)])
    check('NonMaxSuppressionV5', [boxes, scores, most, f32(.5), f32(0), f32([1])])
    check('NonMaxSuppression', [boxes, scores, most], {'iou_threshold': 2})
    check('NonMaxSuppression', [boxes, scores, np.int32(-1)])


def with_overlaps(check, rng):
    op = 'NonMaxSuppressionWithOverlaps'
    for count, most in ((20, 5), (20, 50), (1, 1), (0, 2)):
        overlaps, scores = rng.random((count, count)).astype(f32), rng.permutation(count).astype(f32)
        for overlap in (-1, .2, .5, 2):
            check(op, [overlaps, scores, np.int32(most), f32(overlap), f32(1.5)])
    overlaps, scores, rest = rng.random((3, 3)).astype(f32), f32([1, 2, 3]), [np.int32(2), f32(.5), f32(0)]
    for bad in ([overlaps[0], scores], [overlaps[:, :2], scores], [overlaps, scores[:2]], [overlaps, scores[None]]):
        check(op, [*bad, *rest])
    for i, bad in ((0, np.int32([2])), (0, np.int32(-1)), (1, f32([.5])), (2, f32([0]))):
        check(op, [overlaps, scores, *rest[:i], bad, *rest[i + 1:]])


def combined(check, rng):
    op = 'CombinedNonMaxSuppression'
    for batch, count, classes in ((2, 20, 3), (1, 1, 1), (3, 12, 5), (0, 4, 2), (2, 0, 3)):
        scores = rng.permutation(batch * count * classes).reshape(batch, count, classes).astype(f32) / 50
        for sets in {1, classes}:
            boxes = some_boxes(rng, batch, count, sets) if batch * count else np.zeros((batch, count, sets, 4), f32)
            for each, total in ((3, 7), (10, 4), (50, 100)):
                for attrs in ({}, {'pad_per_class': True}, {'clip_boxes': False}):
                    check(op, [boxes, scores, np.int32(each), np.int32(total), f32(.4), f32(.3)], attrs)
    boxes, scores = some_boxes(rng, 2, 6, 1), rng.random((2, 6, 3)).astype(f32)
    rest = [np.int32(3), np.int32(5), f32(.5), f32(0)]
    for bad in ([boxes[0], scores], [boxes, scores[0]], [boxes[..., :3], scores], [boxes[:1], scores], [boxes[:, :5], scores],
                [np.repeat(boxes, 2, 2), scores]):
        check(op, [*bad, *rest])
    for i, bad in ((0, np.int32([3])), (0, np.int32(0)), (1, np.int32([5])), (1, np.int32(-1)), (2, f32([.5])), (2, f32(1.5)), (3, f32([0]))):
        check(op, [boxes, scores, *rest[:i], bad, *rest[i + 1:]])
        check(op, [boxes, scores, *rest[:i], bad, *rest[i + 1:]], {'pad_per_class': True})


def drawing(check, rng):
    for dtype in (np.float32, np.float16):
        for channels in (1, 3, 4):
            for height, width, count in ((20, 30, 13), (1, 1, 2), (7, 5, 0), (0, 4, 2)):
                images = rng.random((2, height, width, channels)).astype(dtype)
                boxes = rng.uniform(-.5, 1.5, (2, count, 4)).astype(f32)
                boxes[:, :2] = 0, .2, 1, 1.0
                check('DrawBoundingBoxes', [images, boxes])
                for colors in (rng.random((3, channels)), rng.random((2, 5)), np.zeros((0, 4))):
                    check('DrawBoundingBoxesV2', [images, boxes, colors.astype(f32)])
    images, boxes, colors = np.ones((1, 4, 5, 3), f32), f32([[[0, 0, .5, .5]]]), np.ones((2, 3), f32)
    for bad in ([images[0], boxes], [images, boxes[0]], [images[:0], boxes], [images[..., :2], boxes], [images, boxes[..., :3]]):
        check('DrawBoundingBoxes', bad)
        check('DrawBoundingBoxesV2', [*bad, colors])
    check('DrawBoundingBoxes', [images[:0], boxes[:0]])
    for bad in (colors[0], colors[:, :2]):
        check('DrawBoundingBoxesV2', [images, boxes, bad])


def cases(check, rng):
    suppression(check, rng)
    with_overlaps(check, rng)
    combined(check, rng)
    drawing(check, rng)
