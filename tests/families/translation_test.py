"""A toy translator: an encoder and a decoder with attention, trained to reverse its input, then searched with beams."""
import numpy as np
import pytest

from clusters import tf, tf1
from compare import falls, train, variables

pytestmark = pytest.mark.parametrize('check', ['functions', 'tasks'], indirect=True)  # older and newer loops
WORDS, UNITS, LENGTH, BEAMS, END = 6, 12, 4, 3, 5


def cell(x, h, w):
    z, n = tf.split(tf.concat([x, h], -1) @ w, 2, -1)
    return h + tf.sigmoid(z) * (tf.tanh(n) - h)


def encode(source, p):
    """TensorArrays in a loop: the states of all steps, batch first."""
    x = tf.gather(p['embedding'], source)
    states = tf.TensorArray(tf.float32, LENGTH, element_shape=[None, UNITS])

    def body(i, h, states):
        h = cell(x[:, i], h, p['encoder'])
        return i + 1, h, states.write(i, h)
    _, last, states = tf1.while_loop(lambda i, *_: i < LENGTH, body, [tf.constant(0), tf.zeros([tf.shape(source)[0], UNITS]), states])
    return tf.transpose(states.stack(), [1, 0, 2]), last


def decode_step(word, h, memory, p):
    """Logits of the next word, and the state; rows of memory belong to rows of h."""
    h = cell(tf.gather(p['embedding'], word), h, p['decoder'])
    weights = tf.nn.softmax(tf.einsum('bth,bh->bt', memory, h))
    seen = tf.concat([h, tf.einsum('bt,bth->bh', weights, memory)], 1)
    return seen @ p['out'], h


def teach(source, target, p):
    memory, h = encode(source, p)
    words = tf.concat([tf.fill([tf.shape(source)[0], 1], END), target[:, :-1]], 1)

    def body(i, h, losses):
        logits, h = decode_step(words[:, i], h, memory, p)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target[:, i], logits=logits)
        return i + 1, h, losses.write(i, loss)
    losses = tf.TensorArray(tf.float32, LENGTH, element_shape=[None])
    losses = tf1.while_loop(lambda i, *_: i < LENGTH, body, [tf.constant(0), h, losses])[2]
    return tf.reduce_mean(losses.stack())


def search(source, p):
    """Beams with scores, their words and back-pointers in TensorArrays; then a walk back."""
    batch = tf.shape(source)[0]
    memory, h = encode(source, p)
    memory, h = (tf.repeat(t, BEAMS, axis=0) for t in (memory, h))
    first = tf.tile(tf.constant([[0.] + [-1e9] * (BEAMS - 1)]), [batch, 1])
    start = tf.range(batch)[:, None] * BEAMS

    def body(i, h, words, scores, chosen, parents):
        logits, h = decode_step(tf.reshape(words, [-1]), h, memory, p)
        total = scores[:, :, None] + tf.reshape(tf.nn.log_softmax(logits), [batch, BEAMS, WORDS])
        scores, best = tf.math.top_k(tf.reshape(total, [batch, BEAMS * WORDS]), BEAMS)
        parent, words = best // WORDS, best % WORDS
        h = tf.gather(h, tf.reshape(start + parent, [-1]))
        return i + 1, h, words, scores, chosen.write(i, words), parents.write(i, parent)

    def more(i, h, words, *_):
        return tf.logical_and(i < LENGTH, tf.reduce_any(tf.not_equal(words, -1)))
    arrays = [tf.TensorArray(tf.int32, LENGTH, element_shape=[None, BEAMS]) for _ in range(2)]
    out = tf1.while_loop(more, body, [tf.constant(0), h, tf.fill([batch, BEAMS], END), first, *arrays])
    chosen, parents = out[4].stack(), out[5].stack()

    def back(pointer, at):
        words, parent = at
        return tf.gather(parent, pointer[0], batch_dims=1), tf.gather(words, pointer[0], batch_dims=1)
    same = tf.tile(tf.range(BEAMS)[None], [batch, 1])
    walked = tf.scan(back, (chosen, parents), (same, same), reverse=True)[1]
    return walked, out[3]


def test_translation(check):
    def program(s, form):
        rng = np.random.default_rng(7)
        source, target = tf1.placeholder(tf.int32, [None, LENGTH]), tf1.placeholder(tf.int32, [None, LENGTH])
        v = variables(embedding=[WORDS, UNITS], encoder=[2 * UNITS, 2 * UNITS], decoder=[2 * UNITS, 2 * UNITS], out=[2 * UNITS, WORDS])
        values = {name: variable.read_value() for name, variable in v.items()}
        loss = form.function(teach)(source, target, values)
        words = rng.integers(0, END, [16, LENGTH])
        losses = train(s, loss, 10, {source: words, target: words[:, ::-1]}, tf1.train.AdamOptimizer(0.05))
        walked, scores = s.run(form.function(search)(source, values), {source: words[:4]})
        return {'losses': falls(losses), 'walked': walked, 'scores': scores}
    # Trained through loops; the beams are far enough apart that all choose the same words.
    check(program, rtol=1e-3, atol=1e-3)
