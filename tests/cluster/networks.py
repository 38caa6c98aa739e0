"""Small networks for tests of training: each returns (loss, variables come from the current scope, feeds of a step)."""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def variable(name, shape, use_resource, scale=0.2, seed=7):
    init = tf1.random_uniform_initializer(-scale, scale, seed=seed + sum(map(ord, name))) if scale else tf1.zeros_initializer()
    return tf1.get_variable(name, shape, tf.float32, init, use_resource=use_resource)


def examples(step, shape, classes, seed=3):
    """A batch: noise around a pattern of its class."""
    rng = np.random.RandomState(seed + step)
    patterns = np.random.RandomState(1).randn(classes, *shape[1:]).astype(np.float32)
    y = rng.randint(0, classes, shape[0])
    return (patterns[y] + 0.3 * rng.randn(*shape)).astype(np.float32), y.astype(np.int32)


def cross_entropy(logits, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def two_layers(use_resource=True, batch=8):
    x = tf1.placeholder(tf.float32, [None, 6], 'x')
    y = tf1.placeholder(tf.int32, [None], 'y')
    h = tf.tanh(tf.matmul(x, variable('w0', [6, 5], use_resource)) + variable('b0', [5], use_resource, 0))
    logits = tf.matmul(h, variable('w1', [5, 3], use_resource)) + variable('b1', [3], use_resource, 0)

    def feeds(step):
        return dict(zip((x, y), examples(step, (batch, 6), 3)))
    return cross_entropy(logits, y), feeds


def mlp(use_resource=True, batch=16):
    x = tf1.placeholder(tf.float32, [None, 20], 'x')
    y = tf1.placeholder(tf.int32, [None], 'y')
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, variable('w0', [20, 24], use_resource)), variable('b0', [24], use_resource, 0)))
    h = tf.nn.elu(tf.matmul(h, variable('w1', [24, 16], use_resource)) + variable('b1', [16], use_resource, 0))
    logits = tf.matmul(h, variable('w2', [16, 5], use_resource)) + variable('b2', [5], use_resource, 0)

    def feeds(step):
        return dict(zip((x, y), examples(step, (batch, 20), 5)))
    return cross_entropy(logits, y), feeds


def lenet(use_resource=True, batch=8):
    x = tf1.placeholder(tf.float32, [None, 20, 20, 1], 'x')
    y = tf1.placeholder(tf.int32, [None], 'y')
    h = tf.nn.conv2d(x, variable('k0', [5, 5, 1, 6], use_resource), 1, 'SAME')
    h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(h, variable('b0', [6], use_resource, 0))), 2, 2, 'VALID')
    h = tf.nn.conv2d(h, variable('k1', [5, 5, 6, 10], use_resource), 1, 'VALID')
    h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(h, variable('b1', [10], use_resource, 0))), 2, 2, 'VALID')
    h = tf.reshape(h, [-1, 90])
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, variable('w2', [90, 32], use_resource)), variable('b2', [32], use_resource, 0)))
    logits = tf.nn.bias_add(tf.matmul(h, variable('w3', [32, 4], use_resource)), variable('b3', [4], use_resource, 0))

    def feeds(step):
        return dict(zip((x, y), examples(step, (batch, 20, 20, 1), 4)))
    return cross_entropy(logits, y), feeds


def dynamic_rnn(use_resource=True, batch=6, units=8):
    """An LSTM over sequences of different lengths, unrolled by a loop in the graph."""
    x = tf1.placeholder(tf.float32, [None, None, 5], 'x')
    lengths = tf1.placeholder(tf.int32, [None], 'lengths')
    y = tf1.placeholder(tf.int32, [None], 'y')
    kernel = variable('kernel', [5 + units, 4 * units], use_resource)
    bias = variable('bias', [4 * units], use_resource, 0)
    steps = tf.shape(x)[1]
    inputs = tf1.TensorArray(tf.float32, steps, clear_after_read=False).unstack(tf.transpose(x, [1, 0, 2]))

    def body(t, c, h):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs.read(t), h], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, 1)
        new_c = tf.sigmoid(f + 1.) * c + tf.sigmoid(i) * tf.tanh(j)
        new_h = tf.sigmoid(o) * tf.tanh(new_c)
        is_over = t >= lengths
        return t + 1, tf1.where(is_over, c, new_c), tf1.where(is_over, h, new_h)
    zero = tf.zeros([tf.shape(x)[0], units])
    _, _, h = tf1.while_loop(lambda t, *_: t < steps, body, [tf.constant(0), zero, zero],
                             shape_invariants=[tf.TensorShape([])] + [tf.TensorShape([None, units])] * 2)
    logits = tf.matmul(h, variable('w', [units, 3], use_resource)) + variable('b', [3], use_resource, 0)

    def feeds(step):
        length = 3 + step % 4
        values, classes = examples(step, (batch, 5), 3)
        values = np.repeat(values[:, None], length, 1) * np.linspace(0.5, 1, length, dtype=np.float32)[:, None]
        return {x: values, y: classes, lengths: 1 + np.arange(batch) % length}
    return cross_entropy(logits, y), feeds


def embedding(use_resource=True, batch=12, words=60, width=8, parts=1):
    """Skip-gram: an embedding in |parts| pieces, and a sampled softmax over the words."""
    x = tf1.placeholder(tf.int32, [None], 'x')
    y = tf1.placeholder(tf.int64, [None, 1], 'y')
    partitioner = tf1.fixed_size_partitioner(parts) if parts > 1 else None
    with tf1.variable_scope('words', partitioner=partitioner):
        table = variable('table', [words, width], use_resource, 0.5)
        weights = variable('weights', [words, width], use_resource, 0.5)
    biases = variable('biases', [words], use_resource, 0)
    sampled = tf.random.log_uniform_candidate_sampler(y, 1, 10, True, words, seed=5)
    loss = tf1.nn.sampled_softmax_loss(weights, biases, y, tf.nn.embedding_lookup(table, x), 10, words, sampled_values=sampled,
                                       partition_strategy='div')

    def feeds(step):
        rng = np.random.RandomState(step)
        word = rng.randint(0, words, batch).astype(np.int32)
        return {x: word, y: ((word * 7 + 1) % words)[:, None].astype(np.int64)}
    return tf.reduce_mean(loss), feeds


def batch_norm_net(use_resource=True, batch=8):
    """Convolutions with batch normalisation as trained and as used, and activations of several kinds."""
    x = tf1.placeholder(tf.float32, [None, 8, 8, 3], 'x')
    y = tf1.placeholder(tf.int32, [None], 'y')
    h = tf.nn.conv2d(x, variable('k0', [3, 3, 3, 8], use_resource), 1, 'SAME')
    scale, offset = variable('scale', [8], use_resource), variable('offset', [8], use_resource, 0)
    h = tf.nn.relu(tf1.nn.fused_batch_norm(h, scale, offset)[0])
    h = tf.nn.conv2d(h, variable('k1', [3, 3, 8, 8], use_resource), 1, 'SAME')
    mean, var = tf.constant([0.1] * 8), tf.constant([1.5] * 8)
    h = tf.nn.relu(tf1.nn.fused_batch_norm(h, tf.ones([8]), tf.zeros([8]), mean, var, is_training=False)[0])
    h = tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(h, variable('k2', [3, 3, 8, 4], use_resource), 2, 'VALID'),
                                   variable('b2', [4], use_resource, 0)))
    h = tf.nn.leaky_relu(tf.nn.bias_add(tf.matmul(tf.reshape(h, [-1, 36]), variable('w3', [36, 12], use_resource)),
                                        variable('b3', [12], use_resource, 0)))
    h = tf.tanh(tf.nn.bias_add(tf.matmul(h, variable('w4', [12, 12], use_resource)), variable('b4', [12], use_resource, 0)))
    h = tf.sigmoid(tf.nn.bias_add(tf.matmul(h, variable('w5', [12, 12], use_resource)), variable('b5', [12], use_resource, 0)))
    h = tf.nn.gelu(tf.nn.bias_add(tf.matmul(h, variable('w6', [12, 12], use_resource)), variable('b6', [12], use_resource, 0)), True)
    h = tf.nn.gelu(tf.nn.bias_add(tf.matmul(h, variable('w7', [12, 12], use_resource)), variable('b7', [12], use_resource, 0)), False)
    logits = tf.matmul(h, variable('w8', [12, 4], use_resource, 2.))

    def feeds(step):
        return dict(zip((x, y), examples(step, (batch, 8, 8, 3), 4)))
    return cross_entropy(logits, y), feeds


def train(session, loss, feeds, optimizer, steps=5):
    """The losses of some steps. Variables are made anew."""
    step = optimizer.minimize(loss)
    session.run(tf1.global_variables_initializer())
    return [float(session.run([loss, step], feeds(i))[0]) for i in range(steps)]
