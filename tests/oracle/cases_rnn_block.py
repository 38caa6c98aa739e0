"""LSTM and GRU cells as one op, and LSTMs over whole sequences."""
import numpy as np

HALF = {'rtol': 2e-2, 'atol': 2e-2}  # TensorFlow rounds to half at each operation
FLOAT = {'rtol': 2e-5, 'atol': 2e-5}


def draw(rng, dtype, *shape):
    return (rng.standard_normal(shape) * 0.7).astype(dtype)


def weights(rng, dtype, batch, inputs, cells):
    """cs_prev, h_prev, w, wci, wcf, wco, b."""
    return [draw(rng, dtype, *s) for s in ((batch, cells), (batch, cells), (inputs + cells, 4 * cells), (cells,), (cells,), (cells,), (4 * cells,))]


def lstm_cells(check, rng):
    for dtype, near in ((np.float32, FLOAT), (np.float16, HALF)):
        for batch, inputs, cells in ((2, 4, 5), (1, 1, 1), (9, 20, 33), (0, 3, 2), (2, 0, 3)):
            x, states = draw(rng, dtype, batch, inputs), [draw(rng, dtype, batch, cells) for _ in range(8)]
            for peephole in (False, True):
                for attrs in ({}, {'cell_clip': 0.5, 'forget_bias': 0.0}, {'cell_clip': -1.0}):
                    check('LSTMBlockCell', [x, *weights(rng, dtype, batch, inputs, cells)], {'use_peephole': peephole, **attrs}, **near)
                check('LSTMBlockCellGrad', [x, *weights(rng, dtype, batch, inputs, cells), *states], {'use_peephole': peephole}, **near)
    dtype, x = np.float32, draw(rng, np.float32, 2, 4)
    inputs = [x, *weights(rng, dtype, 2, 4, 5)]
    states = [draw(rng, dtype, 2, 5) for _ in range(8)]
    for at, shape in ((0, (3, 4)), (0, (2, 3)), (1, (3, 5)), (1, (2, 4)), (2, (3, 5)), (2, (2, 4)), (3, (4,)), (3, (9, 24)), (3, (10, 20)), (4, (5, 1)),
                      (7, (4,)), (7, (4, 5))):
        bad = [*inputs[:at], draw(rng, dtype, *shape), *inputs[at + 1:]]
        check('LSTMBlockCell', bad)
        if at != 4:
            check('LSTMBlockCellGrad', bad + states, {'use_peephole': True})
    check('LSTMBlockCell', [*inputs[:4], draw(rng, dtype, 6), *inputs[5:]])
    unused = [*inputs[:4], np.zeros(0, dtype), np.zeros(6, dtype), np.zeros(1, dtype), inputs[7]]
    check('LSTMBlockCell', unused)
    check('LSTMBlockCellGrad', unused + states, {'use_peephole': False}, tf_shape_differs=True)
    for at in range(8):
        for shape in ((3, 5), (2, 4)):
            check('LSTMBlockCellGrad', [*inputs, *states[:at], draw(rng, dtype, *shape), *states[at + 1:]], {'use_peephole': True})


def lstms(check, rng):
    for dtype, near in ((np.float32, {'rtol': 1e-4, 'atol': 1e-4}), (np.float16, {'rtol': 5e-2, 'atol': 2e-2})):
        for steps, batch, inputs, cells in ((3, 2, 4, 5), (1, 1, 1, 1), (7, 5, 10, 17)):
            x = draw(rng, dtype, steps, batch, inputs)
            states = [draw(rng, dtype, steps, batch, cells) * dtype(0.5) for _ in range(9)]
            for version, attrs in (('', {}), ('', {'forget_bias': 0.3, 'cell_clip': 0.4}), ('V2', {}), ('V2', {'cell_clip': 0.4})):
                for peephole in (False, True):
                    w = weights(rng, dtype, batch, inputs, cells)
                    # TensorFlow takes the gradient of BlockLSTM also for V2, whose gates are in another order
                    check('BlockLSTM' + version, [np.int64(steps), x, *w], {'use_peephole': peephole, **attrs}, gradient=version == '', **near)
                    if 'cell_clip' not in attrs:
                        for length in {steps, steps // 2}:
                            check('BlockLSTMGrad' + version, [np.int64(length), x, *w, *states], {'use_peephole': peephole}, **near)
    dtype = np.float32
    inputs = [np.int64(3), draw(rng, dtype, 3, 2, 4), *weights(rng, dtype, 2, 4, 5)]
    states = [draw(rng, dtype, 3, 2, 5) for _ in range(9)]
    for op in ('BlockLSTM', 'BlockLSTMV2'):
        for at, shape in ((1, (3, 2)), (1, (3, 3, 4)), (1, (3, 2, 3)), (2, (2,)), (2, (3, 5)), (2, (2, 4)), (3, (2,)), (3, (3, 5)), (4, (4,)), (4, (9, 24)),
                          (4, (10, 20)), (5, (5, 1)), (5, (6,)), (6, (6,)), (7, (6,)), (8, (4,)), (8, (4, 5)), (8, (22,))):
            check(op, [*inputs[:at], draw(rng, dtype, *shape), *inputs[at + 1:]], {'use_peephole': True})
        check(op, [np.int64([3]), *inputs[1:]])
    for op in ('BlockLSTMGrad', 'BlockLSTMGradV2'):
        for at, shape in ((1, (3, 2)), (1, (3, 2, 3)), (2, (2,)), (3, (2,)), (4, (4,)), (4, (10, 20)), (5, (5, 1)), (8, (4,)), (8, (4, 5))):
            check(op, [*inputs[:at], draw(rng, dtype, *shape), *inputs[at + 1:], *states], {'use_peephole': True})
        check(op, [*inputs, draw(rng, dtype, 3, 2), *states[1:]], {'use_peephole': True})


def grus(check, rng):
    def matrices(batch, inputs, cells):
        return [draw(rng, np.float32, *s) for s in ((batch, inputs), (batch, cells), (inputs + cells, 2 * cells), (inputs + cells, cells), (2 * cells,), (cells,))]
    for batch, inputs, cells in ((2, 4, 5), (1, 1, 1), (9, 20, 33), (0, 3, 2), (2, 0, 3)):
        check('GRUBlockCell', matrices(batch, inputs, cells), **FLOAT)
        check('GRUBlockCellGrad', matrices(batch, inputs, cells) + [draw(rng, np.float32, batch, cells) for _ in range(4)], **FLOAT)
    good, states = matrices(2, 4, 5), [draw(rng, np.float32, 2, 5) for _ in range(4)]
    for at, shape in ((0, (2,)), (0, (3, 4)), (0, (2, 3)), (1, (2,)), (1, (3, 5)), (1, (2, 4)), (2, (4,)), (2, (9, 14)), (2, (10, 10)), (3, (4,)), (3, (9, 9)),
                      (3, (10, 5)), (4, (5, 1)), (4, (6,)), (5, (5, 1)), (5, (6,))):
        bad = [*good[:at], draw(rng, np.float32, *shape), *good[at + 1:]]
        check('GRUBlockCell', bad)
        check('GRUBlockCellGrad', bad + states)
    for at in range(4):
        for shape in ((2,), (3, 5), (2, 4)):
            check('GRUBlockCellGrad', good + [*states[:at], draw(rng, np.float32, *shape), *states[at + 1:]])


def cases(check, rng):
    lstm_cells(check, rng)
    lstms(check, rng)
    grus(check, rng)
