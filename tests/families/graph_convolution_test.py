"""Graph convolution: a sparse adjacency, its attention softmax, products with dense features, trained through their gradients."""
import numpy as np

from clusters import tf, tf1
from compare import error_of, falls, train, variables

NODES = 12


def edges():
    """A ring with chords, and itself; out of order."""
    rng = np.random.default_rng(3)
    pairs = {(i, i) for i in range(NODES)} | {(i, (i + 1) % NODES) for i in range(NODES)} | {(i, (i * 5 + 2) % NODES) for i in range(NODES)}
    pairs |= {(j, i) for i, j in pairs}
    return rng.permutation(np.array(sorted(pairs), np.int64))


def test_training(check):
    def program(s, form):
        rng = np.random.default_rng(4)
        x, labels = rng.standard_normal([NODES, 5]).astype(np.float32), np.arange(NODES) // 6
        indices = tf1.placeholder(tf.int64, [None, 2])
        v = variables(w=[5, 8], u=[8, 2], left=[5, 1], right=[5, 1])

        def logits(indices, x, w, u, left, right):
            scores = tf.gather((x @ left)[:, 0], indices[:, 0]) + tf.gather((x @ right)[:, 0], indices[:, 1])
            graph = tf.sparse.reorder(tf.SparseTensor(indices, tf.nn.leaky_relu(scores), [NODES, NODES]))
            graph = tf.sparse.softmax(graph)
            hidden = tf.nn.relu(tf.sparse.sparse_dense_matmul(graph, x @ w))
            degrees = tf.sparse.reduce_sum(graph, 1)
            out = tf.sparse.sparse_dense_matmul(graph, hidden @ u, adjoint_a=True)
            return out, degrees, tf.sparse.to_dense(tf.sparse.transpose(graph))
        out, degrees, dense = form.function(logits)(indices, tf.constant(x), *[v[n].read_value() for n in ('w', 'u', 'left', 'right')])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=out))
        feeds = {indices: edges()}
        losses = falls(train(s, loss, 8, feeds, tf1.train.AdamOptimizer(0.05)))
        return {'losses': losses, 'after': s.run([out, degrees, dense, v['left']], feeds)}
    check(program)


def test_sparse_values(check):
    """What else such programs do with sparse tensors, and a step whose indices are out of order or of bounds."""
    def program(s, form):
        indices = tf1.placeholder(tf.int64, [None, 2])

        def look(indices):
            a = tf.SparseTensor(indices, tf.cast(tf.range(tf.shape(indices)[0]), tf.float32), [6, 6])
            b = tf.sparse.reorder(tf.SparseTensor(tf.reverse(indices, [0]), tf.ones([tf.shape(indices)[0]]), [6, 6]))
            both = tf.sparse.add(a, b)
            joined = tf.sparse.concat(1, [a, b])
            piece = tf.sparse.slice(a, [1, 0], [3, 4])
            filled, empty = tf.sparse.fill_empty_rows(a, -1.)
            return {'both': both.values, 'joined': joined.indices, 'piece': (piece.indices, piece.values), 'filled': filled.indices,
                    'empty': empty, 'dense': tf.sparse.to_dense(a), 'sum': tf.sparse.reduce_sum(a, 0),
                    'most': tf.sparse.reduce_max(a, 1), 'kept': tf.sparse.retain(a, a.values > 2.).indices,
                    'shaped': tf.sparse.reshape(a, [4, 9]).indices,
                    'split': [p.values for p in tf.sparse.split(sp_input=a, num_split=2, axis=1)],
                    'parts': tf.sparse.segment_mean(tf.reshape(tf.range(12.), [6, 2]), indices[:, 0], tf.cast(indices[:, 0], tf.int32))}
        made = form.function(look)(indices)
        good = np.int64([[0, 1], [0, 5], [2, 2], [3, 0], [3, 3], [5, 4]])
        out = {'good': s.run(made, {indices: good})}
        dense = form.function(lambda i: tf.sparse.to_dense(tf.SparseTensor(i, tf.cast(i[:, 0], tf.float32), [6, 6])))(indices)
        out['errors'] = [error_of(s.run, dense, {indices: bad}) for bad in (good[::-1], good + 3, -good)]
        out['again'] = s.run(dense, {indices: good[:2]})
        return out
    check(program)
