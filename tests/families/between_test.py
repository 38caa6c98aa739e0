"""What lies between the families: each of them in branches with dead values, in loops, over tasks, and in steps that fail."""
import numpy as np
import pytest

from clusters import tf, tf1
from compare import error_of

raw = tf.raw_ops


# ---- functions of a matrix of 4 x 6, to one like it, where there is a gradient through it; they fail where their input has a NaN ----

def checked(x):
    return tf.debugging.check_numerics(x, 'a NaN')


def fake_quantized(x):
    low, high = tf.reduce_min(x), tf.reduce_max(x)
    return tf.quantization.fake_quant_with_min_max_vars(checked(x), tf.minimum(low, -0.1), tf.maximum(high, 0.1)) * 0.9


def quantized(x):
    """A product in 8 bits."""
    q = raw.QuantizeV2(input=checked(x), min_range=-4., max_range=4., T=tf.quint8)
    w = raw.QuantizeV2(input=tf.eye(6), min_range=-1., max_range=1., T=tf.quint8)
    y = raw.QuantizedMatMul(a=q.output, b=w.output, min_a=q.output_min, max_a=q.output_max, min_b=w.output_min, max_b=w.output_max)
    y = raw.QuantizeDownAndShrinkRange(input=y.out, input_min=y.min_out, input_max=y.max_out, out_type=tf.quint8)
    return raw.Dequantize(input=y.output, min_range=y.output_min, max_range=y.output_max) * 0.9


def resized(x):
    image = tf.image.resize(checked(x)[None, :, :, None], [7, 9])
    crops = tf.image.crop_and_resize(image, [[0.1, 0.1, 0.9, 0.8]], [0], [4, 6])
    return crops[0, :, :, 0] + 0.1


def coded(x):
    """Through a PNG; what is too small or too large for a pixel stays at the end."""
    pixels = tf.cast(tf.clip_by_value(checked(x) * 30. + 128., 0., 255.), tf.uint8)
    return (tf.cast(tf.io.decode_png(tf.io.encode_png(pixels[:, :, None]), 1)[:, :, 0], tf.float32) - 128.) / 30.


def spoken(x):
    labels = tf.SparseTensor([[0, 0], [0, 1]], [1, 0], [1, 2])
    loss = tf1.nn.ctc_loss(labels, checked(x)[:, None], [4])
    decoded = tf.nn.ctc_beam_search_decoder(x[:, None], [4], 4, 1)[0][0]
    return tf.tanh(x) + loss * 0.1 + tf.cast(tf.size(decoded.values), tf.float32)


def sparse(x):
    kept = tf.where(checked(x) > -0.5)
    y = tf.sparse.softmax(tf.SparseTensor(kept, tf.gather_nd(x, kept), [4, 6]))
    return tf.sparse.sparse_dense_matmul(y, tf.ones([6, 6]) * 0.5) + tf.sparse.to_dense(y) - x * 0.3


def ragged(x):
    rows = tf.RaggedTensor.from_row_splits(tf.reshape(checked(x), [-1]), [0, 1, 9, 9, 24], validate=False)
    sums = tf.reduce_sum(rows, 1)
    return tf.tanh(rows.to_tensor(shape=[4, 6])) + tf.reshape(sums, [4, 1]) * 0.1


def transformed(x):
    spectrum = tf.signal.rfft(checked(x))
    return tf.signal.irfft(spectrum[:, :4] * 0.5, [6])


def solved(x):
    gram = tf.matmul(checked(x), x, transpose_b=True) + 3. * tf.eye(4)
    return tf.linalg.triangular_solve(tf.linalg.cholesky(gram), x)


def worded(x):
    words = tf.strings.regex_replace(tf.strings.as_string(checked(x), precision=2), '^-?', '')
    points = tf.strings.unicode_decode(tf.reshape(words, [-1]), 'UTF-8')
    return tf.strings.to_number(words) - tf.cast(points.row_lengths()[0], tf.float32) * 0.1


def pooled(x):
    # TensorFlow's shape function gives its sequences one element too few: a gradient in a While could not keep them.
    y = tf.stop_gradient(tf.nn.fractional_max_pool(checked(x)[None, :, :, None], [1., 1.3, 1.4, 1.], seed=1)[0])
    volume = tf.nn.avg_pool3d(tf.reshape(x, [1, 2, 2, 6, 1]), 2, 1, 'SAME')
    return tf.reshape(volume, [4, 6]) + tf.reduce_mean(y)


def reduced(x):
    """A dataset in a step."""
    rows = tf.data.Dataset.from_tensor_slices(checked(x)).map(tf.sin).batch(2)
    return x * 0.5 + rows.reduce(tf.zeros([6]), lambda total, rows: total + tf.reduce_sum(rows, 0))


def mapped(x):
    m = raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key=1, value=checked(x))
    m = raw.TensorMapInsert(input_handle=m, key=2, value=x * 2.)
    return (raw.TensorMapLookup(input_handle=m, key=1, value_dtype=tf.float32) +
            raw.TensorMapLookup(input_handle=m, key=2, value_dtype=tf.float32)) * 0.3


FAMILIES = [fake_quantized, quantized, resized, coded, spoken, sparse, ragged, transformed, solved, worded, pooled, reduced, mapped]
HAVE_GRADIENTS = [fake_quantized, resized, spoken, sparse, ragged, transformed, solved, pooled]
X = np.random.default_rng(15).standard_normal([4, 6]).astype(np.float32)
BAD = np.where(np.arange(24).reshape(4, 6) == 13, np.nan, X).astype(np.float32)


@pytest.mark.parametrize('check', ['functions', 'tasks'], indirect=True)
@pytest.mark.parametrize('family', FAMILIES, ids=lambda f: f.__name__)
def test_branches_and_loops(check, family):
    """A branch that is not taken does nothing, and does not fail; in a loop the step fails when it comes to that."""
    def program(s, form):
        x, p, n = tf1.placeholder(tf.float32, [4, 6]), tf1.placeholder(tf.bool, []), tf1.placeholder(tf.int32, [])

        def apply(x):
            with tf.device(form.device):
                return tf.reshape(family(x), [4, 6])

        def choose(x, p):
            return tf1.cond(p, lambda: apply(x) + 1., lambda: x * 2.)

        def repeat(x, n):
            return tf1.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, apply(y)), [tf.constant(0), x])[1]

        def both(x, p):
            """Branches in a loop: now one, now the other."""
            def body(i, y):
                taken = tf.equal(tf.equal(i % 2, 0), p)
                return i + 1, tf1.cond(taken, lambda: apply(y), lambda: y + 0.25)
            return tf1.while_loop(lambda i, y: i < 3, body, [tf.constant(0), x])[1]
        choice, loop, mixed = form.function(choose)(x, p), form.function(repeat)(x, n), form.function(both)(x, p)
        # Not of older loops over tasks: their gradients would need a node in two places, in TensorFlow, too.
        ys = [choice] if form.name == 'tasks' else [choice, mixed]
        slopes = [tf.gradients(y, x)[0] for y in ys] if family in HAVE_GRADIENTS else []
        feeds = {x: X, p: True, n: 2}
        out = {'true': s.run([choice, loop, mixed, slopes], feeds)}
        out['error'] = [error_of(s.run, y, {**feeds, x: BAD}) for y in (choice, loop, mixed)]
        out['false'] = s.run([choice, loop, mixed, slopes], {x: X, p: False, n: 0})
        out['not taken'] = s.run([choice, loop], {x: BAD, p: False, n: 0})
        out['again'] = s.run([choice, mixed], feeds)
        return out
    check(program, rtol=1e-4, atol=1e-4)
