"""Times single ops with Weir and with TensorFlow, one thread each, one after the other; prints the ratios, the worst first.

usage: ops.py [NAME ...] [--elements N] [--seconds S]
A ratio above 1 means that Weir is faster. WEIR_BUILD names another build than build/release.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
import tensorflow as tf

tf1, raw = tf.compat.v1, tf.raw_ops
ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'release')) / 'cli' / 'weir'
COLUMNS = 1000

UNARY = {
    (-2, 2): 'Abs Neg Sign Square Exp Expm1 Sin Cos Tan Atan Sinh Cosh Tanh Asinh Erf Erfc Floor Ceil Round Rint Sigmoid IsNan',
    (.1, 4): 'Sqrt Rsqrt Log Log1p Lgamma Digamma Reciprocal',
    (-.9, .9): 'Asin Acos Atanh Erfinv',
    (.1, .9): 'Ndtri',
    (1.1, 4): 'Acosh',
}
ACTIVATIONS = 'Relu Relu6 Elu Selu Softplus Softsign LeakyRelu'
BINARY = ('Add AddV2 Sub Mul Div RealDiv Maximum Minimum Pow FloorDiv FloorMod SquaredDifference Atan2 Less Equal DivNoNan Xdivy '
          'Xlogy')
REDUCTIONS = 'Sum Mean Max Min Prod'


class Values:
    """Variables of random numbers, of |elements| or of a shape of their own."""

    def __init__(self, elements):
        self.rows = max(elements // COLUMNS, 1)
        self.image = [4, max(elements // 64000, 1), 500, 32]

    def __call__(self, low=-2, high=2, shape=None):
        start = tf1.random_uniform(shape or [self.rows, COLUMNS], low, high, seed=3)
        return tf1.Variable(start, use_resource=True).read_value()

    def ids(self, limit):
        return tf1.random_uniform([self.rows], 0, limit, tf.int32, seed=1)


def cases(v):
    table = {}
    for (low, high), names in UNARY.items():
        table.update({n: lambda n=n, low=low, high=high: getattr(raw, n)(x=v(low, high)) for n in names.split()})
    table.update({n: lambda n=n: getattr(raw, n)(features=v()) for n in ACTIVATIONS.split()})
    table.update({n: lambda n=n: getattr(raw, n)(x=v(.5, 2), y=v(.5, 2)) for n in BINARY.split()})
    table.update({f'{n}{axes}'.replace(' ', ''): lambda n=n, axes=axes: getattr(raw, n)(input=v(.9, 1.1), axis=axes)
                  for n in REDUCTIONS.split() for axes in ([0], [1], [0, 1])})
    table.update({f'ArgMax{axis}': lambda axis=axis: raw.ArgMax(input=v(), dimension=axis) for axis in (0, 1)})
    table.update({f'Cumsum{axis}': lambda axis=axis: tf.cumsum(v(), axis) for axis in (0, 1)})
    table.update({f'Concat{axis}': lambda axis=axis: tf.concat([v(), v()], axis) for axis in (0, 1)})
    table.update({f'Cast_{t.name}': lambda t=t: tf.cast(v(), t) for t in (tf.int32, tf.int64, tf.half, tf.bfloat16, tf.double)})
    table.update({
        'AddRow': lambda: v() + v(shape=[COLUMNS]),
        'AddColumn': lambda: v() + v(shape=[v.rows, 1]),
        'MulScalar': lambda: v() * 2.0,
        'Softmax': lambda: raw.Softmax(logits=v()),
        'LogSoftmax': lambda: raw.LogSoftmax(logits=v()),
        'SoftmaxXent': lambda: raw.SoftmaxCrossEntropyWithLogits(features=v(), labels=v(0, 1))[0],
        'SparseXent': lambda: raw.SparseSoftmaxCrossEntropyWithLogits(features=v(), labels=tf.range(v.rows) % COLUMNS)[0],
        'ReluGrad': lambda: raw.ReluGrad(gradients=v(), features=v()),
        'TanhGrad': lambda: raw.TanhGrad(y=v(), dy=v()),
        'SigmoidGrad': lambda: raw.SigmoidGrad(y=v(), dy=v()),
        'EluGrad': lambda: raw.EluGrad(gradients=v(), outputs=v()),
        'SoftplusGrad': lambda: raw.SoftplusGrad(gradients=v(), features=v()),
        'L2Loss': lambda: raw.L2Loss(t=v()),
        'BiasAdd': lambda: tf.nn.bias_add(v(), v(shape=[COLUMNS])),
        'BiasAddGrad': lambda: raw.BiasAddGrad(out_backprop=v()),
        'Transpose': lambda: tf.transpose(v()),
        'Reverse': lambda: tf.reverse(v(), [1]),
        'Tile': lambda: tf.tile(v(), [1, 2]),
        'Pad': lambda: tf.pad(v(), [[1, 1], [2, 2]]),
        'Split1': lambda: tf.split(v(), 2, 1)[0] + 0.,
        'Slice': lambda: tf.slice(v(), [1, 1], [v.rows - 2, COLUMNS - 100]),
        'StridedSlice': lambda: v()[::2, ::2],
        'Gather0': lambda: tf.gather(v(), v.ids(v.rows)),
        'Gather1': lambda: tf.gather(v(), tf.range(0, COLUMNS, 2), axis=1),
        'Select': lambda: tf.where(v() > 0, v(), v()),
        'Where': lambda: tf.where(v() > 0),
        'OneHot': lambda: tf.one_hot(v.ids(COLUMNS), COLUMNS),
        'TopK': lambda: tf.nn.top_k(v(), 10).values,
        'Sort': lambda: tf.sort(v(), 1),
        'UnsortedSegmentSum': lambda: tf.math.unsorted_segment_sum(v(), v.ids(50), 50),
        'SegmentSum': lambda: tf.math.segment_sum(v(), tf.range(v.rows) // 4),
        'RandomUniform': lambda: tf1.random_uniform([v.rows, COLUMNS], seed=1),
        'RandomNormal': lambda: tf1.random_normal([v.rows, COLUMNS], seed=1),
        'TruncatedNormal': lambda: tf1.truncated_normal([v.rows, COLUMNS], seed=1),
        'AvgPool': lambda: tf.nn.avg_pool2d(v(shape=v.image), 2, 2, 'SAME'),
        'MaxPool': lambda: tf.nn.max_pool2d(v(shape=v.image), 3, 2, 'SAME'),
        'LRN': lambda: tf.nn.lrn(v(shape=v.image)),
        'FusedBatchNorm': lambda: tf1.nn.fused_batch_norm(v(shape=v.image), v(shape=[32]), v(shape=[32]))[0],
        'DepthwiseConv2d': lambda: tf.nn.depthwise_conv2d(v(shape=v.image), v(shape=[3, 3, 32, 1]), [1, 1, 1, 1], 'SAME'),
        'ResizeBilinear': lambda: tf1.image.resize_bilinear(v(shape=v.image), [150, 600]),
        'BatchMatMul': lambda: tf.matmul(v(shape=[100, 64, 64]), v(shape=[100, 64, 64])),
        'Einsum': lambda: tf.einsum('abc,acd->abd', v(shape=[20, 100, 50]), v(shape=[20, 50, 100])),
        'Cholesky': lambda: tf.linalg.cholesky(v(shape=[100, 40, 40]) * .01 + tf.eye(40)),
    })
    return table


def weir_ms(path, seconds):
    command = [WEIR, 'bench', path, '--threads=1', '--steps=100', f'--seconds={seconds}', '--json']
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['step_ms']


def tensorflow_ms(graph, seconds):
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf1.Session(graph=graph, config=config) as session:
        session.run('init')
        step = session.make_callable('loss:0')
        times = []
        for _ in range(3):
            step()
        end = time.time() + seconds
        while len(times) < 5 or (time.time() < end and len(times) < 100):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def measure(build, path, seconds):
    with tf1.Graph().as_default() as graph:
        loss = tf.identity(build(), name='loss')
        tf.group(tf1.global_variables_initializer(), name='init')
        tf.group(loss, name='step')
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return weir_ms(path, seconds), tensorflow_ms(graph, seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('names', nargs='*')
    parser.add_argument('--elements', type=int, default=2_000_000)
    parser.add_argument('--seconds', type=float, default=.5, help='for each op and each of the two')
    args = parser.parse_args()
    tf1.disable_eager_execution()
    table = cases(Values(args.elements))
    unknown = set(args.names) - set(table)
    if unknown:
        parser.error(f'no case {", ".join(sorted(unknown))}; there are {" ".join(table)}')
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or table:
            weir, tensorflow = measure(table[name], pathlib.Path(folder) / 'op.pb', args.seconds)
            rows.append((tensorflow / weir, name, weir, tensorflow))
    print(f'{"op":20} {"weir ms":>9} {"TF ms":>9} {"TF/weir":>8}')
    for ratio, name, weir, tensorflow in sorted(rows):
        print(f'{name:20} {weir:9.3f} {tensorflow:9.3f} {ratio:8.2f}')


if __name__ == '__main__':
    main()
