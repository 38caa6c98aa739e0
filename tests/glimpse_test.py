"""The noise that ExtractGlimpse puts where a window is outside of its image: of the image's own range, and new in each step.

TensorFlow's is chance, too, so there is nothing that the oracle could compare. Needs tensorflow, as a client that builds graphs.
"""
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest

tf = pytest.importorskip('tensorflow')

from conftest import BUILD, ROOT  # noqa: E402

sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir  # noqa: E402


@pytest.mark.parametrize('noise', ['uniform', 'gaussian'])
@pytest.mark.parametrize('op', ['ExtractGlimpse', 'ExtractGlimpseV2'])
def test_noise(op, noise):
    # Two channels of different ranges; the window is 10 rows high, of which the image has 4.
    images = np.stack([np.linspace(5, 6, 400), np.linspace(-3, -1, 400)], -1).reshape(1, 4, 100, 2).astype(np.float32)
    images = np.repeat(images, 2, 0)
    with tf.compat.v1.Graph().as_default() as graph:
        feed = tf.compat.v1.placeholder(tf.float32, images.shape, name='images')
        getattr(tf.raw_ops, op)(input=feed, size=[10, 90], offsets=[[0., 0.]] * 2, noise=noise, uniform_noise=False, name='glimpse')
    lib = libweir.Library(str(BUILD / 'libweir.so'))
    weir = libweir.Graph(lib, graph.as_graph_def(), threads=2)
    first, second = (weir.run([weir.edge('glimpse:0')], {'images:0': images})[0] for _ in range(2))
    weir.close()
    shown = np.array([[(first[0, y] == row[5:95]).all() for row in images[0]] for y in range(10)])
    assert shown.sum() == 4  # each row of the image once
    outside = first[:, ~shown.any(1)]
    assert outside.shape == (2, 6, 90, 2)
    for c, (low, high) in enumerate([(5, 6), (-3, -1)]):
        values = outside[..., c]
        if noise == 'uniform':  # over the range of all channels
            low, high = -3, 6
        assert values.min() >= low - 1e-5 and values.max() <= high + 1e-5
        assert abs(values.mean() - (low + high) / 2) < .05 * (high - low)
        assert len(np.unique(values)) > 300
    assert (outside[0] != outside[1]).any() and (first != second).any()
