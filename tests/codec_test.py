"""Image files and summaries whose bytes may differ from TensorFlow's: what they hold must not.

Needs tensorflow. Runs libweir through ctypes; the files that Weir writes are read by TensorFlow.
"""
import os
import sys
import zlib

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest

tf = pytest.importorskip('tensorflow')
from tensorflow.core.framework import summary_pb2

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / 'tests' / 'oracle'))
import libweir

raw, tf1 = tf.raw_ops, tf.compat.v1


@pytest.fixture(scope='module')
def lib():
    return libweir.Library(str(BUILD / 'libweir.so'))


def both(lib, build):
    """The value of the one tensor that build() makes, in TensorFlow and in Weir."""
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        tensor = build()
        weir = libweir.Graph(lib, graph.as_graph_def(), threads=2)
        try:
            return np.asarray(session.run(tensor), object), weir.run([weir.edge(tensor.name)])[0]
        finally:
            weir.close()


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
@pytest.mark.parametrize('shape', [(7, 9, 1), (7, 9, 2), (20, 31, 3), (5, 1, 4), (2, 3, 6, 5, 3), (1, 1, 1)])
@pytest.mark.parametrize('compression', [-1, 0, 1, 9])
def test_encode_png(lib, dtype, shape, compression):
    rng = np.random.default_rng(1)
    image = rng.integers(0, np.iinfo(dtype).max, shape).astype(dtype)
    image[..., : shape[-2] // 2, :] = 7  # something to compress
    want, got = both(lib, lambda: raw.EncodePng(image=image, compression=compression))
    assert got.shape == want.shape
    for file, other in zip(got.ravel(), want.ravel()):
        pixels = tf.io.decode_png(file, dtype=dtype).numpy() if shape[-1] != 2 else None
        if pixels is not None:
            assert (pixels == tf.io.decode_png(other, dtype=dtype).numpy()).all()
        gray = tf.io.decode_png(file, channels=4, dtype=dtype).numpy()
        assert (gray == tf.io.decode_png(other, channels=4, dtype=dtype).numpy()).all()


def test_encoded_pngs_are_small(lib):
    y, x = np.mgrid[:100, :120]
    image = np.stack([x + y, 2 * x, 255 - y], -1).astype(np.uint8)
    want, got = both(lib, lambda: raw.EncodePng(image=image))
    assert len(got.item()) < 1.3 * len(want.item())


def images(rng, dtype, kind):
    x = rng.random((4, 6, 5, 3))
    if kind == 'negative':
        x = x * 4 - 2
    elif kind == 'zero':
        x = x * 0
    elif kind == 'large':
        x = x * 1000
    if kind == 'bad' and dtype != np.uint8:
        x[0, 1, 2, 0], x[1, 0, 0, 1], x[2, 3, 3, 2], x[3] = np.nan, np.inf, -np.inf, np.nan
    return (x * 255 if dtype == np.uint8 else x).astype(dtype)


@pytest.mark.parametrize('dtype', [np.uint8, np.float32, np.float64, np.float16])
@pytest.mark.parametrize('kind', ['plain', 'negative', 'zero', 'large', 'bad'])
@pytest.mark.parametrize('attrs', [{}, {'max_images': 1}, {'max_images': 9}, {'bad_color': np.uint8([1, 2, 3, 4, 5])}])
def test_image_summary(lib, dtype, kind, attrs):
    if dtype == np.uint8 and kind in ('negative', 'large'):
        pytest.skip('not for bytes')
    tensor = images(np.random.default_rng(2), dtype, kind)
    attrs = dict(attrs)
    if 'bad_color' in attrs:
        attrs['bad_color'] = tf.make_tensor_proto(attrs['bad_color'])
    else:
        attrs['bad_color'] = tf.make_tensor_proto(np.uint8([255, 0, 0, 255]))
    for channels in (1, 3):
        want, got = both(lib, lambda: raw.ImageSummary(tag='a tag', tensor=tensor[..., :channels], **attrs))
        want, got = summary_pb2.Summary.FromString(want.item()), summary_pb2.Summary.FromString(got.item())
        assert len(got.value) == len(want.value)
        for a, b in zip(got.value, want.value):
            assert a.tag == b.tag
            assert (a.image.height, a.image.width, a.image.colorspace) == (b.image.height, b.image.width, b.image.colorspace)
            pixels = [tf.io.decode_png(v.image.encoded_image_string).numpy() for v in (a, b)]
            assert (pixels[0] == pixels[1]).all()


def test_other_programs_read_the_files(lib):
    """The streams within are what zlib takes for good."""
    image = np.random.default_rng(3).integers(0, 4, (50, 60, 3)).astype(np.uint8)
    _, got = both(lib, lambda: raw.EncodePng(image=image))
    data, at, packed = got.item(), 8, b''
    while at < len(data):
        size, name = int.from_bytes(data[at:at + 4], 'big'), data[at + 4:at + 8]
        assert zlib.crc32(data[at + 4:at + 8 + size]) == int.from_bytes(data[at + 8 + size:at + 12 + size], 'big')
        packed += data[at + 8:at + 8 + size] if name == b'IDAT' else b''
        at += 12 + size
    assert len(zlib.decompress(packed)) == 50 * (1 + 60 * 3)


@pytest.mark.parametrize('recover', [False, True])
def test_jpeg_cut_within_a_marker(lib, recover):
    """The last byte begins a marker: TensorFlow searches for its end for ever."""
    whole = tf.io.encode_jpeg(np.random.default_rng(2).integers(0, 255, (60, 70, 3)).astype(np.uint8)).numpy()
    with tf1.Graph().as_default() as graph:
        tensor = raw.DecodeJpeg(contents=whole[:len(whole) // 2] + b'\xff', try_recover_truncated=recover, acceptable_fraction=0.1)
        weir = libweir.Graph(lib, graph.as_graph_def(), threads=1)
        try:
            assert weir.run([weir.edge(tensor.name)])[0].shape == (60, 70, 3)
        finally:
            weir.close()
