"""Steps, or nodes of one step, that are put together to batches. What nodes of one step share by a name comes in any order: what is
fetched does not depend on it."""
import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1


def attrs(name, **more):
    return {'num_batch_threads': 1, 'max_batch_size': 4, 'batch_timeout_micros': 1000, 'shared_name': name, **more}


def rows(p, count, dtype, inner):
    values = np.arange(count * int(np.prod(inner))).reshape((count, *inner))
    return p.hide(values.astype('S9').astype(object) if dtype == 'string' else values.astype(dtype))


@program(30)
def batch_alone(p):
    """A step that nobody joins gets its own rows, padded; bad sizes."""
    dtype, inner = p.pick('float32', 'int8', 'bool', 'complex64', 'string'), p.pick((), (2,), (3, 0))
    count = int(p.rng.integers(0, 6))
    more = p.pick({}, {'allowed_batch_sizes': [1, 3, 4]}, {'allowed_batch_sizes': [3, 2, 4]}, {'allowed_batch_sizes': [2, 3]},
                  {'max_batch_size': 0}, {'max_batch_size': -1}, {'batch_timeout_micros': -1}, {'num_batch_threads': 0},
                  {'max_enqueued_batches': 0})
    inputs = [rows(p, count, dtype, inner), rows(p, p.pick(count, count, count + 1), 'int32', p.pick((), (1,)))]
    batch = raw.Batch(in_tensors=inputs, grad_timeout_micros=1000, **{**attrs('b', **more)})
    p.step(*batch.batched_tensors)
    if count:
        p.step(batch.batch_index[:, 1:], batch.batch_index[:, 0] - batch.id)
        p.step(raw.Unbatch(batched_tensor=batch.batched_tensors[0], batch_index=batch.batch_index, id=batch.id, timeout_micros=1000))
    p.step(*raw.Batch(in_tensors=[p.hide(np.float32(1))], grad_timeout_micros=1000, **attrs('c')).batched_tensors)


@program(12)
def batch_together(p):
    """Nodes of one name fill a batch, and get their rows back, and the gradients of all of them."""
    sizes = p.pick([1, 3], [2, 2], [1, 1, 2])
    results, grads = [], []
    for i, size in enumerate(sizes):
        batch = raw.Batch(in_tensors=[p.hide(np.float32(np.arange(size) + 10 * i))], grad_timeout_micros=1000,
                          **attrs('b', batch_timeout_micros=10**8))
        unbatched = raw.Unbatch(batched_tensor=batch.batched_tensors[0] * 2, batch_index=batch.batch_index, id=batch.id,
                                timeout_micros=10**8, shared_name='u')
        results.append(unbatched)
        grads.append(raw.UnbatchGrad(original_input=batch.batched_tensors[0], batch_index=batch.batch_index, grad=unbatched + 1,
                                     id=batch.id, shared_name='g'))
    p.step(*results)
    p.step(tf.sort(tf.concat(grads, 0)), *results)


@program(24)
def unbatch_alone(p):
    """Rows by id: of the step's own batch, of one before, of nobody; bad indices."""
    data, index, key = tf1.placeholder(tf.float32, None), tf1.placeholder(tf.int64, None), tf1.placeholder(tf.int64, None)
    unbatch = raw.Unbatch(batched_tensor=data, batch_index=index, id=key, timeout_micros=3 * 10**7, shared_name='u')
    hasty = raw.Unbatch(batched_tensor=data, batch_index=index, id=key, timeout_micros=int(p.pick(-1, 0, 2000)), shared_name='h')
    nothing = np.zeros((0, 3), np.int64)
    x = np.float32(p.rng.standard_normal(p.pick((3,), (3, 2))))

    def feeds(i, k, d=x):
        return {data: d, index: i, key: k}

    p.step(unbatch, feeds=feeds([[7, 0, 2], [8, 2, 3]], 7))
    p.step(unbatch, feeds=feeds(nothing, 8))
    p.step(unbatch, feeds=feeds([[7, 0, 3]], 7))
    p.step(hasty, feeds=feeds(nothing, 9))
    for i in p.pick([[[7, 0, 4]], [[7, 1, 3]], [[7, 0]]], [[[[7, 0, 1]]], [[7, 0, 1]] * 4]):
        p.step(unbatch, feeds=feeds(i, 7))
    p.step(unbatch, feeds=feeds([[7, 0, 1]], p.pick([7], [7, 8])))


@program(16)
def unbatch_grads(p):
    """Gradients of steps before are kept for the batch that wants them."""
    original, index = tf1.placeholder(tf.float32, None), tf1.placeholder(tf.int64, None)
    grad, key = tf1.placeholder(tf.float32, None), tf1.placeholder(tf.int64, None)
    gathered = raw.UnbatchGrad(original_input=original, batch_index=index, grad=grad, id=key, shared_name='g')

    def step(o, i, g, k):
        p.step(gathered, feeds={original: np.float32(o), index: np.int64(i), grad: np.float32(g), key: np.int64(k)})

    step(np.zeros((0, 2)), np.zeros((0, 3)), [[5, 6]], 1)
    step(np.zeros((0, 2)), np.zeros((0, 3)), [[7, 8], [9, 10]], 2)
    step(np.ones((3, 2)), [[1, 0, 1], [2, 1, 3], [3, 3, 4]], [[1, 2]], 3)
    step(np.zeros((0, 2)), np.zeros((0, 3)), [[5, 6]], 1)
    step(np.zeros((0, 2)), np.zeros((0, 3)), [[5, 6]], 1)
    step(np.ones((1, 2)), p.pick(np.zeros((0, 3)), [4, 0, 1], [[4, 0]], [[4, 0, 1], [4, 0, 1]]), [[1, 2]], 4)
    step(np.ones((1, 2)), [[5, 0, 1]], [[1, 2]], p.pick([5], [5, 6]))


def batch_size(x):
    """Shows each row how many there were."""
    return x * 0 + tf.cast(tf.shape(x)[0], x.dtype)


def function_of(f, *specs):
    return tf.function(f, input_signature=[tf.TensorSpec(None, t) for t in specs], autograph=False).get_concrete_function()


def call(f, inputs, name, captured=(), outputs=(tf.float32,), **more):
    return raw.BatchFunction(in_tensors=inputs, captured_tensors=list(captured), f=f, Tout=list(outputs), **attrs(name, **more))


@program(30)
def batch_function(p):
    """Calls of one node: padding, splitting, sizes that are not allowed."""
    f = function_of(batch_size, tf.float32)
    x = tf1.placeholder(tf.float32, None)
    more = p.pick({}, {'allowed_batch_sizes': [1, 4]}, {'enable_large_batch_splitting': True, 'max_batch_size': 5, 'allowed_batch_sizes': [1, 3]},
                  {'enable_large_batch_splitting': True, 'max_batch_size': 3}, {'allowed_batch_sizes': [1, 3]},
                  {'enable_large_batch_splitting': True, 'allowed_batch_sizes': [1, 8]},
                  {'low_priority_max_batch_size': 8, 'low_priority_allowed_batch_sizes': [2, 8]}, {'batch_padding_policy': 'BATCH_DOWN'})
    y = call(f, [x], 'f', **more)
    for count in p.rng.permutation(7)[:3]:
        p.step(*y, feeds={x: np.ones(p.pick((count,), (count, 2)), np.float32)})
    p.step(*y, feeds={x: np.float32(1)})


@program(10)
def batch_function_adaptive(p):
    """Without a number of threads it is the runtime that says how many, and large inputs are split."""
    x = tf1.placeholder(tf.float32, None)
    y = call(function_of(batch_size, tf.float32), [x], 'f', num_batch_threads=p.pick(0, -1), allowed_batch_sizes=[2, 4])
    for count in p.rng.permutation(7)[:3]:
        p.step(*y, feeds={x: np.ones(count, np.float32)})


@program(20)
def batch_function_results(p):
    """What the function makes of a batch must be as many rows; its errors are the step's."""
    x = p.hide(np.float32([1, p.pick(2, np.nan)]))
    one = function_of(lambda x: x, tf.float32)
    more = function_of(lambda x, c: (x + c, tf.strings.as_string(x)), tf.float32, tf.float32)
    p.step(*call(more, [x], 'a', captured=[p.hide(np.float32(10))], outputs=(tf.float32, tf.string)))
    p.step(*call(more, [x], 'b', outputs=(tf.float32, tf.string)))
    p.step(*call(one, [x], 'c', captured=[p.hide(np.float32(10))]))
    p.step(*call(one, [x], 'd', outputs=p.pick([tf.float32] * 2, [tf.int32])))
    p.step(*call(function_of(tf.reduce_sum, tf.float32), [x], 'e'))
    p.step(*call(function_of(lambda x: x[:1], tf.float32), [x], 'g'))
    p.step(*call(function_of(lambda x: tf.debugging.check_numerics(x, 'bad'), tf.float32), [x], 'h'))


@program(12)
def batch_function_together(p):
    """Nodes of one name fill a batch: each gets its own rows, or all the same error."""
    sizes, inner = p.pick([1, 3], [2, 2], [1, 1, 2]), p.pick((), (2,))
    f = function_of(p.pick(lambda x: x * 2 + batch_size(x), lambda x: tf.debugging.check_numerics(x, 'bad'), lambda x: x[1:]), tf.float32)
    inputs = [p.hide(np.float32(np.arange(size * int(np.prod(inner))).reshape(size, *inner) + 10 * i)) for i, size in enumerate(sizes)]
    if p.rng.integers(2):
        inputs[0] = inputs[0] / 0
    p.step(*[call(f, [x], 'f', batch_timeout_micros=10**8)[0] for x in inputs])
