"""A classifier of volumes: convolutions and pooling in three dimensions, fractional pooling, and their gradients."""
import numpy as np

from clusters import tf, tf1
from compare import falls, train, variables


def test_classifier(check):
    def program(s, form):
        rng = np.random.default_rng(11)
        x = rng.standard_normal([4, 6, 8, 8, 2]).astype(np.float32)
        x[2:] += np.linspace(0, 2, 8, dtype=np.float32)[:, None]
        v = variables(kernel=[3, 3, 3, 2, 4], second=[2, 2, 2, 4, 6], up=[2, 2, 2, 3, 6], out=[3 * 4 * 5, 2])

        def logits(x, v):
            h = tf.nn.relu(tf.nn.conv3d(x, v['kernel'], [1, 1, 1, 1, 1], 'SAME'))
            h = tf.nn.max_pool3d(h, 2, 2, 'SAME')
            h = tf.nn.avg_pool3d(tf.nn.conv3d(h, v['second'], [1, 1, 1, 1, 1], 'VALID'), 2, 1, 'SAME')
            up = tf.nn.conv3d_transpose(h, v['up'], [4, 4, 6, 6, 3], [1, 2, 2, 2, 1], 'SAME')
            plane = tf.reduce_mean(up, 1)
            maxima, rows, columns = tf.nn.fractional_max_pool(plane, [1., 1.44, 1.2, 1.], pseudo_random=True, overlapping=True, seed=3)
            means = tf.nn.fractional_avg_pool(plane, [1., 1.44, 1.2, 1.], seed=4)[0]
            flat = tf.reshape(maxima + means, [4, 3 * 4 * 5])
            return flat @ v['out'], rows, columns, maxima
        made, *seen = form.function(logits)(tf.constant(x), {n: t.read_value() for n, t in v.items()})
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 0, 1, 1], logits=made))
        losses = train(s, loss, 6, optimizer=tf1.train.AdamOptimizer(0.03))
        return {'losses': falls(losses), 'seen': s.run(seen)}
    check(program, rtol=1e-3, atol=1e-4)


def test_odd_pools_and_convolutions(check):
    """Dilation, morphology, arg max, local responses, patches: values and gradients."""
    def program(s, form):
        x = tf1.placeholder(tf.float32, [2, 7, 9, 3])

        def look(x):
            kernel = tf.constant(np.random.default_rng(12).standard_normal([3, 3, 3]).astype(np.float32))
            pooled, where = tf.nn.max_pool_with_argmax(x, 3, 2, 'SAME')
            ys = {'dilation': tf.nn.dilation2d(x, kernel, [1, 1, 1, 1], 'SAME', 'NHWC', [1, 2, 2, 1]),
                  'erosion': tf.nn.erosion2d(x, kernel, [1, 2, 2, 1], 'VALID', 'NHWC', [1, 1, 1, 1]),
                  'pooled': pooled, 'lrn': tf.nn.local_response_normalization(x, 1, 1., 0.5, 0.7),
                  'atrous': tf.nn.atrous_conv2d(x, kernel[..., None], 2, 'SAME'),
                  'patches': tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], 'VALID')}
            slopes = [tf.gradients(tf.reduce_sum(y * y), x)[0] for y in ys.values()]
            return ys, slopes, where
        return s.run(form.function(look)(x), {x: np.random.default_rng(13).standard_normal([2, 7, 9, 3]).astype(np.float32)})
    check(program, rtol=1e-4, atol=1e-4)
