"""Cases for gradients.py beside those of the op tests: points where gradients are delicate, and whole graphs."""
import numpy as np
import tensorflow as tf

import libweir
import oracle

tf1 = tf.compat.v1

# Ops with a gradient that need no case here, and why.
ELSEWHERE = {
    'Eig': 'its order is not determined: tested as whole graphs',
    'DebugGradientRefIdentity': 'as RefIdentity',
    **{'TensorArray' + name + version: 'handles of old graphs are strings, and have no gradient in Weir'
       for name in ('Concat', 'Gather', 'Read', 'Scatter', 'Split', 'Write') for version in ('', 'V2')},
    'BlockLSTMV2': 'tested as a whole graph: in TensorFlow it is wrong',
    'QuantizeAndDequantizeV4Grad': 'in TensorFlow the gradient takes one argument of its three, and fails',
    **{name: 'runs on GPUs alone: src/ops/collective/nccl_test.c' for name in ('NcclAllReduce', 'NcclBroadcast', 'NcclReduce')},
    'ArgMax': 'its output is an integer', 'ArgMin': 'its output is an integer',
    **{name: 'loops and conditionals are tested as whole graphs' for name in (
        'Case', 'Enter', 'Exit', 'If', 'LoopCond', 'Merge', 'NextIteration', 'RefEnter', 'RefExit', 'RefIdentity', 'RefMerge',
        'RefNextIteration', 'RefSwitch', 'StatelessCase', 'StatelessIf', 'StatelessWhile', 'Switch', 'While')},
    **{name: 'lists and arrays are tested as whole graphs' for name in (
        'TensorArrayConcatV3', 'TensorArrayGatherV3', 'TensorArrayReadV3', 'TensorArrayScatterV3', 'TensorArraySplitV3',
        'TensorArrayWriteV3', 'TensorListConcat', 'TensorListConcatV2', 'TensorListFromTensor', 'TensorListGather',
        'TensorListGetItem', 'TensorListPopBack', 'TensorListPushBack', 'TensorListResize', 'TensorListScatter',
        'TensorListScatterIntoExistingList', 'TensorListScatterV2', 'TensorListSetItem', 'TensorListSplit',
        'TensorListStack')},
    'ReadVariableOp': 'variables are tested as whole graphs', 'ResourceGather': 'variables are tested as whole graphs',
    'ResourceGatherNd': 'variables are tested as whole graphs', 'AccumulateNV2': 'has no kernel',
    **{name: 'variants are tested as whole graphs' for name in (
        'CompositeTensorVariantFromComponents', 'CompositeTensorVariantToComponents', 'CSRSparseMatrixToDense',
        'CSRSparseMatrixToSparseTensor', 'DenseToCSRSparseMatrix', 'RaggedTensorFromVariant', 'RaggedTensorToVariant',
        'SparseMatrixMatMul', 'SparseMatrixSparseMatMul', 'SparseMatrixTranspose', 'SparseTensorToCSRSparseMatrix')},
    'OptionalFromValue': 'tested as programs', 'OptionalGetValue': 'tested as programs', 'TopK': 'TensorFlow refuses it',
}


def normal(rng, shape, dtype=np.float64):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == 'c':
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


# ---- nodes ----

def elementwise(check, rng):
    kinks = np.array([0.0, -0.0, 1.0, -1.0, 6.0, 0.5, -2.5])
    for op in ('Abs', 'Relu', 'Relu6', 'Elu', 'Selu', 'LeakyRelu', 'Sign', 'Softplus', 'Softsign', 'Sqrt', 'Log', 'Rsqrt',
               'Reciprocal', 'Square', 'Tanh', 'Sigmoid', 'Log1p', 'Expm1', 'Erf', 'Asin', 'Acosh', 'Atanh', 'Floor', 'Round'):
        check(op, [kinks], numeric=False)
    grid = np.array([0.0, 1.0, -1.0, 2.0, 3.0, 0.5])
    for op in ('Pow', 'Maximum', 'Minimum', 'DivNoNan', 'MulNoNan', 'Xlogy', 'Xdivy', 'Xlog1py', 'FloorMod', 'RealDiv',
               'SquaredDifference', 'Atan2'):
        check(op, [grid[:, None], grid[None, :]], numeric=False)
        check(op, [np.abs(normal(rng, (2, 3, 1))) + 0.3, np.abs(normal(rng, (3, 4))) + 0.3])
        check(op, [np.abs(normal(rng, ())) + 0.3, np.abs(normal(rng, (3, 4))) + 0.3])
    for dtype in (np.complex64, np.complex128):
        for op in ('Pow', 'DivNoNan', 'RealDiv', 'Mul', 'AddV2', 'Sub'):
            check(op, [normal(rng, (2, 1), dtype), normal(rng, (3,), dtype)])
    for condition in (True, False, [True, False, True], [[True], [False]]):
        check('SelectV2', [np.array(condition), normal(rng, (2, 1)), normal(rng, (1, 3))])
        check('SelectV2', [np.array(condition), normal(rng, ()), normal(rng, (2, 3), np.float64)])
    check('SelectV2', [np.array([True, False]), np.array([1.0, np.nan]), np.array([np.inf, 2.0])], numeric=False)
    check('Select', [np.array([True, False]), normal(rng, (2, 3)), normal(rng, (2, 3))])
    check('Select', [np.array(True), normal(rng, (2, 3)), normal(rng, (2, 3))])
    check('ClipByValue', [normal(rng, (3, 4)), np.array(-0.5), np.array(0.5)])
    check('ClipByValue', [np.array([0.5, -0.5, 0.0]), np.array(-0.5), np.array(0.5)], numeric=False)
    check('AddN', [normal(rng, (2, 3)) for _ in range(3)])
    check('AddN', [normal(rng, (2, 3))])
    check('Betainc', [np.array([1.5]), np.array([2.5]), np.array([0.3])])
    for out in (np.float32, np.float16, np.complex64, np.complex128):
        check('Cast', [normal(rng, (3,))], {'DstT': out})
    check('Cast', [normal(rng, (3,), np.complex128)], {'DstT': np.float64}, numeric=False)


def reductions(check, rng):
    with_zeros = normal(rng, (3, 4))
    with_zeros[0, 1] = with_zeros[1, 2] = with_zeros[1, 3] = 0
    for axis in (0, 1, [0, 1], []):
        check('Prod', [with_zeros, np.int32(axis)])
        check('Prod', [normal(rng, (2, 3, 2)), np.array(axis, np.int64)], {'keep_dims': True})
    check('Prod', [normal(rng, (2, 3, 2)), np.int32([-1, 0])])
    # TensorFlow's gradient of a complex Cumprod does not conjugate, so neither does its second derivative of Prod.
    check('Prod', [normal(rng, (2, 3, 2), np.complex128), np.int32([-1, 0])], second=False)
    check('Prod', [np.zeros((0, 3)), np.int32(0)])
    ties = np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    for op in ('Max', 'Min'):
        check(op, [ties, np.int32(1)], numeric=False)
        check(op, [ties, np.int32([0, 1])], {'keep_dims': True}, numeric=False)
    for op in ('Sum', 'Mean', 'EuclideanNorm', 'Max'):
        check(op, [normal(rng, (2, 3, 4)), np.int32([-1, 0])])
        check(op, [normal(rng, (2, 3, 4)), np.int32([])])
        check(op, [normal(rng, ()), np.int32([])])
    check('Mean', [np.zeros((0, 3)), np.int32(0)])
    check('Mean', [normal(rng, (2, 3), np.complex128), np.int32(1)])
    for op in ('Cumsum', 'Cumprod'):
        for exclusive in (False, True):
            for reverse in (False, True):
                for axis in (0, -1):
                    check(op, [normal(rng, (3, 4)), np.int32(axis)], {'exclusive': exclusive, 'reverse': reverse})
    check('CumulativeLogsumexp', [normal(rng, (3, 4)), np.int32(1)])
    for op in ('SegmentSum', 'SegmentMean', 'SegmentMax', 'SegmentMin', 'SegmentProd'):
        check(op, [normal(rng, (5, 2)), np.int32([0, 0, 1, 3, 3])])
    for op in ('UnsortedSegmentSum', 'UnsortedSegmentMax', 'UnsortedSegmentMin', 'UnsortedSegmentProd'):
        check(op, [normal(rng, (5, 2)), np.int32([3, 0, -1, 0, 3]), np.int32(4)])
        check(op, [normal(rng, (2, 3, 2)), np.int64([[1, 0, 1], [1, 1, 0]]), np.int32(2)])
    zeros = normal(rng, (5,))
    zeros[1] = zeros[3] = zeros[4] = 0
    check('UnsortedSegmentProd', [zeros, np.int32([0, 0, 1, 1, 1]), np.int32(2)])
    check('UnsortedSegmentMax', [np.array([2.0, 2.0, 1.0]), np.int32([0, 0, 0]), np.int32(1)], numeric=False)


def products(check, rng):
    for a in (False, True):
        for b in (False, True):
            for dtype in (np.float64, np.complex128, np.float32):
                x, y = (4, 2) if a else (2, 4), (3, 4) if b else (4, 3)
                check('MatMul', [normal(rng, x, dtype), normal(rng, y, dtype)], {'transpose_a': a, 'transpose_b': b})
                for left, right in (((), (2,)), ((3, 1), (2,)), ((1,), (1,)), ((2, 1), (1, 3)), ((2,), ())):
                    check('BatchMatMulV2', [normal(rng, left + x, dtype), normal(rng, right + y, dtype)],
                          {'adj_x': a, 'adj_y': b})
                check('BatchMatMul', [normal(rng, (2, *x), dtype), normal(rng, (2, *y), dtype)], {'adj_x': a, 'adj_y': b})
    check('BatchMatMulV3', [normal(rng, (3, 2, 4)), normal(rng, (4, 3))], {'Tout': np.float64})
    check('Cross', [normal(rng, (4, 3)), normal(rng, (4, 3))])


def arrays(check, rng):
    x = normal(rng, (4, 5, 6))
    i = np.int32
    for begin, end, strides, masks in (
            ([0, 1, 2], [4, 5, 6], [1, 2, 3], {}), ([-1, 3, 1], [-4, 0, 3], [-1, -2, 1], {}),
            ([1, 0, 2], [2, 0, 3], [1, 1, 1], {'shrink_axis_mask': 5, 'end_mask': 2}),
            ([0, 1], [0, 3], [1, 1], {'ellipsis_mask': 1}), ([0, 0, 2], [0, 0, 4], [1, 1, 1], {'new_axis_mask': 1, 'ellipsis_mask': 2}),
            ([1], [1], [1], {})):
        check('StridedSlice', [x, i(begin), i(end), i(strides)], masks)
    check('StridedSlice', [x, np.int64([1]), np.int64([3]), np.int64([1])])
    check('StridedSlice', [normal(rng, (4,), np.complex128), i([3]), i([0]), i([-2])])
    for axis in (0, 1, 2, -1):
        for indices in (2, [1, 1, 0], [[1, 0], [2, 1]], np.zeros((0,), np.int32)):
            check('GatherV2', [x, i(indices), i(axis)])
    check('GatherV2', [x, np.int64([[0, 1], [1, 1], [2, 0], [3, 3]]), np.int64(1)], {'batch_dims': 1})
    check('GatherV2', [x, np.int32([[0, 1], [1, 1], [2, 0], [3, 3]]), np.int32(2)], {'batch_dims': 1})
    check('GatherV2', [x, np.zeros((4, 5, 2), np.int32), np.int32(-1)], {'batch_dims': 2})
    check('GatherV2', [np.zeros((0, 3)), np.zeros((0, 2), np.int32), np.int32(1)], {'batch_dims': 1})
    check('Gather', [x, i([[1, 1], [0, 3]])])
    for indices in ([[0, 1], [3, 4], [0, 1]], [[1]], [[0, 1, 2], [0, 1, 2]], [[[1, 1]], [[2, 0]]]):
        check('GatherNd', [x, i(indices)])
        check('GatherNd', [x, np.int64(indices)])
    check('GatherNd', [x, np.zeros((2, 0), np.int32)])
    rows = i([[0], [2]])
    for op in ('TensorScatterUpdate', 'TensorScatterAdd', 'TensorScatterSub'):
        check(op, [normal(rng, (4, 3)), rows, normal(rng, (2, 3))])
        check(op, [normal(rng, (4, 3), np.complex128), np.int64([[0, 1], [3, 2]]), normal(rng, (2,), np.complex128)])
    for op in ('TensorScatterAdd', 'TensorScatterSub'):
        check(op, [normal(rng, (4, 3)), i([[0], [0]]), normal(rng, (2, 3))])
    for op in ('TensorScatterMax', 'TensorScatterMin'):
        check(op, [normal(rng, (4, 3)), rows, normal(rng, (2, 3))])
    check('ScatterNd', [rows, normal(rng, (2, 3)), i([4, 3])])
    check('ScatterNd', [i([[1], [1]]), normal(rng, (2, 3)), i([4, 3])])
    check('ScatterNdNonAliasingAdd', [normal(rng, (4, 3)), rows, normal(rng, (2, 3))])
    for op in ('DynamicStitch', 'ParallelDynamicStitch'):
        check(op, [i([0, 2]), i([[1, 3]]), normal(rng, (2, 3)), normal(rng, (1, 2, 3))])
        check(op, [i(0), i([2, 1]), normal(rng, (3,)), normal(rng, (2, 3))])
    check('DynamicStitch', [i([0, 1]), i([1, 2]), normal(rng, (2,)), normal(rng, (2,))], name='an index twice', numeric=False)
    check('DynamicPartition', [normal(rng, (5, 2)), i([1, 0, 2, 1, 1])], {'num_partitions': 4})
    check('DynamicPartition', [normal(rng, (2, 3, 2)), i([[1, 0, 1], [1, 1, 0]])], {'num_partitions': 2})
    for n in (1, 3):
        for axis in (0, 1, -1):
            parts = [normal(rng, (2, k + 1) if axis else (k + 1, 2)) for k in range(n)]
            if n > 1:
                check('ConcatV2', [*parts, i(axis)], {'N': n})
            check('Pack', [normal(rng, (2, 3)) for _ in range(n)], {'axis': axis})
    check('ConcatV2', [normal(rng, (2, 0)), normal(rng, (2, 3)), i(1)], {'N': 2})
    check('Concat', [i(1), normal(rng, (2, 1)), normal(rng, (2, 3))], {'N': 2})
    check('Split', [i(1), normal(rng, (2, 6))], {'num_split': 3})
    check('SplitV', [normal(rng, (2, 6)), i([1, -1, 2]), i(-1)], {'num_split': 3})
    check('Unpack', [normal(rng, (3, 2))], {'num': 2, 'axis': -1})
    check('Tile', [normal(rng, (2, 3)), i([3, 2])])
    check('Tile', [normal(rng, (2, 3)), np.int64([1, 0])])
    check('Pad', [normal(rng, (2, 3)), i([[1, 0], [2, 1]])])
    check('PadV2', [normal(rng, (2, 3)), i([[1, 0], [2, 1]]), np.array(1.5)])
    for mode in ('REFLECT', 'SYMMETRIC'):
        check('MirrorPad', [normal(rng, (3, 4)), i([[1, 2], [2, 0]])], {'mode': mode})
    check('Transpose', [x, i([2, 0, 1])])
    check('ConjugateTranspose', [normal(rng, (2, 3), np.complex128), i([1, 0])])
    check('ReverseSequence', [x, np.int64([2, 4, 0, 1])], {'seq_dim': 2, 'batch_dim': 0})
    check('BroadcastTo', [normal(rng, (3, 1)), i([2, 3, 4])])
    check('BroadcastTo', [normal(rng, ()), np.int64([2, 2])])
    check('MatrixBandPart', [normal(rng, (2, 3, 4)), np.int64(1), np.int64(-1)])
    for n in range(1, 4):
        check('IdentityN', [normal(rng, (k + 1,)) for k in range(n)])
    check('IdentityN', [normal(rng, (2,)), i([1, 2]), normal(rng, (), np.float64)])
    check('TopKV2', [normal(rng, (3, 7)), i(3)])
    check('TopKV2', [normal(rng, (7,)), i(7)], {'sorted': False})
    check('Roll', [x, i([1, -2]), i([0, 2])])
    check('Fill', [i([2, 3]), np.array(1.5)])
    for shape in ((4, 2), (2, 3, 2)):  # what TensorFlow has no gradient of
        check('Qr', [rng.standard_normal(shape)], {'full_matrices': True})
    check('OneHot', [i([0, 2]), i(3), np.array(2.0), np.array(-1.0)])
    check('Slice', [x, i([1, 0, 2]), i([2, -1, 3])])
    check('SparseToDense', [np.int64([[0, 1], [2, 0]]), np.int64([3, 2]), normal(rng, (2,)), np.array(0.5)])


def networks(check, rng):
    x, f = normal(rng, (2, 6, 7, 3)), normal(rng, (3, 2, 3, 4))
    for s, padding, d in ((1, 'SAME', 1), (2, 'SAME', 1), (2, 'VALID', 1), (1, 'SAME', 2)):
        attrs = {'strides': [1, s, s, 1], 'padding': padding, 'dilations': [1, d, d, 1]}
        y = tf.nn.conv2d(tf.constant(x), tf.constant(f), s, padding, dilations=d).numpy().shape
        check('Conv2D', [x, f], attrs)
        if d == 1:  # TensorFlow's own gradients of the gradients know no dilation
            check('Conv2DBackpropInput', [np.int32(x.shape), f, normal(rng, y)], attrs)
            check('Conv2DBackpropFilter', [x, np.int32(f.shape), normal(rng, y)], attrs)
    pads = {'strides': [1, 1, 1, 1], 'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 0, 2, 1, 0, 0]}
    check('Conv2D', [x, f], pads)
    g = normal(rng, (3, 3, 3, 2))
    for s, padding in ((1, 'SAME'), (2, 'VALID')):
        attrs = {'strides': [1, s, s, 1], 'padding': padding}
        check('DepthwiseConv2dNative', [x, g], attrs)
    for k, s, padding in ((2, 2, 'VALID'), (3, 2, 'SAME'), (3, 1, 'SAME')):
        attrs = {'ksize': [1, k, k, 1], 'strides': [1, s, s, 1], 'padding': padding}
        for op in ('MaxPool', 'AvgPool', 'MaxPoolWithArgmax'):
            check(op, [x], dict(attrs, include_batch_in_index=True) if op.endswith('Argmax') else attrs)
        check('MaxPoolV2', [x, np.int32(attrs['ksize']), np.int32(attrs['strides'])], {'padding': padding})
        top = tf.nn.max_pool2d(tf.constant(x), k, s, padding).numpy()
        check('MaxPoolGrad', [x, top, normal(rng, top.shape)], attrs)
        check('MaxPoolGradV2', [x, top, normal(rng, top.shape), np.int32(attrs['ksize']), np.int32(attrs['strides'])],
              {'padding': padding})
        check('AvgPoolGrad', [np.int32(x.shape), normal(rng, top.shape)], attrs)
    for labels in ((4, 3), (1, 3)):
        p = np.abs(normal(rng, labels))
        check('SoftmaxCrossEntropyWithLogits', [normal(rng, (4, 3)), p / p.sum(1, keepdims=True)])
    check('SparseSoftmaxCrossEntropyWithLogits', [normal(rng, (4, 3)), np.int32([0, 2, 1, 1])])
    for op in ('Softmax', 'LogSoftmax'):
        check(op, [normal(rng, (2, 3, 4))])
    check('LRN', [normal(rng, (2, 2, 2, 7), np.float32)], {'depth_radius': 2, 'alpha': 0.3, 'beta': 0.6})
    check('BiasAdd', [normal(rng, (2, 4, 3, 5)), normal(rng, (4,))], {'data_format': 'NCHW'})
    check('BiasAdd', [normal(rng, (2, 5)), normal(rng, (5,))])
    check('L2Loss', [normal(rng, (3, 4))])
    batch_norms(check, rng)


def batch_norms(check, rng):
    none = np.zeros(0, np.float32)
    for op in ('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3'):
        for shape, layout in (((3, 4, 5, 6), 'NHWC'), ((3, 6, 4, 5), 'NCHW'), ((2, 3, 2, 2, 4), 'NDHWC')):
            if len(shape) == 5 and not op.endswith('V3'):
                continue
            channel = 1 if layout == 'NCHW' else len(shape) - 1
            x, dy = normal(rng, shape, np.float32), normal(rng, shape, np.float32)
            scale, offset = (normal(rng, (shape[channel],), np.float32) for _ in range(2))
            attrs = {'data_format': layout, 'epsilon': 1e-3}
            check(op, [x, scale, offset, none, none], attrs)
            axes = tuple(i for i in range(len(shape)) if i != channel)
            mean, variance = x.mean(axes), x.var(axes)
            check(op, [x, scale, offset, mean, variance], dict(attrs, is_training=False))
            tail = [np.float32(0)] if op.endswith('V3') else []
            for is_training in (True, False):
                check(op.replace('Norm', 'NormGrad'), [dy, x, scale, mean, variance, *tail],
                      dict(attrs, is_training=is_training))


def images(check, rng):
    # Of other types than float32 TensorFlow has no gradient here.
    for kernel, antialias in (('lanczos3', True), ('triangle', False)):
        check('ScaleAndTranslate', [normal(rng, (2, 5, 6, 2), np.float32), np.int32([4, 7]), np.float32([.7, 1.3]), np.float32([.5, -1])],
              {'kernel_type': kernel, 'antialias': antialias})


def cases(check, rng):
    for group in (elementwise, reductions, products, arrays, networks, images):
        group(check, rng)


# ---- whole graphs: each function builds one with TensorFlow and gives (ys, xs, initialisers, grad_ys or None) ----

def use_twice():
    x = tf.constant([1.0, 2.0, 3.0])
    y = x * x + tf.sin(x)
    return [y], [x]


def unconnected():
    x, z = tf.constant([1.0, 2.0]), tf.constant([3.0])
    return [tf.exp(x)], [x, z]


def through_integers():
    x, z = tf.constant([1.5, 2.5]), tf.constant([2.0, 3.0])
    return [tf.cast(tf.cast(x, tf.int32), tf.float32) * z], [x, z]


def of_itself():
    x = tf.constant([1.5, 2.5])
    return [x], [x]


def several_ys():
    x, z = tf.constant([1.5, 2.5]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    a = tf.linalg.matvec(z, x)
    return [tf.exp(a), a * x, tf.reduce_sum(z)], [x, z, a]


def integer_x():
    x, n = tf.constant([[1.5, 2.5]]), tf.constant([3, 1])
    return [tf.tile(x, n)], [x, n]


def variable_read():
    v = tf1.get_variable('v', initializer=[1.0, 2.0], use_resource=True)
    return [tf.square(v)], [v]


def variable_handle():
    v = tf1.get_variable('v', initializer=[1.0, 2.0], use_resource=True)
    return [tf.square(v)], [v.handle]


def variable_rows():
    v = tf1.get_variable('v', initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=True)
    rows = tf.gather(v, [[1, 1], [3, 0]])
    return [tf.square(rows)], [v.handle]


def variable_rows_twice():
    v = tf1.get_variable('v', initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=True)
    return [tf.square(tf.gather(v, [1, 1])), tf.exp(tf.gather(v, tf.constant([0, 1], tf.int64)))], [v.handle]


def variable_rows_and_dense():
    v = tf1.get_variable('v', initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=True)
    return [tf.square(tf.gather(v, [1, 1])), tf.reduce_sum(v) * tf.constant([2.0])], [v.handle]


def variable_elements():
    v = tf1.get_variable('v', initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=True)
    return [tf.square(tf.gather_nd(v, [[1, 1], [3, 0], [1, 1]]))], [v.handle]


def ref_variable_rows():
    v = tf1.get_variable('v', initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=False)
    return [tf.square(tf.gather(v, [2, 2, 0])), tf.exp(v[1])], [v]


def slices_into_reshape():
    x = tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    return [tf.gather(tf.tanh(tf.reshape(x, [2, 3])), [1, 1])], [x]


def through_stop():
    x = tf.constant([1.5, 2.5])
    return [tf.stop_gradient(tf.exp(x)) * x], [x]


def third_derivative():
    x = tf.constant([0.5, 1.5], tf.float64)
    first = tf1.gradients(tf.sin(x) * tf.exp(2 * x), x)[0]
    return [tf1.gradients(first, x)[0]], [x]


def softmax_regression():
    x = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3))
    w = tf1.get_variable('w', initializer=np.linspace(-1, 1, 6).reshape(3, 2), use_resource=True)
    b = tf1.get_variable('b', initializer=np.zeros(2), use_resource=True)
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=[0, 1, 1, 0]))
    return [loss], [w, b, x]


def array_writes():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    array = tf1.TensorArray(tf.float32, 3, clear_after_read=False, infer_shape=True)
    array = array.write(0, tf.square(x[0])).write(2, tf.exp(x[1])).write(1, x[2] * 2)
    return [array.read(2) * array.read(0), array.stack()], [x]


def array_rows():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    array = tf1.TensorArray(tf.float32, 3, clear_after_read=False).unstack(tf.square(x))
    return [tf.sin(array.gather([2, 0])), array.read(1)], [x]


def array_pieces():
    x = tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2))
    array = tf1.TensorArray(tf.float32, 3, infer_shape=False).split(tf.exp(x), [1, 3, 2])
    return [tf.square(array.concat())], [x]


def list_items():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    items = tf.raw_ops.TensorListFromTensor(tensor=tf.square(x), element_shape=tf.constant([2]))
    items = tf.raw_ops.TensorListSetItem(input_handle=items, index=1, item=tf.exp(x[0]))
    one = tf.raw_ops.TensorListGetItem(input_handle=items, index=2, element_shape=tf.constant([2]), element_dtype=tf.float32)
    every = tf.raw_ops.TensorListStack(input_handle=items, element_shape=tf.constant([2]), element_dtype=tf.float32)
    return [one, every], [x]


def list_pushes():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    items = tf.raw_ops.EmptyTensorList(element_shape=tf.constant([2]), max_num_elements=-1, element_dtype=tf.float32)
    items = tf.raw_ops.TensorListPushBack(input_handle=items, tensor=tf.square(x[0]))
    items = tf.raw_ops.TensorListPushBack(input_handle=items, tensor=tf.exp(x[1]))
    items, last = tf.raw_ops.TensorListPopBack(input_handle=items, element_shape=tf.constant([2]), element_dtype=tf.float32)
    rest = tf.raw_ops.TensorListStack(input_handle=items, element_shape=tf.constant([2]), element_dtype=tf.float32)
    return [last * 2, rest], [x]


def list_rows():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    items = tf.raw_ops.TensorListScatterV2(tensor=tf.square(x), indices=[3, 0, 1], element_shape=tf.constant([2]),
                                           num_elements=4)
    rows = tf.raw_ops.TensorListGather(input_handle=items, indices=[1, 3], element_shape=tf.constant([2]),
                                       element_dtype=tf.float32)
    return [tf.sin(rows)], [x]


def list_pieces():
    x = tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2))
    items = tf.raw_ops.TensorListSplit(tensor=tf.exp(x), element_shape=tf.constant([-1, 2]), lengths=tf.constant([1, 3, 2], tf.int64))
    joined, _ = tf.raw_ops.TensorListConcatV2(input_handle=items, element_shape=tf.constant([-1, 2]),
                                              leading_dims=tf.constant([], tf.int64), element_dtype=tf.float32)
    return [tf.square(joined)], [x]


def some(*shape, dtype=np.float64, seed=7):
    return normal(np.random.default_rng(seed), shape, dtype)


def through_svd(shape, full, dtype=np.float64):
    """What signs of the vectors leave alone, and phases with them: their products."""
    x = tf.constant(some(*shape, dtype=dtype))
    s, u, v = tf.raw_ops.Svd(input=x, full_matrices=full)
    s = tf.cast(tf.sqrt(tf.math.real(s)), x.dtype)
    k = min(shape[-2:])
    product = tf.matmul(u[..., :k] * s[..., None, :], v[..., :k], adjoint_b=True)
    own = tf.matmul(v[..., :k] * s[..., None, :], v[..., :k], adjoint_b=True)
    return [tf.math.real(product * some(*shape, dtype=dtype, seed=8)),
            tf.math.real(own * some(*own.shape, dtype=dtype, seed=9))], [x]


def svd_square():
    return through_svd((3, 3), False)


def svd_wide():
    return through_svd((2, 3, 5), False)


def svd_tall():
    return through_svd((5, 3), False)


def svd_full():
    return through_svd((3, 4), True)


def svd_complex():
    return through_svd((3, 4), False, np.complex128)


def self_adjoint_vectors(dtype=np.float64):
    x = tf.constant(some(2, 4, 4, dtype=dtype))
    e, v = tf.raw_ops.SelfAdjointEigV2(input=x + tf.linalg.adjoint(x))
    product = tf.matmul(v * tf.exp(e)[..., None, :], v, adjoint_b=True)
    return [tf.math.real(product * some(2, 4, 4, dtype=dtype, seed=8))], [x]


def self_adjoint_complex():
    return self_adjoint_vectors(np.complex128)


def eigen_vectors(dtype=np.float64):
    x = tf.constant(some(2, 4, 4, dtype=dtype))
    e, v = tf.raw_ops.Eig(input=x, Tout=tf.complex128)
    product = tf.matmul(v * tf.exp(e)[..., None, :], v, adjoint_b=True)
    return [tf.math.real(product * some(2, 4, 4, dtype=np.complex128, seed=8))], [x]


def eigen_complex():
    return eigen_vectors(np.complex128)


def links():
    """Indices, values and shape of a sparse matrix whose values are computed."""
    indices = np.array([[0, 0], [0, 3], [1, 1], [2, 0], [2, 2]], np.int64)
    v = tf.constant(np.linspace(-1, 2, 5))
    return indices, v, tf.sin(v), np.array([3, 4], np.int64)


def csr_product():
    indices, v, values, shape = links()
    b = tf.constant(np.linspace(-2, 1, 8).reshape(4, 2))
    m = tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=indices, values=values, dense_shape=shape)
    return [tf.square(tf.raw_ops.SparseMatrixMatMul(a=m, b=b))], [v, b]


def csr_product_turned():
    indices, v, values, shape = links()
    b = tf.constant(np.linspace(-2, 1, 6).reshape(2, 3))
    z = tf.complex(values, tf.square(values))
    m = tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=indices, values=z, dense_shape=shape)
    c = tf.raw_ops.SparseMatrixMatMul(a=m, b=tf.complex(b, tf.sin(b)), adjoint_a=True, adjoint_b=True)
    return [tf.math.real(c), tf.math.imag(c)], [v, b]


def csr_product_flat():
    indices, v, values, shape = links()
    b = tf.constant(np.linspace(-2, 1, 6).reshape(3, 2))
    m = tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=indices, values=values, dense_shape=shape)
    return [tf.square(tf.raw_ops.SparseMatrixMatMul(a=m, b=b, transpose_a=True, transpose_output=True))], [v, b]


def csr_forms():
    indices, v, values, shape = links()
    m = tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=indices, values=values, dense_shape=shape)
    turned = tf.raw_ops.SparseMatrixTranspose(input=m, type=tf.float64)
    d = tf.constant(np.linspace(0, 1, 12).reshape(3, 4))
    picked = tf.raw_ops.DenseToCSRSparseMatrix(dense_input=tf.exp(d), indices=indices)
    return [tf.square(tf.raw_ops.CSRSparseMatrixToSparseTensor(sparse_matrix=turned, type=tf.float64).values),
            tf.raw_ops.CSRSparseMatrixToSparseTensor(sparse_matrix=picked, type=tf.float64).values], [v, d]


def csr_dense():
    indices, v, values, shape = links()
    m = tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=indices, values=values, dense_shape=shape)
    return [tf.square(tf.raw_ops.CSRSparseMatrixToDense(sparse_input=m, type=tf.float64))], [v]


def csr_times_csr():
    """Every entry of the factors is one of its gradient's, too: TensorFlow drops the others."""
    x, y = tf.constant(np.linspace(-1, 2, 6)), tf.constant(np.linspace(1, 3, 6))
    full = np.stack(np.unravel_index(np.arange(6), (2, 3)), 1).astype(np.int64)
    a, b = [tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=full, values=v, dense_shape=np.array([2, 3], np.int64)) for v in (tf.sin(x), y)]
    c = tf.raw_ops.SparseMatrixSparseMatMul(a=a, b=b, type=tf.float64, transpose_b=True)
    return [tf.square(tf.raw_ops.CSRSparseMatrixToSparseTensor(sparse_matrix=c, type=tf.float64).values)], [x, y]


def ragged_rows():
    x = tf.constant(np.linspace(-1, 1, 10).reshape(5, 2))
    rows = tf.raw_ops.RaggedTensorToVariant(rt_nested_splits=[np.array([0, 2, 2, 5], np.int64)], rt_dense_values=tf.exp(x), batched_input=True)
    back = tf.raw_ops.RaggedTensorFromVariant(encoded_ragged=rows, input_ragged_rank=-1, output_ragged_rank=1, Tvalues=tf.float64, Tsplits=tf.int64)
    return [tf.square(back.output_dense_values)], [x]


def ragged_whole():
    x = tf.constant(np.linspace(-1, 1, 10).reshape(5, 2))
    whole = tf.raw_ops.RaggedTensorToVariant(rt_nested_splits=[np.array([0, 2, 2, 5], np.int64)], rt_dense_values=tf.exp(x), batched_input=False)
    back = tf.raw_ops.RaggedTensorFromVariant(encoded_ragged=whole, input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.float64, Tsplits=tf.int64)
    return [tf.square(back.output_dense_values)], [x]


def composite():
    """Of two tensors of numbers one is read, and the rows have no gradient."""
    x, y = tf.constant(np.linspace(-1, 1, 5)), tf.constant(np.linspace(1, 2, 3))
    whole = tf.raw_ops.CompositeTensorVariantFromComponents(components=[tf.exp(x), np.array([0, 2, 5], np.int64), tf.sin(y)], metadata='')
    back = tf.raw_ops.CompositeTensorVariantToComponents(encoded=whole, metadata='', Tcomponents=[tf.float64, tf.int64, tf.float64])
    return [tf.square(back[0])], [x, y]


def block_lstm_grad(op, *grads):
    return (None, *tf.raw_ops.BlockLSTMGradV2(**{arg.name: x for arg, x in zip(op.op_def.input_arg, op.inputs)},
                                              **{arg.name: y for arg, y in zip(op.op_def.output_arg, op.outputs)},
                                              cs_grad=grads[1], h_grad=grads[6], use_peephole=op.get_attr('use_peephole')))


def block_lstm():
    """TensorFlow's own gradient takes the gates of BlockLSTMV2 for those of BlockLSTM."""
    rng = np.random.default_rng(5)
    shapes = ((3, 2, 4), (2, 5), (2, 5), (9, 20), (5,), (5,), (5,), (20,))
    xs = [tf.constant(normal(rng, shape, np.float32) * np.float32(0.5)) for shape in shapes]
    with tf1.get_default_graph()._override_gradient_function({'BlockLSTMV2': block_lstm_grad}):  # pylint: disable=protected-access
        y = tf.raw_ops.BlockLSTMV2(seq_len_max=np.int64(3), x=xs[0], cs_prev=xs[1], h_prev=xs[2], w=xs[3], wci=xs[4], wcf=xs[5], wco=xs[6], b=xs[7], use_peephole=True)
    return [tf.square(y.h), y.cs], xs


SCENARIOS = [svd_square, svd_wide, svd_tall, svd_full, svd_complex, self_adjoint_vectors, self_adjoint_complex, eigen_vectors,
             eigen_complex, use_twice, unconnected, through_integers, of_itself, several_ys, integer_x, variable_read, variable_handle,
             variable_rows, variable_rows_twice, variable_rows_and_dense, variable_elements, ref_variable_rows,
             slices_into_reshape, through_stop, third_derivative, softmax_regression, array_writes, array_rows, array_pieces,
             list_items, list_pushes, list_rows, list_pieces, csr_product, csr_product_turned, csr_product_flat, csr_forms,
             csr_dense, csr_times_csr, ragged_rows, ragged_whole, composite, block_lstm]


def as_tensor(x):
    """The tensor tf.gradients takes for a variable: what gradients are with respect to in Weir too."""
    if isinstance(x, tf.Variable) and hasattr(x, 'handle'):
        return x.handle
    return x._ref() if isinstance(x, tf.Variable) else x  # pylint: disable=protected-access


def run_scenario(lib, function):
    """What is wrong, or None."""
    graph = tf.Graph()
    with graph.as_default():
        ys, xs = function()
        init = tf1.global_variables_initializer()
        graph_def = graph.as_graph_def()
        wants = tf1.gradients(ys, xs)
        is_sparse = [isinstance(w, tf.IndexedSlices) for w in wants]
        wants = [None if w is None else tf.convert_to_tensor(w) for w in wants]
        with tf1.Session(config=oracle.session_config()) as session:
            session.run(init)
            values = iter(session.run([w for w in wants if w is not None]))
        wants = [None if w is None else next(values) for w in wants]
    weir = libweir.Graph(lib, graph_def)
    try:
        weir.run_node(init.name)
        edges = [weir.edge(y.name) for y in ys], [weir.edge(as_tensor(x).name) for x in xs]
        slices = weir.gradients_sparse(*edges)
        got = weir.gradients(*edges)
        values = iter(weir.run([g for g in got if g is not None]))
        got = [None if g is None else next(values) for g in got]
    except libweir.Error as error:
        return str(error)
    finally:
        weir.close()
    for i, (g, w) in enumerate(zip(got, wants)):
        if is_sparse[i] and not slices[i].indices.node:
            return f'the gradient of x {i} is dense, in TensorFlow it is slices'
        problem = oracle.compare_values(g, w, {'rtol': 1e-5, 'atol': 1e-6})
        if problem:
            return f'the gradient of x {i}: {problem}'
    return None


def run_scenarios(lib):
    for function in SCENARIOS:
        try:
            yield function.__name__, run_scenario(lib, function)
        except Exception as error:  # pylint: disable=broad-except
            yield function.__name__, f'{type(error).__name__}: {error}'
