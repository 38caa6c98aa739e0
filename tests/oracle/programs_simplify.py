"""Programs of nodes that an optimizer may take away, and of some that only look like it."""
import numpy as np
import tensorflow as tf

from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1


def fed(p, value):
    """A placeholder of |value|, whose shape is known, or its rank alone, or nothing of it."""
    shape = p.pick(value.shape, value.shape, (None,) * value.ndim, None)
    tensor = tf1.placeholder(value.dtype, shape)
    p.fed[tensor.name] = value
    return tensor


def numbers(p, dtype):
    """All alike, or but for one, or of a shape that makes the result larger."""
    value = np.full(p.pick((), (1,), (3,), (2, 3), (1, 2, 3), (2, 2, 3)), p.pick(0, 1, 2), dtype)
    if value.size > 1 and p.rng.integers(3) == 0:
        value.reshape(-1)[-1] += 1
    return value


@program(60)
def moved(p):
    x = fed(p, p.rng.standard_normal((2, 3)).astype(p.pick(np.float32, np.float64)))
    p.step(raw.Transpose(x=x, perm=p.pick([0, 1], [1, 0], [-2, -1], [-1, 0])),
           raw.Reshape(tensor=x, shape=p.pick([2, 3], [3, 2], [-1], [2, -1], [1, 2, 3])),
           raw.ExpandDims(input=raw.Squeeze(input=x), axis=p.pick(0, -1)),
           raw.Slice(input=x, begin=[0, p.pick(0, 1)], size=p.pick([-1, -1], [2, 2], [1, -1])),
           raw.StridedSlice(input=x, begin=[0, p.pick(0, 1)], end=[2, 3], strides=[1, p.pick(1, 2)]),
           raw.Tile(input=x, multiples=p.pick([1, 1], [1, 2], [2, 1])),
           raw.Pad(input=x, paddings=p.pick([[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [1, 0]])),
           raw.BroadcastTo(input=x, shape=p.pick([2, 3], [1, 2, 3], [2, 2, 3])),
           raw.ConcatV2(values=[x, np.zeros(p.pick((0, 3), (1, 3)), x.dtype.as_numpy_dtype)], axis=0),
           raw.ReverseV2(tensor=x, axis=np.int32(p.pick([], [0], [0, 1]))))


@program(10)
def moved_by_chance(p):
    """The shape is as if nothing moved, but the values that say so are those of the step."""
    x = fed(p, p.rng.standard_normal((2, 3)).astype(np.float32))
    n = int(p.rng.integers(0, 5))
    hidden = tf1.placeholder_with_default(np.int32(n), [])
    x.set_shape([2, 3])
    p.step(raw.Slice(input=x, begin=tf.stack([0, hidden]), size=[2, 3]))
    p.step(raw.Slice(input=x, begin=tf.stack([hidden, 0]), size=[-1, 3]))
    p.step(raw.Reshape(tensor=x, shape=tf.stack([2, hidden])))
    p.step(raw.BroadcastTo(input=x, shape=tf.stack([2, hidden])))
    p.step(raw.Tile(input=x, multiples=tf.stack([1, hidden])))


@program(30)
def transposed(p):
    """Of as many along each axis, so that the shape says nothing."""
    rank = int(p.rng.integers(1, 4))
    x = fed(p, p.rng.standard_normal((2,) * rank).astype(np.float32))
    for _ in range(3):
        p.step(raw.Transpose(x=x, perm=p.rng.permutation(rank).astype(np.int32)), raw.Transpose(x=x, perm=np.arange(rank, dtype=np.int32)))
    p.step(raw.Transpose(x=x, perm=np.arange(rank, dtype=np.int32)[::-1].copy()))


@program(120)
def computed(p):
    dtype = p.pick(np.float32, np.float64, np.int32)
    x = fed(p, (p.rng.integers(1, 5, (2, 3)) * p.pick(1, -1)).astype(dtype))
    a, b, c, d, e = (numbers(p, dtype) for _ in range(5))
    results = [x + a, a + x, x - b, b - x, x * c, c * x, raw.RealDiv(x=x, y=d + 1) if dtype != np.int32 else x // (d + 1),
               raw.Pow(x=x, y=e), -(-x), raw.Neg(x=x) + a, raw.AddN(inputs=[x] * p.pick(1, 2, 3)),
               tf.cast(x, p.pick(dtype, np.float64, np.int32)),
               raw.Sum(input=x, axis=np.int32(p.pick([], [0], [0, 1])), keep_dims=bool(p.rng.integers(2))),
               raw.Max(input=x, axis=np.int32(p.pick([], [1])), keep_dims=bool(p.rng.integers(2)))]
    p.step(*results)


@program(60)
def chosen(p):
    b = fed(p, p.rng.integers(0, 2, (2, 3)).astype(np.bool_))
    known = p.pick(np.bool_(True), np.bool_(False), np.ones((2, 3), np.bool_), np.zeros((2, 3), np.bool_), np.array([True, False, True]))
    x, y = (fed(p, p.rng.standard_normal((2, 3)).astype(np.float32)) for _ in range(2))
    wide = np.broadcast_to(known, (2, 3))
    p.step(raw.LogicalNot(x=raw.LogicalNot(x=b)), raw.LogicalAnd(x=b, y=known), raw.LogicalAnd(x=known, y=b),
           raw.LogicalOr(x=b, y=known), raw.LogicalOr(x=known, y=b), raw.Select(condition=wide, x=x, y=y),
           raw.SelectV2(condition=known, t=x, e=y), raw.SelectV2(condition=b, t=x, e=x),
           raw.All(input=b, axis=np.int32(p.pick([], [0], [0, 1])), keep_dims=bool(p.rng.integers(2))),
           raw.Any(input=b, axis=np.int32(p.pick([], [1])), keep_dims=bool(p.rng.integers(2))))


@program(30)
def dropped(p):
    """What a result does not depend on is read all the same: a variable without a value is an error."""
    v = raw.VariableV2(shape=[3], dtype=tf.int32, shared_name=f'v{p.rng.integers(1 << 30)}')
    x = tf.identity(v)
    if p.rng.integers(2):
        p.step(raw.Assign(ref=v, value=tf.constant(np.int32([1, 2, 3]))))
    threes = raw.Fill(dims=raw.Shape(input=x), value=3)
    p.step(p.pick(lambda: raw.Select(condition=np.zeros(3, np.bool_), x=x, y=threes), lambda: raw.SelectV2(condition=True, t=threes, e=x),
                  lambda: raw.Pow(x=x, y=np.int32(0)), lambda: x * 0, lambda: raw.Shape(input=x), lambda: raw.ZerosLike(x=x))())
