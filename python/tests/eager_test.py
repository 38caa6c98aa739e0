"""Define by run: values at once, control flow of Python, gradients of what has run, variables that stay."""
import numpy as np
import pytest

import weir as w


def test_ops_run_as_they_are_added():
    with w.Eager(threads=1).tape():
        x = w.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
        y = 2 * x @ w.transpose(x, [1, 0]) - 1
        np.testing.assert_array_equal(y.numpy(), [[9, 27], [27, 99]])
        assert float(w.sum(y)) == 162 and int(w.size(y)) == 4
        np.testing.assert_array_equal(x[1, ::-1].numpy(), [5, 4, 3])


def test_gradients_of_what_has_run():
    with w.Eager().tape():
        x = w.constant(3.0)
        y = x
        while y < 100:  # as often as it takes
            y = y * x
        slope, = w.gradients([y], [x])
        second, = w.gradients([slope], [x])
        assert (float(y), float(slope), float(second)) == (243, 5 * 81, 20 * 27)


def test_variables_stay_from_tape_to_tape():
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (64, 2)).astype(np.float32)
    values = points @ np.array([[2], [-3]], np.float32) + 1
    eager, losses = w.Eager(), []
    for _ in range(60):
        with eager.tape():
            weights, bias = w.Variable(np.zeros((2, 1), np.float32), name='weights'), w.Variable(np.float32(0), name='bias')
            loss = w.mean(w.square(w.constant(points) @ weights + bias - values))
            w.sgd(0.4).minimize(loss)
            losses.append(float(loss))
    with eager.tape():
        np.testing.assert_allclose(w.Variable(np.zeros((2, 1), np.float32), name='weights').numpy(), [[2], [-3]], atol=1e-2)
    assert losses[-1] < 1e-3 < losses[0]
    eager.reset()
    with eager.tape():
        assert not w.Variable(np.zeros((2, 1), np.float32), name='weights').numpy().any()


def test_errors_are_raised_at_once_and_do_not_stick():
    with w.Eager().tape():
        with pytest.raises(w.InvalidArgumentError):
            w.matmul(w.constant(np.ones((2, 3), np.float32)), np.ones((2, 3), np.float32))
        assert float(w.constant(1.0) + 1) == 2
    with pytest.raises(TypeError, match='no value while the graph is built'):
        float(w.placeholder(w.float32, shape=[]))
