"""Small training graphs as TensorFlow's users write them, one function a model, each with any of five optimizers.

A graph needs no feed: every step draws fresh data from seeded random ops, and fixed "teachers" (constants) make it
learnable. `init` fills the variables, `step` trains once, `loss:0` is the loss before that update. The update waits for the
loss and all gradients, so that nothing may be read half before and half after it.

Models are kept from rounding that only looks like a difference: no parameter has a gradient that is zero but for rounding
(a bias before batch normalisation, a key bias in attention), which Adam and RMSProp would blow up to full size.
"""
import math
import re
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()


class Builder:
    """Makes the variables and the data of one model; numbers them, so that each random op has a seed of its own."""

    def __init__(self, use_resource):
        self.use_resource = use_resource
        self.count = 0
        self.extra_updates = []  # what runs with the step besides the optimizer: moving averages

    def seed(self):
        self.count += 1
        return self.count

    def variable(self, initial, trainable=True):
        return v1.Variable(initial, trainable=trainable, name=f'v{self.seed()}', use_resource=self.use_resource)

    def weights(self, shape, stddev=None):
        stddev = stddev or (1.0 / max(math.prod(shape[:-1]), 1)) ** 0.5
        return self.variable(v1.truncated_normal(shape, stddev=stddev, seed=self.seed()))

    def zeros(self, shape):
        return self.variable(tf.zeros(shape))

    def ones(self, shape):
        return self.variable(tf.ones(shape))

    def normal(self, shape):
        return v1.random_normal(shape, seed=self.seed())

    def uniform(self, shape):
        return v1.random_uniform(shape, seed=self.seed())

    def integers(self, shape, limit, dtype=tf.int32):
        return v1.random_uniform(shape, 0, limit, dtype, seed=self.seed())

    def constant(self, *shape):
        """A fixed random array, part of the graph."""
        return tf.constant(np.random.RandomState(self.seed()).randn(*shape).astype(np.float32))

    def labels(self, x, classes):
        """The class that a fixed linear teacher gives to each row."""
        x = tf.reshape(x, [x.shape[0], -1])
        return tf.argmax(tf.matmul(x, self.constant(x.shape[1], classes)), 1, output_type=tf.int32)

    def images(self, shape, classes):
        """Noisy copies of fixed pictures, and which picture each is."""
        labels = self.integers(shape[:1], classes)
        return tf.gather(self.constant(classes, *shape[1:]), labels) + self.normal(shape), labels

    def dense(self, x, units, activation=None):
        y = tf.nn.bias_add(tf.matmul(x, self.weights([x.shape[-1], units])), self.zeros([units]))
        return activation(y) if activation else y

    def conv(self, x, filters, size, stride=1):
        return tf.nn.conv2d(x, self.weights([size, size, x.shape[-1], filters], 0.2), stride, 'SAME')

    def fused_batch_norm(self, x, momentum=0.9):
        channels = [x.shape[-1]]
        mean = self.variable(tf.zeros(channels), trainable=False)
        variance = self.variable(tf.ones(channels), trainable=False)
        y, m, v = v1.nn.fused_batch_norm(x, self.ones(channels), self.zeros(channels), is_training=True)
        self.extra_updates += [v1.assign_sub(mean, (mean - m) * (1 - momentum)),
                               v1.assign_sub(variance, (variance - v) * (1 - momentum))]
        return y

    def batch_norm(self, x):
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        return tf.nn.batch_normalization(x, mean, variance, self.zeros([x.shape[-1]]), self.ones([x.shape[-1]]), 1e-3)

    def layer_norm(self, x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, self.zeros([x.shape[-1]]), self.ones([x.shape[-1]]), 1e-5)


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def pool(x):
    return tf.nn.max_pool2d(x, 2, 2, 'SAME')


def flat(x):
    return tf.reshape(x, [x.shape[0], -1])


# --- Feed-forward models -------------------------------------------------------------------------------------------------

def mlp(b):
    x = b.normal([32, 20])
    h = b.dense(b.dense(x, 32, tf.nn.relu), 16, tf.tanh)
    return cross_entropy(b.labels(x, 5), b.dense(h, 5))


def lenet(b):
    """Convolutions with fused batch normalisation and its moving averages, dropout before the last layer.

    ReLU right after the normalisation: a unit at 1e-6 may be off in one system and on in the other, and the next losses then
    differ by 1e-3 and more. Of 24 seeds one does so within 50 steps, in TensorFlow with one thread against two, too; not this.
    """
    x, labels = b.images([16, 14, 14, 1], 4)
    h = pool(tf.nn.relu(b.fused_batch_norm(b.conv(x, 6, 5))))
    h = pool(tf.nn.relu(b.fused_batch_norm(b.conv(h, 12, 5))))
    h = tf.nn.dropout(b.dense(flat(h), 32, tf.nn.relu), rate=0.4, seed=b.seed())
    return cross_entropy(labels, b.dense(h, 4))


def resnet(b):
    """A block that halves the image and one that keeps it, batch normalisation by moments, weight decay."""
    x, labels = b.images([8, 16, 16, 3], 3)
    h = b.conv(x, 8, 3)
    for filters, stride in ((12, 2), (12, 1)):
        shortcut = h if stride == 1 else b.conv(h, filters, 1, stride)
        inner = tf.nn.relu(b.batch_norm(b.conv(h, filters, 3, stride)))
        h = tf.nn.elu(b.batch_norm(b.conv(inner, filters, 3)) + shortcut)
    logits = b.dense(tf.reduce_mean(h, [1, 2]), 3)
    decay = tf.add_n([tf.nn.l2_loss(v) for v in v1.trainable_variables() if len(v.shape) > 1])
    return cross_entropy(labels, logits) + 1e-3 * decay


def vae(b):
    """Bernoulli variational autoencoder: the reparametrised sample is a random op between two networks."""
    x = tf.cast(b.uniform([32, 24]) < tf.sigmoid(tf.matmul(b.normal([32, 3]), b.constant(3, 24))), tf.float32)
    h = b.dense(x, 24, tf.nn.softplus)
    mean, log_variance = tf.split(b.dense(h, 8), 2, 1)
    z = mean + tf.exp(0.5 * log_variance) * b.normal(mean.shape)
    logits = b.dense(b.dense(z, 24, tf.nn.softplus), 24)
    likelihood = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    divergence = 0.5 * tf.reduce_sum(tf.exp(log_variance) + tf.square(mean) - 1.0 - log_variance, 1)
    return tf.reduce_mean(likelihood + divergence)


# --- Sparse models -------------------------------------------------------------------------------------------------------

def sampled_softmax(b):
    """Skip-gram-like: embeddings in two shards, softmax over a sample of the vocabulary; all gradients sparse."""
    vocabulary, size = 200, 16
    shards = [b.weights([vocabulary // 2, size], 0.3) for _ in range(2)]
    words = b.integers([32], vocabulary, tf.int64)
    context = tf.reshape((words * 7 + 3) % vocabulary, [-1, 1])
    h = v1.nn.embedding_lookup(shards, words, partition_strategy='div')
    losses = v1.nn.sampled_softmax_loss(b.weights([vocabulary, size], 0.3), b.zeros([vocabulary]), labels=context, inputs=h,
                                        num_sampled=20, num_classes=vocabulary, seed=b.seed())
    return tf.reduce_mean(losses)


def wide_deep(b):
    """String features hashed and crossed into a linear model; ragged bags of ids and numbers into a deep one."""
    rows, buckets = 32, 50
    city, device = b.integers([rows], 20), b.integers([rows], 10)
    crossed = tf.strings.to_hash_bucket_fast(tf.strings.join([tf.as_string(city), tf.as_string(device)], '_x_'), buckets)
    wide = tf.gather(b.zeros([buckets, 1]), crossed) + tf.gather(b.zeros([20, 1]), city)

    lengths = b.integers([rows], 4) + 1
    present = tf.where(tf.sequence_mask(lengths, 4))
    ids = tf.gather_nd(b.integers([rows, 4], 40, tf.int64), present)
    bags = tf.SparseTensor(present, ids, [rows, 4])
    embedded = v1.nn.embedding_lookup_sparse(b.weights([40, 8], 0.3), bags, None, combiner='mean')
    numbers = b.normal([rows, 4])
    x = tf.concat([tf.reshape(embedded, [rows, 8]), tf.one_hot(device, 10), tf.math.log1p(tf.square(numbers))], 1)
    deep = b.dense(b.dense(b.dense(x, 24, tf.nn.relu), 12, tf.nn.selu), 1)

    clicked = tf.cast(tf.sin(tf.cast(city * 3 + device, tf.float32)) + numbers[:, 0] > 0.3, tf.float32)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=tf.squeeze(wide + deep, 1)))


# --- Recurrent models ----------------------------------------------------------------------------------------------------

def lstm_cell(w, bias, x, c, h):
    i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), bias), 4, 1)
    c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.sigmoid(o) * tf.tanh(c)


def recurrent(b, x, units, lengths=None):
    """Runs an LSTM over |x|, time first; a row stays as it is after its length. Returns all outputs and the last."""
    steps, batch, inputs = x.shape
    w, bias = b.weights([inputs + units, 4 * units]), b.zeros([4 * units])
    xs = tf.TensorArray(tf.float32, steps).unstack(x)

    def body(t, c, h, ys):
        next_c, next_h = lstm_cell(w, bias, xs.read(t), c, h)
        if lengths is not None:
            alive = tf.tile(tf.expand_dims(t < lengths, 1), [1, units])
            next_c, next_h = tf.where(alive, next_c, c), tf.where(alive, next_h, h)
        return t + 1, next_c, next_h, ys.write(t, next_h)

    start = (0, tf.zeros([batch, units]), tf.zeros([batch, units]), tf.TensorArray(tf.float32, steps))
    _, _, last, ys = v1.while_loop(lambda t, *_: t < steps, body, start)
    outputs = ys.stack()
    outputs.set_shape([steps, batch, units])
    return outputs, last


def lstm(b):
    """Two layers over sequences of different lengths; the label depends on the whole of a sequence."""
    x = b.normal([8, 16, 6])
    lengths = b.integers([16], 5) + 4
    h, _ = recurrent(b, x, 12, lengths)
    _, last = recurrent(b, h, 10, lengths)
    return cross_entropy(b.labels(tf.reduce_mean(x, 0), 4), b.dense(last, 4))


def seq2seq(b):
    """Reverses sequences: an LSTM encoder, a decoder with additive attention and teacher forcing, clipped gradients."""
    steps, batch, vocabulary, units = 6, 12, 12, 16
    source = b.integers([steps, batch], vocabulary)
    target = tf.reverse(source, [0])
    previous = tf.concat([tf.zeros([1, batch], tf.int32), target[:-1]], 0)
    table = b.weights([vocabulary, 8], 0.5)
    memory, _ = recurrent(b, tf.nn.embedding_lookup(table, source), units)
    keys = tf.einsum('tbu,uv->tbv', memory, b.weights([units, units]))

    w, bias = b.weights([8 + 2 * units, 4 * units]), b.zeros([4 * units])
    query_weights, score_weights = b.weights([units, units]), b.weights([units], 0.5)
    inputs = tf.TensorArray(tf.float32, steps).unstack(tf.nn.embedding_lookup(table, previous))

    def body(t, c, h, context, ys):
        c, h = lstm_cell(w, bias, tf.concat([inputs.read(t), context], 1), c, h)
        scores = tf.reduce_sum(tf.tanh(keys + tf.matmul(h, query_weights)) * score_weights, 2)
        attention = tf.transpose(tf.nn.softmax(tf.transpose(scores)))
        context = tf.reduce_sum(memory * tf.expand_dims(attention, 2), 0)
        return t + 1, c, h, context, ys.write(t, tf.concat([h, context], 1))

    zero = tf.zeros([batch, units])
    start = (0, zero, zero, zero, tf.TensorArray(tf.float32, steps))
    outputs = v1.while_loop(lambda t, *_: t < steps, body, start)[4].stack()
    logits = b.dense(tf.reshape(outputs, [steps * batch, 2 * units]), vocabulary)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(target, [-1]), logits=logits)
    weights = tf.cast(tf.reshape(target, [-1]) > 0, tf.float32)  # 0 is padding
    return tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)


# --- Attention -----------------------------------------------------------------------------------------------------------

def transformer(b):
    """A causal layer (multi-head attention, feed-forward, both residual) that predicts the token two places back."""
    batch, steps, size, heads, vocabulary = 8, 10, 16, 4, 12
    tokens = b.integers([batch, steps], vocabulary)
    x = tf.nn.embedding_lookup(b.weights([vocabulary, size], 0.5), tokens) + b.weights([steps, size], 0.5)

    normal = b.layer_norm(x)
    q, k, v = (tf.einsum('bts,shd->bhtd', normal, b.weights([size, heads, size // heads], 0.25)) for _ in range(3))
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(size // heads)
    mask = tf.linalg.band_part(tf.ones([steps, steps]), -1, 0)
    attention = tf.nn.softmax(scores + (1.0 - mask) * -1e9)
    attention = tf.nn.dropout(attention, rate=0.1, seed=b.seed())
    x += tf.einsum('bhtd,hds->bts', tf.matmul(attention, v), b.weights([heads, size // heads, size], 0.25))

    normal = tf.reshape(b.layer_norm(x), [-1, size])
    x += tf.reshape(b.dense(b.dense(normal, 32, tf.nn.gelu), size), x.shape)
    logits = b.dense(tf.reshape(b.layer_norm(x)[:, 2:], [-1, size]), vocabulary)
    target = 0.9 * tf.one_hot(tf.reshape(tokens[:, :-2], [-1]), vocabulary) + 0.1 / vocabulary
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=logits))


# --- Training ------------------------------------------------------------------------------------------------------------

def clipped(gradients):
    values, _ = tf.clip_by_global_norm(gradients, 1.0)
    return values


def warm_up(global_step):
    """Learning rate that rises for ten steps and then falls with the root of their number, as for transformers."""
    step = tf.cast(global_step, tf.float32) + 1.0
    return tf.minimum(step / 10.0, tf.math.rsqrt(step / 10.0))


def train(loss, optimizer, variables=None, clip=None, global_step=None):
    variables = variables or v1.trainable_variables()
    gradients = [g for g, _ in optimizer.compute_gradients(loss, variables)]
    if clip: gradients = clip(gradients)
    flat_gradients = tf.nest.flatten(gradients, expand_composites=True)
    with tf.control_dependencies([loss, *flat_gradients]):
        return optimizer.apply_gradients(zip(gradients, variables), global_step)


def gan(b, make_optimizer, rate):
    """The discriminator learns first; the generator's loss then sees what it has learnt. Each has its own optimizer."""
    batch = 16
    g_weights = [b.weights([4, 4 * 4 * 6]), b.weights([3, 3, 4, 6], 0.2), b.weights([3, 3, 4, 1], 0.2), b.zeros([1])]
    d_weights = [b.weights([3, 3, 1, 6], 0.3), b.zeros([6]), b.weights([4 * 4 * 6, 1]), b.zeros([1])]

    def generate():
        dense, up, out, bias = g_weights
        h = tf.nn.relu(tf.reshape(tf.matmul(b.normal([batch, 4]), dense), [batch, 4, 4, 6]))
        h = tf.nn.leaky_relu(tf.nn.conv2d_transpose(h, up, [batch, 8, 8, 4], 2, 'SAME'))
        return tf.tanh(tf.nn.bias_add(tf.nn.conv2d(h, out, 1, 'SAME'), bias))

    def discriminate(image):
        conv, conv_bias, dense, bias = d_weights
        h = tf.nn.leaky_relu(tf.nn.bias_add(tf.nn.conv2d(image, conv, 2, 'SAME'), conv_bias))
        return tf.nn.bias_add(tf.matmul(flat(h), dense), bias)

    def surprise(logits, label):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(logits.shape, label), logits=logits))

    phase = tf.reshape(b.uniform([batch, 1, 1, 1]) * 6.0, [batch, 1, 1, 1])
    real = tf.sin(phase + tf.reshape(tf.linspace(0.0, 6.0, 64), [1, 8, 8, 1]))
    d_loss = surprise(discriminate(real), 0.9) + surprise(discriminate(tf.stop_gradient(generate())), 0.0)
    d_step = train(d_loss, make_optimizer(rate), d_weights)
    with tf.control_dependencies([d_step]):
        g_loss = surprise(discriminate(generate()), 1.0)
        g_step = train(g_loss, make_optimizer(0.5 * rate), g_weights)
    return d_loss + g_loss, g_step


OPTIMIZERS = {  # name: what makes one from a factor of its learning rate
    'sgd': lambda rate: v1.train.GradientDescentOptimizer(0.1 * rate),
    'momentum': lambda rate: v1.train.MomentumOptimizer(0.03 * rate, 0.9),
    'adam': lambda rate: v1.train.AdamOptimizer(0.01 * rate),
    'adagrad': lambda rate: v1.train.AdagradOptimizer(0.05 * rate),
    'rmsprop': lambda rate: v1.train.RMSPropOptimizer(0.02 * rate, momentum=0.5),
}

MODELS = {  # name: builder, variables are resources?, control flow v2?, how to train
    'mlp': (mlp, False, False, {}),
    'lenet': (lenet, True, False, {}),
    'resnet': (resnet, False, False, {}),
    'lstm_v1': (lstm, False, False, {'rate': 3.0}),
    'lstm_v2': (lstm, True, True, {'rate': 3.0}),
    'seq2seq_v1': (seq2seq, True, False, {'clip': clipped, 'rate': 4.0}),
    'seq2seq_v2': (seq2seq, True, True, {'clip': clipped, 'rate': 4.0}),
    'gan': (gan, True, False, {'rate': 0.5}),
    'vae': (vae, False, False, {}),
    'sampled_softmax': (sampled_softmax, False, False, {}),
    'wide_deep': (wide_deep, True, False, {'rate': 2.0}),
    'transformer': (transformer, True, False, {'schedule': warm_up, 'rate': 3.0}),
}


class Layers:
    """Devices as one gives them by hand, `with tf.device` around each layer: a variable begins a layer, which is on the next of
    the devices, and gradients are where their layer is. All else is left to the placer."""

    def __init__(self, devices):
        self.devices, self.count, self.chosen = devices, 0, {}

    def __call__(self, op):
        types = {t.dtype.base_dtype for t in [*op.inputs, *op.outputs]}
        if tf.string in types or tf.resource in types and op.type != 'VarHandleOp' or op.type in ('While', 'StatelessWhile'):
            return ''
        if op.type in ('VariableV2', 'VarHandleOp'):
            self.count += 1
        gradient_of = re.match(r'gradients(?:_\d+)?/(.*)_grad/', op.name)
        if gradient_of:
            return self.chosen.get(gradient_of[1], '')
        self.chosen[op.name] = self.devices[self.count % len(self.devices)]
        return self.chosen[op.name]


def build(model, optimizer, devices=None):
    """Returns the GraphDef of a model trained by an optimizer, its layers in turn on |devices|."""
    builder, use_resource, is_v2, options = MODELS[model]
    rate = options.get('rate', 1.0)
    make_optimizer = OPTIMIZERS[optimizer]
    (v1.enable_control_flow_v2 if is_v2 else v1.disable_control_flow_v2)()
    with tf.Graph().as_default() as graph, v1.device(Layers(devices) if devices else None):
        v1.set_random_seed(1)
        b = Builder(use_resource)
        if builder is gan:
            loss, step = gan(b, make_optimizer, rate)
        else:
            loss = builder(b)
            global_step = v1.train.get_or_create_global_step()
            if 'schedule' in options: rate *= options['schedule'](global_step)
            step = train(loss, make_optimizer(rate), clip=options.get('clip'), global_step=global_step)
        tf.identity(loss, 'loss')
        tf.group(step, *b.extra_updates, name='step')
        tf.group(v1.global_variables_initializer(), name='init')
        return graph.as_graph_def()
