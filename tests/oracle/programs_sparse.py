"""Sparse and ragged tensors: in variants, strings and maps, as matrices, and in small models that learn."""
import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1
CLOSE = dict(rtol=1e-5, atol=1e-6)


def draw(rng, dtype, shape):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == 'c':
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def sparse(rng, dtype, shape, density=0.5):
    """Indices, values and shape, in order."""
    cells = int(np.prod(shape))
    flat = np.sort(rng.choice(cells, int(cells * density), replace=False))
    return np.stack(np.unravel_index(flat, shape), 1).astype(np.int64), draw(rng, dtype, len(flat)), np.array(shape, np.int64)


# ---- sparse tensors on their way ----

@program(30)
def serialized_as_variants(p):
    dtype = p.pick(np.float32, np.float64, np.complex64)
    i, v, s = sparse(p.rng, dtype, (4, 3, 2)[:p.pick(2, 3)])
    parts = [p.maybe_hide(x) for x in (i, v, s)]
    one = raw.SerializeSparse(sparse_indices=parts[0], sparse_values=parts[1], sparse_shape=parts[2], out_type=tf.variant)
    many = raw.SerializeManySparse(sparse_indices=parts[0], sparse_values=parts[1], sparse_shape=parts[2], out_type=tf.variant)
    p.step(*raw.DeserializeSparse(serialized_sparse=one, dtype=dtype), tf.shape(many))
    p.step(*raw.DeserializeSparse(serialized_sparse=many, dtype=dtype))
    p.step(*raw.DeserializeSparse(serialized_sparse=tf.stack([one, one]), dtype=dtype))
    p.step(*raw.DeserializeSparse(serialized_sparse=one, dtype=tf.int32))


@program(30)
def tensors_map(p):
    dtype, name = p.pick(np.float32, np.int64), p.pick('', 'map')
    i, v, s = sparse(p.rng, np.float64, (4, 5))
    parts = dict(sparse_indices=p.maybe_hide(i), sparse_values=p.maybe_hide((v * 9).astype(dtype)), sparse_shape=p.maybe_hide(s))
    one = raw.AddSparseToTensorsMap(**parts, shared_name=name, name='one')
    many = raw.AddManySparseToTensorsMap(**parts, shared_name=name, name='many')
    handles = tf1.placeholder(tf.int64, None)
    whose = p.pick('one', 'many')
    with tf1.colocate_with(one if whose == 'one' else many):  # as the client does: a map is of a device
        take = raw.TakeManySparseFromTensorsMap(sparse_handles=handles, dtype=dtype, shared_name=name or whose)
    p.step(one)
    p.step(many)
    p.step(one)
    first = [int(x) for x in p.rng.permutation(6)[:p.pick(1, 2, 3)]]
    for numbers in (first, first, [5, 5], [99], [], [[0]], [0], [1, 2, 3, 4]):
        p.step(*take, feeds={handles: np.array(numbers, np.int64)})


# ---- ragged tensors in variants ----

def ragged(rng, levels, splits_type=np.int64):
    rows, splits = 4, []
    for _ in range(levels):
        splits.append(np.concatenate([[0], np.cumsum(rng.integers(0, 4, rows))]).astype(splits_type))
        rows = int(splits[-1][-1])
    return splits, draw(rng, np.float32, (rows, 2))


@program(60)
def ragged_variants(p):
    levels, kind = p.pick(0, 1, 2, 3), p.pick(np.int32, np.int64)
    splits, v = ragged(p.rng, levels, kind)
    splits, v = [p.maybe_hide(s) for s in splits], p.maybe_hide(v)
    batched = p.pick(True, False)
    encoded = raw.RaggedTensorToVariant(rt_nested_splits=splits, rt_dense_values=v, batched_input=batched)
    p.step(tf.shape(encoded))
    for rank in (-1, 0, 1, 2):
        for out in (levels, levels + 1):
            try:
                back = raw.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=rank, output_ragged_rank=out,
                                                   Tvalues=tf.float32, Tsplits=kind)
            except ValueError:
                continue
            p.step(back.output_nested_splits, back.output_dense_values)
    twice = tf.stack([encoded, encoded])
    back = raw.RaggedTensorFromVariant(encoded_ragged=twice, input_ragged_rank=-1, output_ragged_rank=levels + 1, Tvalues=tf.float32, Tsplits=kind)
    p.step(back.output_nested_splits, back.output_dense_values)
    wrong = raw.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=-1, output_ragged_rank=levels, Tvalues=tf.int32, Tsplits=kind)
    p.step(wrong.output_dense_values)


@program(20)
def ragged_variant_gradients(p):
    (splits, v), w = ragged(p.rng, 1), draw(p.rng, np.float32, (2,))
    v, w = p.hide(v), p.hide(w)
    encoded = raw.RaggedTensorToVariant(rt_nested_splits=[splits[0]], rt_dense_values=v * w, batched_input=True)
    picked = tf.gather(encoded, p.rng.integers(0, 4, 5))
    back = raw.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=-1, output_ragged_rank=1, Tvalues=tf.float32, Tsplits=tf.int64)
    again = raw.RaggedTensorFromVariant(encoded_ragged=picked, input_ragged_rank=-1, output_ragged_rank=1, Tvalues=tf.float32, Tsplits=tf.int64)
    p.step(back.output_dense_values, again.output_dense_values, again.output_nested_splits)
    p.step(tf1.gradients(tf.square(back.output_dense_values), [v, w]), **CLOSE)


# ---- matrices in compressed rows ----

def matrix(p, parts):
    return raw.SparseTensorToCSRSparseMatrix(indices=parts[0], values=parts[1], dense_shape=parts[2])


def look(p, m, dtype):
    dense = raw.CSRSparseMatrixToDense(sparse_input=m, type=dtype)
    p.step(dense, raw.SparseMatrixNNZ(sparse_matrix=m), *raw.CSRSparseMatrixToSparseTensor(sparse_matrix=m, type=dtype), **CLOSE)
    index = tf1.placeholder(tf.int32, [])
    for k in (0, 1, -1):
        p.step(*raw.CSRSparseMatrixComponents(csr_sparse_matrix=m, index=index, type=dtype), feeds={index: k}, **CLOSE)


@program(40)
def csr_forms(p):
    dtype, shape = p.pick(np.float32, np.float64, np.complex64, np.complex128), p.pick((3, 4), (2, 3, 4), (1, 1), (0, 3), (3, 0))
    parts = sparse(p.rng, dtype, shape)
    m = matrix(p, [parts[0], p.hide(parts[1]), parts[2]])  # TensorFlow wants to know the rank of the matrix
    look(p, m, dtype)
    look(p, raw.DenseToCSRSparseMatrix(dense_input=draw(p.rng, dtype, shape), indices=parts[0]), dtype)
    look(p, raw.SparseMatrixTranspose(input=m, type=dtype, conjugate=p.pick(True, False)), dtype)
    look(p, raw.Conj(input=m), dtype)
    other = tf.float64 if dtype != np.float64 else tf.float32
    p.step(raw.CSRSparseMatrixToDense(sparse_input=m, type=other))
    p.step(raw.CSRSparseMatrixToSparseTensor(sparse_matrix=m, type=other).values)
    p.step(raw.SparseMatrixNNZ(sparse_matrix=raw.SparseMatrixTranspose(input=m, type=other)))


def ways(p, names):
    return {n: bool(p.rng.integers(3) == 0) for n in names}


@program(120)
def csr_times_dense(p):
    dtype, batch = p.pick(np.float32, np.float64, np.complex64, np.complex128), p.pick((), (2,))
    flags = ways(p, ('transpose_a', 'transpose_b', 'adjoint_a', 'adjoint_b', 'transpose_output', 'conjugate_output'))
    a, b = batch + (3, 4), batch + (4, p.pick(1, 2, 5))
    a = batch + a[len(batch):][::-1] if flags['transpose_a'] or flags['adjoint_a'] else a
    b = batch + b[len(batch):][::-1] if flags['transpose_b'] or flags['adjoint_b'] else b
    if p.rng.integers(8) == 0:
        b = p.pick(b + (2,), batch + (7, 7), (3,) + b)
    parts = sparse(p.rng, dtype, a)
    values, dense = p.hide(parts[1]), tf.constant(draw(p.rng, dtype, b))
    try:
        c = raw.SparseMatrixMatMul(a=matrix(p, [parts[0], values, parts[2]]), b=dense, **flags)
    except ValueError:
        return
    p.step(c, **CLOSE)
    if not any(flags.values()):
        p.step(tf1.gradients(c, dense, grad_ys=c), **CLOSE)


@program(60)
def csr_times_csr(p):
    dtype, batch = p.pick(np.float32, np.float64, np.complex64, np.complex128), p.pick((), (2,))
    flags = ways(p, ('transpose_a', 'transpose_b', 'adjoint_a', 'adjoint_b'))
    a, b = (3, 4), (4, p.pick(1, 2, 5))
    a = a[::-1] if flags['transpose_a'] or flags['adjoint_a'] else a
    b = b[::-1] if flags['transpose_b'] or flags['adjoint_b'] else b
    if p.rng.integers(8) == 0:
        b = (7, 7)
    x, y = [sparse(p.rng, dtype, batch + shape, 0.6) for shape in (a, b)]
    x, y = [[i, p.hide(v), t] for i, v, t in (x, y)]
    try:
        c = raw.SparseMatrixSparseMatMul(a=matrix(p, x), b=matrix(p, y), type=dtype, **flags)
    except ValueError:
        return
    p.step(*raw.CSRSparseMatrixToSparseTensor(sparse_matrix=c, type=dtype), **CLOSE)


# ---- models ----

@program(8)
def graph_convolution(p):
    """Two layers of a graph network: the neighbours' mean by a sparse matrix, trained by gradient descent."""
    nodes, features, classes = 12, 5, 3
    i, _, s = sparse(p.rng, np.float32, (nodes, nodes), 0.3)
    links = tf.sparse.SparseTensor(p.maybe_hide(i), np.ones(len(i), np.float32), s)
    degree = tf.sparse.reduce_sum(links, axis=1, keepdims=True)
    links = links / tf.maximum(tf.broadcast_to(degree, [nodes, 1]), 1.0)
    x = tf.constant(draw(p.rng, np.float32, (nodes, features)))
    w = [tf1.get_variable(f'w{k}', initializer=draw(p.rng, np.float32, shape), use_resource=True)
         for k, shape in enumerate([(features, 6), (6, classes)])]
    hidden = tf.nn.relu(tf.sparse.sparse_dense_matmul(links, tf.matmul(x, w[0])))
    logits = tf.sparse.sparse_dense_matmul(links, tf.matmul(hidden, w[1]))
    labels = p.rng.integers(0, classes, nodes).astype(np.int32)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))
    train = tf1.train.GradientDescentOptimizer(0.2).minimize(loss)
    p.step(tf1.global_variables_initializer())
    for _ in range(6):
        p.step(loss, train, rtol=1e-4, atol=1e-5)
    p.step(logits, [v.read_value() for v in w], rtol=1e-3, atol=1e-4)


@program(8)
def attention_over_links(p):
    """Weights of links that are themselves learnt: gradients with respect to the values of sparse tensors."""
    i, v, s = sparse(p.rng, np.float32, (8, 8), 0.4)
    score = tf1.get_variable('score', initializer=v, use_resource=True)
    attention = tf.sparse.softmax(tf.sparse.SparseTensor(i, score.read_value(), s))
    x = tf.constant(draw(p.rng, np.float32, (8, 3)))
    y = tf.sparse.sparse_dense_matmul(attention, x)
    loss = tf.reduce_mean(tf.square(y - x))
    train = tf1.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
    p.step(tf1.global_variables_initializer())
    for _ in range(5):
        p.step(loss, train, rtol=1e-4, atol=1e-5)


@program(8)
def ragged_text(p):
    """Words of sentences of several lengths, looked up in a table; their embeddings' means feed a classifier."""
    words = [f'word{k}' for k in range(9)]
    table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    p.step(raw.LookupTableImportV2(table_handle=table, keys=words, values=np.arange(1, 10)))
    lengths = p.rng.integers(1, 5, 6)
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    text = p.hide(np.array([p.pick(*words, 'rare').encode() for _ in range(splits[-1])], object))
    ids = raw.LookupTableFindV2(table_handle=table, keys=text, default_value=tf.constant(0, tf.int64))
    ids.set_shape([None])
    sentences = tf.RaggedTensor.from_row_splits(ids, p.hide(splits), validate=False)
    embedding = tf1.get_variable('embedding', initializer=draw(p.rng, np.float32, (10, 4)), use_resource=True)
    weights = tf1.get_variable('weights', initializer=draw(p.rng, np.float32, (4, 2)), use_resource=True)
    padded = sentences.to_tensor(default_value=0)
    mean = tf.reduce_sum(tf.gather(embedding, padded), 1) / tf.cast(sentences.row_lengths(), tf.float32)[:, None]
    labels = p.rng.integers(0, 2, 6).astype(np.int32)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=tf.matmul(mean, weights), labels=labels))
    train = tf1.train.GradientDescentOptimizer(0.3).minimize(loss)
    p.step(tf1.global_variables_initializer())
    p.step(padded, sentences.to_sparse().indices, tf.gather(sentences, [3, 0]).flat_values, tf.math.bincount(sentences, axis=-1, minlength=10))
    for _ in range(4):
        p.step(loss, train, rtol=1e-4, atol=1e-5)


@program(6)
def wide_and_crossed(p):
    """Crossed columns, hashed into buckets, with a weight each."""
    def column(width):
        i, v, s = sparse(p.rng, np.float32, (5, width), 0.7)
        return tf.sparse.SparseTensor(i, np.array([b'v%d' % k for k in p.rng.integers(0, 4, len(v))], object), s)
    crossed = tf.sparse.cross_hashed([column(2), column(3)], num_buckets=20)
    weights = tf1.get_variable('weights', initializer=draw(p.rng, np.float32, (20, 1)), use_resource=True)
    filled, is_empty = tf.sparse.fill_empty_rows(crossed, tf.constant(0, tf.int64))
    score = tf1.nn.embedding_lookup_sparse(weights, filled, None, combiner='sum')
    loss = tf.reduce_mean(tf.square(score - 1.0))
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    p.step(tf1.global_variables_initializer())
    p.step(crossed.indices, crossed.values, crossed.dense_shape, is_empty)
    for _ in range(4):
        p.step(loss, train, rtol=1e-4, atol=1e-5)


@program(40)
def csr_cholesky(p):
    """Factors in a given order; in an order of its own each side's factor must give the matrix back."""
    dtype, batch, n = p.pick(np.float32, np.float64, np.complex64, np.complex128), p.pick((), (2,)), p.pick(1, 3, 7)
    x = draw(p.rng, dtype, batch + (n, n)) * (p.rng.random(batch + (n, n)) < 0.3)
    a = x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(n)
    a = (-a if p.rng.integers(8) == 0 else a).astype(dtype)
    indices = np.argwhere(a != 0).astype(np.int64)
    m = matrix(p, [indices, p.hide(a[tuple(indices.T)]), np.array(a.shape, np.int64)])
    loose = dict(rtol=1e-3, atol=1e-4)
    order = np.stack([p.rng.permutation(n) for _ in range(2)]).astype(np.int32) if batch else p.rng.permutation(n).astype(np.int32)
    factor = raw.SparseMatrixSparseCholesky(input=m, permutation=order, type=dtype)
    p.step(*raw.CSRSparseMatrixToSparseTensor(sparse_matrix=factor, type=dtype), **loose)
    own = raw.SparseMatrixOrderingAMD(input=m)
    factor = raw.CSRSparseMatrixToDense(sparse_input=raw.SparseMatrixSparseCholesky(input=m, permutation=own, type=dtype), type=dtype)
    dense = tf.constant(a)
    rows = tf.gather(dense, own, axis=len(batch), batch_dims=len(batch))
    both = tf.gather(rows, own, axis=len(batch) + 1, batch_dims=len(batch))
    p.step(tf.matmul(factor, factor, adjoint_b=True) - both, tf.sort(own), **loose)
