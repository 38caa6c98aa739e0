"""Memory: no copies where that is safe, copies where it is not, DLPack, and leaks."""
import gc
import resource

import numpy as np
import pytest

import weir as w


def test_tensors_and_arrays_share_memory():
    array = np.arange(5000, dtype=np.float32)
    tensor = w.Tensor(array)
    view = tensor.numpy()
    assert np.shares_memory(view, array) and not view.flags.writeable
    assert tensor.shape == (5000,) and tensor.dtype == w.float32 and tensor.dtype == 'float32' and tensor.dtype == np.float32
    del tensor
    gc.collect()
    assert view[4999] == 4999
    turned = np.arange(6000, dtype=np.int64).reshape(60, 100).T
    np.testing.assert_array_equal(w.Tensor(turned).numpy(), turned)
    assert w.Tensor(np.zeros((0, 3), np.int8)).numpy().shape == (0, 3)
    assert w.Tensor([['a', b'b']]).numpy().tolist() == [[b'a', b'b']]


def test_results_are_the_callers_own():
    x = w.placeholder(w.float32, shape=[None])
    v = w.Variable(np.ones(5000, np.float32))
    with w.Session() as session:
        session.init()
        for edge in (x * 2, v, w.identity(x), x):
            got = session.run(edge, {x: np.ones(5000, np.float32)})
            got += 1  # writable, and nobody else's
        assert (session.run(v) == 1).all()


def test_a_fed_array_that_is_kept_cannot_be_changed():
    x = w.placeholder(w.float32, shape=[5000])
    v = w.Variable(np.zeros(5000, np.float32))
    put, bump = v.assign(x), v.assign_add(np.ones(5000, np.float32))
    array = np.full(5000, 7, np.float32)
    with w.Session() as session:
        session.init()
        session.run(w.mean(x), {x: array})
        array[0] = 7  # nobody kept it
        session.run(put, {x: array})
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 9
        session.run(bump)
        assert (array == 7).all() and (session.run(v) == 8).all()
    array[0] = 9  # free again: the update has left it


def test_dlpack_with_numpy():
    tensor = w.Tensor(np.arange(12, dtype=np.int16).reshape(3, 4))  # small: Weir's own memory
    array = np.from_dlpack(tensor)
    np.testing.assert_array_equal(array, tensor.numpy())
    assert np.shares_memory(array, tensor.numpy())
    del tensor
    gc.collect()
    assert array[2, 3] == 11
    source = np.arange(6000, dtype=np.float64).reshape(60, 100)
    back = w.from_dlpack(source)
    assert np.shares_memory(back.numpy(), source)
    np.testing.assert_array_equal(w.from_dlpack(source.T).numpy(), source.T)
    np.testing.assert_array_equal(w.from_dlpack(source[::-2, 1:]).numpy(), source[::-2, 1:])
    assert w.from_dlpack(np.array(3.0)).shape == ()
    with pytest.raises(BufferError, match='string'):
        w.Tensor('a').__dlpack__()
    with pytest.raises(TypeError):
        w.from_dlpack([1, 2])
    unused = w.Tensor(source).__dlpack__(max_version=(1, 0))  # a capsule that nobody takes
    del unused
    gc.collect()


def test_dlpack_objects_are_fed():
    class Array:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = w.placeholder(w.float32, shape=[None])
    with w.Session() as session:
        assert session.run(w.sum(x), {x: Array(np.ones(3, np.float32))}) == 3


def test_memory_stays_flat():
    x = w.placeholder(w.float32, shape=[None, 100])
    y = w.softmax(x @ np.ones((100, 100), np.float32))
    array = np.ones((100, 100), np.float32)
    with w.Session() as session:
        step = session.callable(y, [x])

        def work():
            for _ in range(300):
                session.run(y, {x: array})
                step(array)
                np.from_dlpack(w.Tensor(array[:2]))
                w.Tensor(array).numpy()
                with pytest.raises(w.InvalidArgumentError):
                    session.run(y, {x: array[:, :3]})
        work()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(5):
            work()
        gc.collect()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10  # KiB; a leaked result would be 60 MB each
    from weir import tensor
    gc.collect()
    assert not [k for k in tensor._kept.values() if k.array is array]


def test_graphs_and_sessions_end_in_any_order():
    for _ in range(20):
        graph = w.Graph()
        with graph:
            v = w.Variable(np.zeros(10000, np.float32))
        session = w.Session(graph)
        session.init()
        del graph
        gc.collect()
        assert session.run(v).shape == (10000,)
        f = session.callable(v)
        del session
        gc.collect()
        assert f().shape == (10000,)
        del f, v
        gc.collect()
