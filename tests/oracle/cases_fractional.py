"""Cases of src/ops/nn/fractional_pool.c."""
import numpy as np

TYPES = [np.float32, np.float64, np.int32, np.int64]
DIFFERS = dict(tf_shape_differs=True)  # whose shape function forgets the end of the sequences


def some(rng, shape, dtype=np.float32):
    if np.dtype(dtype).kind == 'i':
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def pools(check, rng):
    attrs = {'deterministic': True, 'seed': 3, 'seed2': 5}
    for op in ('FractionalMaxPool', 'FractionalAvgPool'):
        for dtype in TYPES:
            check(op, [some(rng, (2, 7, 9, 3), dtype)], {**attrs, 'pooling_ratio': [1.0, 1.5, 1.6, 1.0]}, **DIFFERS)
        for i in range(4):
            more = {'pseudo_random': i % 2 == 0, 'overlapping': i // 2 == 0, 'seed': 7 * i, 'seed2': 1 - i}
            for shape, ratio in (((1, 20, 31, 2), (1.41, 1.73)), ((1, 8, 31, 1), (2.0, 2.6)), ((1, 9, 5, 2), (1.0, 1.3)),
                                 ((1, 7, 8, 2), (7.0, 8.0)), ((1, 50, 11, 1), (3.7, 10.9))):
                check(op, [some(rng, shape)], {**attrs, **more, 'pooling_ratio': [1.0, *ratio, 1.0]}, **DIFFERS)
        x = some(rng, (2, 6, 6, 1))
        check(op, [x], {'pooling_ratio': [1.0, 2.0, 1.0, 1.0]}, **DIFFERS)  # where nothing is left to chance
        for ratio in ([1.0, 1.5, 1.5, 1.0, 1.0], [1.0, 0.5, 1.5, 1.0], [1.0, -1.5, 1.5, 1.0], [2.0, 1.5, 1.5, 1.0],
                      [1.0, 1.5, 1.5, 2.0], [1.0, 7.5, 1.5, 1.0], [1.0, float('nan'), 1.5, 1.0], [1.0, float('inf'), 1.5, 1.0],
                      [1.0, 1.5, 1.5]):
            check(op, [x], {**attrs, 'pooling_ratio': ratio})
        for shape in ((6, 6, 1), (0, 6, 6, 1), (1, 0, 6, 1), (1, 6, 6, 0)):
            check(op, [some(rng, shape)], {**attrs, 'pooling_ratio': [1.0, 1.5, 1.5, 1.0]})
        check(op, [x], {'seed': 3, 'pooling_ratio': [1.0, 1.5, 1.5, 1.0]})


def windowed(x, rows, columns, overlapping):
    spans = [[slice(a, min(b + overlapping, n)) for a, b in zip(s, s[1:])] for s, n in ((rows, x.shape[1]), (columns, x.shape[2]))]
    return np.stack([np.stack([x[:, h, w].max(axis=(1, 2)) for w in spans[1]], 1) for h in spans[0]], 1)


def max_gradients(check, rng):
    rows, columns = [0, 1, 3, 5, 7], [0, 2, 3, 4, 6, 8]
    for dtype in TYPES:
        for overlapping in (False, True):
            x = rng.integers(0, 9, (2, 7, 8, 3)).astype(dtype)
            y = windowed(x, rows, columns, overlapping)
            inputs = [x, y, some(rng, y.shape, dtype), np.int64(rows), np.int64(columns)]
            check('FractionalMaxPoolGrad', inputs, {'overlapping': overlapping})
    x, y, dy, rows, columns = inputs
    bads = [[x, y + 1, dy, rows, columns], [x, y, dy, rows[:-1], columns], [x, y, dy, rows[:0], columns],
            [x, y, dy, rows[None], columns], [x, y, dy, rows[0], columns], [x[0], y, dy, rows, columns],
            [x, y[0], dy, rows, columns], [x[:0], y[:0], dy[:0], rows, columns], [x, y, np.concatenate([dy, dy]), rows, columns],
            [x, y, dy, rows[::-1].copy(), columns]]
    for bad in bads:
        check('FractionalMaxPoolGrad', bad, {'overlapping': True})
    check('FractionalMaxPoolGrad', [x, y, dy[:, :1], rows, columns], {'overlapping': True})
    check('FractionalMaxPoolGrad', [x, y, dy[0], rows, columns], {'overlapping': True})


def avg_gradients(check, rng):
    shape, rows, columns = np.int64([2, 7, 8, 3]), np.int64([0, 1, 3, 5, 7]), np.int64([0, 2, 3, 4, 6, 8])
    for dtype in TYPES:
        for overlapping in (False, True):
            dy = some(rng, (2, 4, 5, 3), dtype)
            check('FractionalAvgPoolGrad', [shape, dy, rows, columns], {'overlapping': overlapping})
    dy = some(rng, (2, 4, 5, 3))
    for inputs in ([shape[1:], dy, rows, columns], [shape[None], dy, rows, columns], [shape * [1, 0, 1, 1], dy, rows, columns],
                   [shape * [1, -1, 1, 1], dy, rows, columns], [shape << 40, dy, rows, columns], [shape, dy, rows[:-1], columns],
                   [shape, dy, rows, columns[:-1]], [shape, dy, rows - 1, columns], [shape, dy, rows, columns - 1],
                   [shape, dy[0], rows, columns], [shape, dy[:0], rows, columns], [shape * [0, 1, 1, 1], dy, rows, columns],
                   [shape, dy, np.int64([0, 1, 3, 5, 7, 9]), columns], [shape, dy, rows * 3, columns],
                   [shape, dy, rows[::-1] + 1, columns], [shape, dy, rows[None], columns], [shape, dy[:1], rows, columns],
                   [shape, dy[..., :2].copy(), rows, columns]):
        check('FractionalAvgPoolGrad', inputs)


def cases(check, rng):
    pools(check, rng)
    max_gradients(check, rng)
    avg_gradients(check, rng)
