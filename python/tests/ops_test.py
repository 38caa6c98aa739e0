"""Ops against NumPy, operators, indices, conversions, gradients by numbers, and what is refused."""
import numpy as np
import pytest

import weir as w

RNG = np.random.default_rng(1)
X = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
Y = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)


def run(fetches, feeds=None):
    with w.Session() as session:
        return session.run(fetches, feeds)


def test_functions_of_the_registry():
    names = {'exp': np.exp, 'log': np.log, 'sqrt': np.sqrt, 'tanh': np.tanh, 'sin': np.sin, 'square': np.square, 'neg': np.negative,
             'floor': np.floor, 'rint': np.rint, 'log1p': np.log1p}
    got = run({name: getattr(w, name)(X) for name in names})
    for name, function in names.items():
        np.testing.assert_allclose(got[name], function(X), rtol=1e-5, atol=1e-6, err_msg=name)


def test_operators_and_numbers_follow_the_edge():
    for dtype in (np.float32, np.float64, np.int64):
        a = np.arange(1, 7).astype(dtype).reshape(2, 3)
        x = w.constant(a)
        edges = [x + 1, 2 * x, 7 - x, -x, x // 2, x % 2, x @ a.T, a + x, abs(-x)]
        for got, want in zip(run(edges), [a + 1, 2 * a, 7 - a, -a, a // 2, a % 2, a @ a.T, a + a, a]):
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, want)
    assert run(w.constant(X) > 0.5).dtype == np.bool_
    np.testing.assert_allclose(run([w.constant(X) / 2, 1 / w.constant(X), w.constant(X) ** 2]), [X / 2, 1 / X, X ** 2], rtol=1e-6)


@pytest.mark.parametrize('key', [0, -1, (1, 2), slice(1, None), (slice(None), slice(None, None, 2)), (..., 1), (None, 0), (slice(2, 0, -1), ...),
                                 (slice(None), None, -2)])
def test_indices_as_numpy(key):
    np.testing.assert_array_equal(run(w.constant(X)[key]), X[key])


def test_index_by_an_edge():
    i = w.placeholder(w.int64, shape=[])
    assert run(w.constant(X)[i, 1], {i: 2}) == X[2, 1]


def test_reductions_lists_and_tuples():
    x = w.constant(X)
    np.testing.assert_allclose(run([w.sum(x), w.mean(x, 0), w.max(x, [0, 1]), w.sum(x, -1, keepdims=True)][3]), X.sum(-1, keepdims=True),
                               rtol=1e-6)
    np.testing.assert_allclose(run(w.mean(x, 0)), X.mean(0), rtol=1e-6)
    assert run(w.max(x)) == X.max()
    parts = w.split(1, x, 2)
    assert isinstance(parts, list) and len(parts) == 2
    np.testing.assert_array_equal(run(w.concat(parts, 1)), X)
    top = w.top_kv2(x, 2) if hasattr(w.ops, 'top_kv2') else w.top_k_v2(x, 2)
    values, indices = run(top)
    np.testing.assert_array_equal(np.take_along_axis(X, indices, 1), values)
    assert run(top)._fields == ('values', 'indices')
    np.testing.assert_array_equal(run(w.pack([x, Y])), [X, Y])
    assert [e.shape for e in w.unpack(x, 3)] == [(4,)] * 3
    np.testing.assert_array_equal(run(list(w.constant(X)))[1], X[1])


def test_several_lists_of_inputs():
    edges = w.dynamic_stitch([[0, 2], [1]], [[[1.0], [3.0]], [[2.0]]])
    np.testing.assert_array_equal(run(edges), [[1], [2], [3]])


def test_attributes_of_every_kind():
    assert w.placeholder(w.float64, shape=[None, 3]).shape == (None, 3)
    assert w.placeholder('int32').shape is None
    assert run(w.cast(X, w.int32)).dtype == np.int32
    image = X.reshape(1, 3, 4, 1)
    assert run(w.max_pool(image, [1, 2, 2, 1], [1, 1, 1, 1], 'VALID')).shape == (1, 2, 3, 1)
    queue = w.fifo_queue_v2([w.float32, w.string], shapes=[[], []], capacity=3)
    assert queue.dtype == w.resource
    np.testing.assert_allclose(run(w.leaky_relu(-X, alpha=0.5)), -X / 2, rtol=1e-6)


@pytest.mark.parametrize('build', [lambda x: w.tanh(x) * w.exp(-x), lambda x: w.softmax(x), lambda x: w.matmul(x, x, transpose_b=True),
                                   lambda x: x[1:, ::2] / w.sum(x), lambda x: w.log(x) + w.sqrt(x)])
def test_gradients_by_numbers(build):
    x = w.placeholder(w.float64, shape=[3, 4])
    loss = w.sum(w.square(build(x)))
    gradient, = w.gradients(loss, x)
    with w.Session() as session:
        got, at, step = session.run(gradient, {x: X}), X.astype(np.float64), 1e-5
        for i in np.ndindex(X.shape):
            moved = at.copy()
            moved[i] += step
            up = session.run(loss, {x: moved})
            moved[i] -= 2 * step
            assert got[i] == pytest.approx((up - session.run(loss, {x: moved})) / (2 * step), rel=1e-4, abs=1e-7)


def test_no_gradient_is_none():
    x, y = w.constant(1.0), w.constant(2.0)
    assert w.gradients(x * 2, [x, y])[1] is None


def test_strings():
    got = run([w.string_join(['a', ['b', 'c\0d']]), w.string_length(['', 'äö'])])
    assert got[0].tolist() == [b'ab', b'ac\0d'] and got[1].tolist() == [0, 4]
    assert run(w.constant(np.array(['x', 'yz'])))[1] == b'yz'


def test_bfloat16():
    import ml_dtypes
    got = run(w.cast(X, w.bfloat16))
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, X.astype(ml_dtypes.bfloat16))
    assert run(w.constant(got) * 2).dtype == ml_dtypes.bfloat16


def test_scopes_names_and_devices(graph):
    with w.scope('outer'), w.scope('inner'):
        assert w.constant(1, dtype=w.int64).name == 'outer/inner/Const:0'
        assert w.identity(1.0, name='mine').node.name == 'outer/inner/mine'
    with w.device('/cpu:0'):
        assert w.identity(1.0).node.device == '/cpu:0'
    first = w.no_op()
    with w.after(first):
        assert w.no_op().type == 'NoOp'
    assert graph.node('outer/inner/mine').inputs[0].dtype == w.float32
    copy = w.Graph()
    copy.import_def(graph.to_def(), 'copy')
    assert copy.edge('copy/outer/inner/mine').name == 'copy/outer/inner/mine:0'
    assert 'outer/inner/mine' in graph.to_text()


def test_errors_say_what_and_where_and_do_not_stick():
    with pytest.raises(w.InvalidArgumentError, match='3 and 5') as caught:
        w.mat_mul(np.ones((2, 3), np.float32), np.ones((5, 2), np.float32), name='bad')
    assert caught.value.code == 'INVALID_ARGUMENT' and caught.value.node == 'bad' and isinstance(caught.value, ValueError)
    with pytest.raises(AttributeError, match="but 'mat_mul'"):
        w.mat_mull  # pylint: disable=pointless-statement
    with pytest.raises(TypeError, match='transpose_c'):
        w.mat_mul(X, Y, transpose_c=True)
    with pytest.raises(w.InvalidArgumentError, match="'strides' is list"):
        w.max_pool(X, [1], 'x', 'VALID')
    with pytest.raises(w.NotFoundError, match='Nope'):
        w.ops.add_node('Nope')
    with pytest.raises(TypeError, match='no value while'):
        bool(w.constant(True))
    assert run(w.constant(1)) == 1


def test_edges_of_another_graph():
    other = w.Graph()
    with other:
        x = w.constant(1.0)
    with pytest.raises(w.InvalidArgumentError, match='another graph|other graph'):
        w.identity(x)
    with w.Session() as session, pytest.raises(w.InvalidArgumentError, match='another graph'):
        session.run(x)


def test_docstrings_and_signatures():
    import inspect
    assert 'transpose_a' in inspect.signature(w.ops.mat_mul).parameters
    assert w.ops.mat_mul.__doc__ and 'op: MatMul' in w.ops.mat_mul.__doc__
    assert 'conv2d' in dir(w.ops) and 'relu' in dir(w)


def test_conditionals():
    x = w.placeholder(w.float32, shape=[])
    y = w.cond(x > 0, lambda: x * x, lambda: w.cond(x < -10, lambda: 7.0, lambda: -x))
    low, high = w.cond(x < 1, lambda: (x, 1.0), lambda: [1.0, x], count=2)
    chosen = w.switch_case(w.cast(x, w.int32), [lambda: 10.0, lambda: x + 20, lambda: 30.0])
    slope, = w.gradients([y], [x])
    with w.Session() as session:
        assert session.run([y, slope, low, high, chosen], {x: 3}) == [9, 6, 1, 3, 30]
        assert session.run([y, slope, low, high, chosen], {x: 1}) == [1, 2, 1, 1, 21]
        assert session.run([y, low, high], {x: -4}) == [4, -4, 1] and session.run(y, {x: -11}) == 7


def test_branches_that_fail():
    x = w.placeholder(w.float32, shape=[])
    with pytest.raises(ZeroDivisionError):
        w.cond(x > 0, lambda: 1 / 0, lambda: x)
    with pytest.raises(ValueError, match='a branch gives 2 results where 1 were asked for'):
        w.cond(x > 0, lambda: (x, x), lambda: x)
    with pytest.raises(w.InvalidArgumentError):
        w.cond(x > 0, lambda: x, lambda: w.constant(1, w.int32))
    with w.Session() as session:
        assert session.run(w.cond(x > 0, lambda: x, lambda: -x), {x: -2}) == 2


def test_loops():
    x, n = w.placeholder(w.float32, shape=[2]), w.placeholder(w.int32, shape=[])
    i, y = w.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), [0, w.ones_like(x)])
    slope, = w.gradients([y], [x])
    grown, = w.while_loop(lambda v: w.size(v) < 10, lambda v: w.concat([v, v]), [x], shapes=[[None]])
    with w.Session() as session:
        count, power, by_x, doubled = session.run([i, y, slope, grown], {x: [2, 3], n: 3})
    assert count == 3 and power.tolist() == [8, 27] and by_x.tolist() == [12, 27] and doubled.tolist() == [2, 3] * 8


def test_loops_that_fail():
    with pytest.raises(ZeroDivisionError):
        w.while_loop(lambda i: i < 3, lambda i: i / (1 // 0), [0])
    with pytest.raises(ValueError, match='the body of a loop gives 2 results instead of 1'):
        w.while_loop(lambda i: i < 3, lambda i: (i, i), [0])
