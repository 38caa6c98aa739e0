"""Connectionist temporal classification: loss, greedy decoding, beam search."""
import numpy as np

INDICES, VALUES, LENGTHS = np.int64([[0, 0], [0, 1], [1, 0]]), np.int32([1, 2, 0]), np.int32([5, 4])


def labels(rng, lengths, classes):
    """Random label sequences of these lengths, as a sparse tensor."""
    indices = [(b, i) for b, n in enumerate(lengths) for i in range(n)]
    return np.array(indices, np.int64).reshape(-1, 2), rng.integers(0, classes - 1, len(indices)).astype(np.int32)


def loss(check, rng):
    op = 'CTCLoss'
    for dtype, rtol in ((np.float32, 1e-3), (np.float64, 1e-5)):  # TensorFlow takes logarithms in float, also of doubles
        near = {'rtol': rtol, 'atol': rtol / 10}
        for time, batch, classes, counts in ((5, 2, 4, (2, 1)), (1, 1, 2, (1,)), (40, 3, 6, (12, 3, 20)), (7, 4, 3, (3, 3, 2, 1)), (12, 1, 100, (5,))):
            x = rng.standard_normal((time, batch, classes)).astype(dtype) * 2
            for lengths in ([time] * batch, [max(2 * n - 1, time - b) for b, n in enumerate(counts)]):
                for attrs in ({}, {'ctc_merge_repeated': False}, {'preprocess_collapse_repeated': True}):
                    check(op, [x, *labels(rng, counts, classes), np.int32(np.minimum(lengths, time))], attrs, gradient=time < 40, **near)
        x = rng.standard_normal((5, 2, 4)).astype(dtype)
        for special in (np.nan, np.inf, -np.inf, 200, -200):
            y = x.copy()
            y[1, 0, 2] = special
            check(op, [y, INDICES, VALUES, LENGTHS], **near)
            y[1, 0, :] = special
            check(op, [y, INDICES, VALUES, LENGTHS], **near)
    x = rng.standard_normal((5, 2, 4)).astype(np.float32)
    near = {'rtol': 1e-4, 'atol': 1e-6}
    skip = {'ignore_longer_outputs_than_inputs': True}
    for values, lengths in (([1, 2, 0], [1, 4]), ([1, 2, 0], [5, 0]), ([1, 1, 0], [2, 4]), ([1, 1, 0], [1, 4]), ([1, 3, 0], [1, 4]), ([1, 9, 0], [2, 4]),
                            ([3, 1, 0], [5, 4]), ([1, -1, 0], [5, 4]), ([1, 2, 0], [6, 4]), ([1, 2, 0], [5, -1]), ([1, 2, 0], [5]), ([1, 2, 0], [5, 4, 3]),
                            ([1, 2, 0], [[5, 4]]), ([1, 2], [5, 4]), ([[1, 2, 0]], [5, 4])):
        for attrs in ({}, skip, {'preprocess_collapse_repeated': True}, {'ctc_merge_repeated': False}):
            check(op, [x, INDICES, np.int32(values), np.int32(lengths)], attrs, gradient=False, **near)
    for indices in ([[0, 0], [0, 3], [1, 7]], [[0, 0], [0, 1], [2, 0]], [[0, 0], [0, 1], [-1, 0]], [[0, 0], [0, -1], [1, 0]], [[1, 0], [0, 1], [0, 0]],
                    [[0, 0], [0, 0], [1, 0]], [[0, 0], [0, 1], [0, 2]], [0, 1, 1], [[0], [1], [1]], [[0, 0, 0], [0, 1, 0], [1, 0, 0]]):
        check(op, [x, np.int64(indices), VALUES, LENGTHS], **near)
    none = np.zeros((0, 2), np.int64), np.zeros(0, np.int32)
    check(op, [x, *none, LENGTHS])
    check(op, [x[:0], INDICES, VALUES, LENGTHS * 0], skip)
    check(op, [x[:, :0], *none, LENGTHS[:0]])
    check(op, [x[0], INDICES, VALUES, LENGTHS])


def decoders(check, rng):
    greedy, beam = 'CTCGreedyDecoder', 'CTCBeamSearchDecoder'
    for dtype in (np.float32, np.float64):
        for shape in ((5, 2, 4), (1, 1, 1), (30, 3, 6), (9, 1, 60)):
            x = rng.standard_normal(shape).astype(dtype) * 2
            lengths = np.int32([max(0, shape[0] - b) for b in range(shape[1])])
            for merge in (True, False):
                check(greedy, [x, lengths], {'merge_repeated': merge, 'blank_index': int(rng.integers(-shape[2], shape[2]))})
                for width, paths in ((1, 1), (4, 3), (50, 7)):
                    check(beam, [x, lengths], {'beam_width': width, 'top_paths': paths, 'merge_repeated': merge}, rtol=1e-5)
    x = rng.standard_normal((5, 2, 4)).astype(np.float32)
    zero = np.zeros((6, 1, 3), np.float32)
    for width, paths in ((1, 1), (3, 2), (5, 5), (10, 5), (17, 17), (100, 60)):  # whom a tie leaves out, and the order of equals
        check(beam, [zero, np.int32([6])], {'beam_width': width, 'top_paths': paths})
        for dtype in (np.float32, np.float64):
            drawn = rng.integers(0, 3, (4, 1, 12)).astype(dtype)
            check(beam, [drawn, np.int32([4])], {'beam_width': width, 'top_paths': paths}, rtol=1e-5)
    for op, attrs in ((greedy, {}), (beam, {'beam_width': 3, 'top_paths': 2})):
        for special in (np.nan, np.inf, -np.inf):
            y = x.copy()
            y[1, 0, 2] = special
            if op == greedy or special < 0:
                check(op, [y, LENGTHS], attrs)
        for bad in ([x[0], LENGTHS], [x, [LENGTHS]], [x, LENGTHS[:1]], [x, np.int32([5, 6])], [x, np.int32([5, -1])], [x, np.int32([5, 0])],
                    [x[:0], LENGTHS * 0], [x[:, :0], LENGTHS[:0]], [x[:, :, :0], LENGTHS], [x[:, :, :1], LENGTHS]):
            check(op, bad, attrs)
    for index in (3, -4, 4, -5):
        check(greedy, [x, LENGTHS], {'blank_index': index})
    check(beam, [x, LENGTHS], {'beam_width': 2, 'top_paths': 3})
    check(beam, [x, LENGTHS], {'beam_width': 0, 'top_paths': 1})
    check(beam, [x, LENGTHS], {'beam_width': 10, 'top_paths': 0})


def cases(check, rng):
    loss(check, rng)
    decoders(check, rng)
