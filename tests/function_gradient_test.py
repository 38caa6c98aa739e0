"""A gradient that a function library registers is the one Weir differentiates calls with."""
import os
import sys

import numpy as np
import pytest

import conftest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
sys.path.insert(0, str(conftest.ROOT / 'tests' / 'oracle'))
import libweir  # noqa: E402
from tensorflow.python.framework import function  # noqa: E402

tf1 = tf.compat.v1
FACTOR = 7.0


def graph_def(as_call):
    """z = x * y + 1 by a function whose registered gradient is deliberately another one."""
    @function.Defun(tf.float32, tf.float32, tf.float32, func_name='product_gradient')
    def gradient(x, y, dz):
        return dz * FACTOR * y, dz + x

    @function.Defun(tf.float32, tf.float32, grad_func=gradient, func_name='product')
    def product(x, y):
        return x * y + 1

    with tf1.Graph().as_default() as g:
        x, y = tf1.placeholder(tf.float32, [3], 'x'), tf1.placeholder(tf.float32, [3], 'y')
        z = tf.raw_ops.PartitionedCall(args=[x, y], Tout=[tf.float32], f=product)[0] if as_call else product(x, y)
        tf.multiply(z, 2.0, name='out')
        dz = tf.fill([3], 2.0)
        for dx, name in zip(tf.raw_ops.SymbolicGradient(input=[x, y, dz], Tout=[tf.float32] * 2, f=product), 'ab'):
            tf.identity(dx, name=name)
        return g.as_graph_def()


@pytest.mark.parametrize('as_call', [False, True])
def test_registered_gradient(as_call):
    lib = libweir.Library(str(conftest.BUILD / 'libweir.so'))
    graph = libweir.Graph(lib, graph_def(as_call).SerializeToString())
    x, y = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    dx, dy = graph.gradients([graph.edge('out:0')], [graph.edge('x:0'), graph.edge('y:0')])
    feeds = {'x:0': x, 'y:0': y}
    got = graph.run([dx, dy, graph.edge('a:0'), graph.edge('b:0')], feeds)
    for mine, expected in zip(got, [2 * FACTOR * y, 2 + x, 2 * FACTOR * y, 2 + x]):
        np.testing.assert_allclose(mine, expected, rtol=1e-6)
    graph.close()
