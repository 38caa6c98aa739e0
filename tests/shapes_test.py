"""What shape functions make of a part of the truth: no less than TensorFlow's, and nothing else. The oracle tells them all of it."""
import ctypes
import os
import sys

import numpy as np
import pytest

import conftest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
tf = pytest.importorskip('tensorflow')
sys.path.insert(0, str(conftest.ROOT / 'tests' / 'oracle'))
import libweir  # noqa: E402
from probe import are_compatible, is_weaker  # noqa: E402

AttrValue = tf.compat.v1.AttrValue
raw, f32, i32 = tf.raw_ops, tf.float32, tf.int32


# Their handles were pairs of strings once, and TensorFlow still says so; they are scalars.
STRING_HANDLES = ('TensorArrayV3', 'TensorArrayGradV3', 'StackV2')


def hidden(dtype, shape=None):
    return tf.compat.v1.placeholder(dtype, shape)


def scalar():
    return hidden(i32, [])


def gathers():
    x, rows = hidden(f32, [4, None, 6]), hidden(i32, [None, 2])
    for axis in (0, 1, -1, scalar()):
        raw.GatherV2(params=x, indices=rows, axis=axis)
    raw.GatherV2(params=x, indices=hidden(i32), axis=1)
    raw.GatherV2(params=hidden(f32), indices=rows, axis=1)
    raw.GatherV2(params=x, indices=hidden(i32, [4, 3]), axis=2, batch_dims=1)
    raw.GatherNd(params=x, indices=hidden(i32, [5, 2]))


def reductions():
    for keep in (False, True):
        for axes in ([0], [-1, 0], [], hidden(i32), hidden(i32, [1])):
            for x in (hidden(f32, [2, None, 3]), hidden(f32)):
                raw.Sum(input=x, axis=axes, keep_dims=keep)
                raw.Max(input=x, axis=axes, keep_dims=keep)
    raw.ArgMax(input=hidden(f32, [2, None, 3]), dimension=1)
    raw.ArgMax(input=hidden(f32, [2, None, 3]), dimension=scalar())


def transposes():
    for perm in ([], [0], [1, 0], hidden(i32, [0]), hidden(i32, [1]), hidden(i32, [2]), hidden(i32)):
        raw.Transpose(x=hidden(f32), perm=perm)


def joins():
    a, b, unknown = hidden(f32, [2, None, 3]), hidden(f32, [2, 5, None]), hidden(f32)
    for axis in (0, 1, -1, scalar()):
        raw.ConcatV2(values=[a, b], axis=axis)
        raw.ConcatV2(values=[unknown, b], axis=axis)
        raw.ConcatV2(values=[unknown, unknown], axis=axis)
    for axis in (0, -1):
        raw.Pack(values=[a, b], axis=axis)
        raw.Pack(values=[unknown, b], axis=axis)
        raw.Unpack(value=b, num=2 if axis == 0 else 3, axis=axis)
    raw.Split(axis=scalar(), value=b, num_split=2)
    for axis in (0, 2):
        raw.Split(axis=axis, value=b, num_split=2)
        raw.SplitV(value=b, size_splits=[1, -1], axis=axis, num_split=2)
        raw.SplitV(value=b, size_splits=hidden(i32, [2]), axis=axis, num_split=2)
        raw.SplitV(value=hidden(f32, [None, 3, None]), size_splits=[2], axis=axis, num_split=1)


def slices():
    x = hidden(f32, [4, None, 6])
    for begin in ([1, 0, 2], hidden(i32, [3]), hidden(i32)):
        for size in ([2, -1, 3], hidden(i32, [3])):
            raw.Slice(input=x, begin=begin, size=size)
            raw.Slice(input=hidden(f32), begin=begin, size=size)
    for begin in ([1, 0], hidden(i32, [2])):
        for masks in ({}, {'shrink_axis_mask': 1}, {'new_axis_mask': 1}, {'ellipsis_mask': 1}, {'begin_mask': 3, 'end_mask': 3}):
            raw.StridedSlice(input=x, begin=begin, end=[3, 2], strides=[1, 1], **masks)
            raw.StridedSlice(input=x, begin=begin, end=[3, 2], strides=hidden(i32, [2]), **masks)


def shaped_by_values():
    x = hidden(f32, [4, None, 6])
    n = scalar()
    raw.OneHot(indices=hidden(i32, [2, None]), depth=n, on_value=1., off_value=0., axis=1)
    raw.OneHot(indices=hidden(i32, [2, None]), depth=7, on_value=1., off_value=0., axis=-1)
    raw.OneHot(indices=hidden(i32), depth=7, on_value=1., off_value=0., axis=-1)
    for k in (3, n):
        raw.TopKV2(input=x, k=k)
        raw.TopKV2(input=hidden(f32), k=k)
    for perm in ([2, 0, 1], hidden(i32, [3]), hidden(i32)):
        raw.Transpose(x=x, perm=perm)
    for dims in ([4, -1], [-1, 12], tf.stack([n, -1]), tf.stack([n, 3]), hidden(i32, [2]), hidden(i32)):
        raw.Reshape(tensor=x, shape=dims)
        raw.Fill(dims=dims if not isinstance(dims, list) else [2, 3], value=1.)
    for times in ([1, 2, 3], hidden(i32, [3])):
        raw.Tile(input=x, multiples=times)
    for pads in ([[0, 1], [2, 0], [1, 1]], hidden(i32, [3, 2]), hidden(i32)):
        raw.Pad(input=x, paddings=pads)
        for mode in ('REFLECT', 'SYMMETRIC'):
            raw.MirrorPad(input=x, paddings=pads, mode=mode)
            raw.MirrorPad(input=hidden(f32), paddings=pads, mode=mode)
    for axis in (0, -1, n):
        raw.ExpandDims(input=x, axis=axis)
    partly = raw.Shape(input=hidden(f32, [2, None, 3, 4]))  # of which a part is known
    for begin, size in (([0], [2]), ([1], [2]), ([2], [-1]), ([0], [0])):
        raw.Fill(dims=raw.Slice(input=partly, begin=begin, size=size), value=0.0)
    raw.Fill(dims=raw.StridedSlice(input=partly, begin=[1], end=[3], strides=[1]), value=0.0)
    raw.Fill(dims=raw.ConcatV2(values=[partly, [7]], axis=0), value=0.0)
    raw.Range(start=0, limit=n, delta=1)
    raw.Range(start=0, limit=7, delta=2)


def unchanged():
    for x in (hidden(f32, [2, None]), hidden(f32, [2, 3]), hidden(f32)):
        raw.Softmax(logits=x)
        raw.LogSoftmax(logits=x)
        raw.Cumsum(x=x, axis=0)
        raw.Cumsum(x=x, axis=scalar())
        raw.Relu(features=x)
        raw.AddV2(x=x, y=hidden(f32, [2, 1]))
        raw.AddV2(x=x, y=hidden(f32, [None]))
        raw.Select(condition=hidden(tf.bool, [2]), x=x, y=x)
        raw.MatMul(a=hidden(f32, [None, 2]), b=hidden(f32, [2, 5]))
        raw.SegmentSum(data=x, segment_ids=hidden(i32, [2]))
        raw.UnsortedSegmentSum(data=x, segment_ids=hidden(i32, [2]), num_segments=scalar())
        raw.UnsortedSegmentSum(data=x, segment_ids=hidden(i32, [2]), num_segments=4)


def windows():
    for x in (hidden(f32, [None, 8, 9, 3]), hidden(f32, [2, None, 9, 3]), hidden(f32)):
        raw.MaxPool(input=x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding='VALID')
        raw.MaxPoolV2(input=x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding='SAME')
        raw.MaxPoolV2(input=x, ksize=hidden(i32, [4]), strides=[1, 2, 1, 1], padding='SAME')
        raw.AvgPool(value=x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding='SAME')
        raw.Conv2D(input=x, filter=hidden(f32, [2, 3, 3, 7]), strides=[1, 2, 1, 1], padding='SAME')
        raw.Conv2D(input=x, filter=hidden(f32), strides=[1, 2, 1, 1], padding='VALID')


def blocks():
    for x in (hidden(f32, [None, 6, 9, 4]), hidden(f32, [12, None, 9, 4]), hidden(f32)):
        for block in ([2, 3], hidden(i32, [2])):
            for edges in ([[0, 2], [1, 2]], hidden(i32), hidden(i32, [2, 2])):
                raw.SpaceToBatchND(input=x, block_shape=block, paddings=edges)
                raw.BatchToSpaceND(input=x, block_shape=block, crops=edges)
        for edges in ([[0, 0], [1, 2]], hidden(i32)):
            raw.SpaceToBatch(input=x, paddings=edges, block_size=3)
            raw.BatchToSpace(input=x, crops=edges, block_size=2)
        for data_format in ('NHWC', 'NCHW'):
            raw.DepthToSpace(input=hidden(f32, [None, 8, None, 8]), block_size=2, data_format=data_format)
            raw.SpaceToDepth(input=hidden(f32, [2, 6, 3, None]), block_size=3, data_format=data_format)
        raw.ExtractImagePatches(images=x, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding='SAME')


def volumes():
    for x in (hidden(f32, [None, 8, 9, 7, 3]), hidden(f32, [2, None, 9, 8, 3]), hidden(f32)):
        window = {'ksize': [1, 2, 3, 2, 1], 'strides': [1, 2, 1, 2, 1], 'padding': 'VALID'}
        raw.MaxPool3D(input=x, **window)
        raw.AvgPool3D(input=x, **window)
        raw.MaxPool3DGrad(orig_input=x, orig_output=hidden(f32), grad=hidden(f32), **window)
        raw.MaxPool3DGradGrad(orig_input=x, orig_output=hidden(f32, [2, None, None, None, None]), grad=hidden(f32), **window)
        raw.AvgPool3DGrad(orig_input_shape=tf.stack([2, scalar(), 5, 6, 7]), grad=x, **window)
        raw.Conv(input=x, filter=hidden(f32, [2, 2, 2, 3, 4]), strides=[1] * 5, padding='SAME')
    for x in (hidden(f32, [None, 8, 9, 3]), hidden(f32)):
        paddings = [[0, 0], [1, 2], [0, 1], [0, 0]]
        raw.FusedPadConv2D(input=x, paddings=paddings, filter=hidden(f32, [2, None, 3, 4]), mode='REFLECT', strides=[1, 1, 2, 1],
                           padding='VALID')
        raw.FusedResizeAndPadConv2D(input=x, size=hidden(i32, [2]), paddings=paddings, filter=hidden(f32, [2, 2, 3, 4]), mode='REFLECT',
                                    strides=[1, 1, 2, 1], padding='SAME')


def resources():
    queue = raw.FIFOQueueV2(component_types=[f32], shapes=[[2, 3]])
    for n in (4, 0, scalar()):
        raw.QueueDequeueManyV2(handle=queue, n=n, component_types=[f32])
        raw.QueueDequeueUpToV2(handle=queue, n=n, component_types=[f32])
    raw.QueueDequeueV2(handle=queue, component_types=[f32])
    raw.QueueSizeV2(handle=queue)
    array, flow = raw.TensorArrayV3(size=scalar(), dtype=f32, element_shape=[2, None])
    raw.TensorArrayGradV3(handle=array, flow_in=flow, source='g')
    raw.TensorArrayReadV3(handle=array, index=0, flow_in=flow, dtype=f32)
    raw.TensorArraySizeV3(handle=array, flow_in=flow)
    variable = raw.VarHandleOp(dtype=f32, shape=[3, 2])
    raw.ReadVariableOp(resource=variable, dtype=f32)
    raw.ResourceGather(resource=variable, indices=hidden(i32, [None, 4]), dtype=f32)
    for version in ('', 'V2'):
        table = getattr(raw, 'MutableHashTable' + version)(key_dtype=tf.string, value_dtype=i32)
        if version:
            raw.LookupTableFindV2(table_handle=table, keys=hidden(tf.string, [2, None]), default_value=0)
        getattr(raw, 'HashTable' + version)(key_dtype=tf.string, value_dtype=i32)
        getattr(raw, 'PriorityQueue' + version)(component_types=[f32], shapes=[[2]])
    raw.WholeFileReaderV2()
    raw.Barrier(component_types=[f32])
    raw.ConditionalAccumulator(dtype=f32, shape=[2])
    raw.StackV2(max_size=3, elem_type=f32)
    raw.LoopCond(input=hidden(tf.bool))
    for is_constant in (False, True):
        raw.Enter(data=hidden(f32, [2, None]), frame_name=f'f{is_constant}', is_constant=is_constant)
    raw.Switch(data=hidden(f32, [2, None]), pred=hidden(tf.bool))
    raw.Merge(inputs=[hidden(f32, [2, 3]), hidden(f32, [2, 4])])
    raw.Merge(inputs=[hidden(f32, [2, 3]), hidden(f32, [2])])
    raw.Merge(inputs=[hidden(f32, [None, 3]), hidden(f32, [2, 3])])


def gradients_of_functions():
    """Of a function that is an op; each argument is as large as its gradient."""
    v1 = tf.compat.v1
    func = v1.AttrValue()
    func.func.name = 'Mul'
    func.func.attr['T'].type = f32.as_datatype_enum
    types = [v1.AttrValue(list=v1.AttrValue.ListValue(type=[f32.as_datatype_enum] * n)) for n in (3, 2)]
    x, y = hidden(f32, [2, None]), hidden(f32, [3])
    v1.get_default_graph().create_op('SymbolicGradient', [x, y, hidden(f32)], [f32] * 2,
                                     attrs={'f': func, 'Tin': types[0], 'Tout': types[1]})


def shapes_of(build):
    """[(tensor, its shape here, in TensorFlow)] of what |build| makes."""
    with tf.Graph().as_default() as graph:
        build()
    weir = libweir.Graph(libweir.Library(str(conftest.BUILD / 'libweir.so')), graph.as_graph_def(add_shapes=False))
    found = []
    try:
        for tensor in (t for op in graph.get_operations() for t in op.outputs if t.dtype != tf.resource or op.type not in STRING_HANDLES):
            dims = (ctypes.c_int64 * 64)()
            rank = weir.c.weir_edge_dims(weir.edge(tensor.name), dims, 64)
            got = None if rank < 0 else [None if d < 0 else d for d in dims[:rank]]
            found.append((tensor, got, None if tensor.shape.rank is None else tensor.shape.as_list()))
    finally:
        weir.close()
    return found


def show(tensor, got, want):
    return f'{tensor.op.type} {tensor.name} of {[str(i.shape) for i in tensor.op.inputs]}: {got}, in TensorFlow {want}'


def rewritten(op, fused, bounds):
    """A node that oneDNN's graphs are rewritten to."""
    def types(dtypes):
        return AttrValue(list=AttrValue.ListValue(type=[t.as_datatype_enum for t in dtypes]))
    is_product = op == '_QuantizedMatMul'
    inputs = [hidden(tf.quint8, [4, None] if is_product else [1, None, 5, 2]), hidden(tf.qint8, [2, 3] if is_product else [2, 2, 2, 3])]
    inputs += [hidden(f32, [3])] * ('BiasAdd' in fused) + [hidden(f32)] * ('Sum' in fused)
    inputs += [hidden(f32, []), hidden(f32), hidden(f32, bounds), hidden(f32, bounds)]
    attrs = {'fused_ops': AttrValue(list=AttrValue.ListValue(s=[name.encode() for name in fused])), 'Tdevice_inputs': types([]),
             'Thost_inputs': types([x.dtype for x in inputs]), 'Tdevice_outputs': types([f32]), 'Thost_outputs': types([f32, f32])}
    if is_product:
        attrs.update({'T1': AttrValue(type=tf.quint8.as_datatype_enum), 'T2': AttrValue(type=tf.qint8.as_datatype_enum)})
    else:
        attrs.update({'Tsummand': AttrValue(type=f32.as_datatype_enum), 'padding': AttrValue(s=b'SAME'),
                      'strides': AttrValue(list=AttrValue.ListValue(i=[1, 2, 2, 1]))})
    tf.compat.v1.get_default_graph().create_op(op, inputs, [f32, f32, f32], attrs=attrs, name='rewritten')


def quantised():
    """Ops of quantised tensors: those without kernels are seen here alone."""
    window = {'strides': [1, 2, 2, 1], 'padding': 'SAME'}
    for image, kernel, bound in (([1, 5, 5, 2], [2, 2, 2, 3], []), ([1, None, 5, 2], [2, 2, None, 3], None), (None, None, [3])):
        x, f, low = hidden(tf.quint8, image), hidden(tf.qint8, kernel), hidden(f32, [])
        bias, ends = hidden(f32, [3]), {'min_filter': hidden(f32, bound), 'max_filter': hidden(f32, bound)}
        both = {'input': x, 'filter': f, 'min_input': low, 'max_input': low, **window}
        frozen = {'min_freezed_output': low, 'max_freezed_output': low}
        raw.QuantizedConv2DAndRelu(**both, **ends)
        raw.QuantizedConv2DPerChannel(**both, **ends)
        raw.QuantizedConv2DAndReluAndRequantize(**both, **ends, **frozen)
        raw.QuantizedConv2DAndRequantize(**both, min_filter=low, max_filter=low, **frozen)
        raw.QuantizedConv2DWithBias(**both, **ends, bias=bias)
        raw.QuantizedConv2DWithBiasAndRequantize(**both, **ends, **frozen, bias=bias)
        raw.QuantizedConv2DWithBiasSumAndRelu(**both, **ends, bias=bias, summand=bias)
        raw.QuantizedDepthwiseConv2DWithBias(**both, **ends, bias=bias)
    for a, b in (([4, 2], [2, 3]), ([None, 2], None), (None, [2, 3])):
        bounds = {name: low for name in ('min_a', 'max_a', 'min_b', 'max_b')}
        factors = {'a': hidden(tf.quint8, a), 'b': hidden(tf.qint8, b), 'bias': bias, **bounds}
        raw.QuantizedMatMulWithBias(**factors)
        raw.QuantizedMatMulWithBiasAndRequantize(**factors, **frozen)
        raw.QuantizedMatMulWithBiasAndDequantize(**factors, **frozen, Toutput=f32)
    for bounds in ([], [3], None):
        for fused in ([], ['BiasAdd'], ['Requantize'], ['BiasAdd', 'Sum', 'Relu', 'Requantize']):
            rewritten('_FusedQuantizedConv2D', fused, bounds)
            rewritten('_FusedQuantizedDepthwiseConv2D', fused, bounds)
    rewritten('_QuantizedMatMul', [], [])
    raw.QuantizedReluX(features=x, max_value=low, min_features=low, max_features=low)


@pytest.mark.parametrize('build', [gathers, reductions, joins, slices, shaped_by_values, unchanged, windows, blocks, volumes, resources,
                                   gradients_of_functions, quantised])
def test_shapes(build):
    differing = [show(*s) for s in shapes_of(build) if is_weaker(*s[1:]) or not are_compatible(*s[1:])]
    assert not differing, '\n'.join(differing)


def inserted(keys, values):
    raw.BarrierInsertMany(handle=raw.Barrier(component_types=[i32]), keys=hidden(tf.string, keys), values=hidden(i32, values), component_index=0)


@pytest.mark.parametrize('build, shapes, says', [
    (lambda dims: raw.Reshape(tensor=np.zeros((1, 2), np.float32), shape=hidden(i32, dims)), ([],), 'Shape must be rank 1 but is rank 0'),
    (lambda dims: raw.Fill(dims=hidden(i32, dims), value=0), ([],), 'Shape must be rank 1 but is rank 0'),
    (inserted, ([1], []), 'Shape must be at least rank 1 but is rank 0'),
    (inserted, ([], [1]), 'Shape must be rank 1 but is rank 0'),
    (inserted, ([2], [3]), 'must be equal, but are 2 and 3')])
def test_refused(build, shapes, says):
    """What TensorFlow refuses as it reads a graph."""
    with tf.Graph().as_default() as graph:
        build(*[None for _ in shapes])
    graph_def = graph.as_graph_def()
    placeholders = [n for n in graph_def.node if n.op == 'Placeholder']
    for node, dims in zip(placeholders, shapes, strict=True):
        node.attr['shape'].shape.CopyFrom(tf.TensorShape(dims).as_proto())
    with tf.Graph().as_default(), pytest.raises(ValueError, match=says):
        tf.import_graph_def(graph_def)
    with pytest.raises(libweir.Error) as error:
        libweir.Graph(libweir.Library(str(conftest.BUILD / 'libweir.so')), graph_def.SerializeToString())
    assert says in error.value.message


@pytest.mark.parametrize('build', [lambda dims: raw.Fill(dims=dims, value=0.0), lambda dims: raw.StatelessRandomUniform(shape=dims, seed=[1, 1]),
                                   lambda dims: raw.StatelessTruncatedNormal(shape=dims, seed=[1, 1]), lambda dims: raw.Empty(shape=dims, dtype=f32),
                                   lambda dims: raw.StatelessRandomGammaV2(shape=dims, seed=[1, 1], alpha=2.0)])
def test_negative_dimension(build):
    says = 'Invalid value in tensor used for shape: -2'
    with tf.Graph().as_default() as graph:
        build(tf.constant([2, 3], name='dims'))
    graph_def = graph.as_graph_def()
    next(n for n in graph_def.node if n.name == 'dims').attr['value'].tensor.CopyFrom(tf.make_tensor_proto([2, -2], tf.int32))
    with tf.Graph().as_default(), pytest.raises(ValueError, match=says):
        tf.import_graph_def(graph_def)
    with pytest.raises(libweir.Error, match=says):
        libweir.Graph(libweir.Library(str(conftest.BUILD / 'libweir.so')), graph_def.SerializeToString())


def test_no_guess():
    """A permutation of one axis fits a scalar, too."""
    differing = [show(*s) for s in shapes_of(transposes) if s[1] != s[2]]
    assert not differing, '\n'.join(differing)


def test_slices_of_shapes():
    """TensorFlow looks through strided slices only."""
    def build():
        partly = raw.Shape(input=hidden(f32, [2, None, 3, 4]))
        for begin, size in (([0], [2]), ([1], [2]), ([2], [-1]), ([0], [0])):
            raw.Fill(dims=raw.Slice(input=partly, begin=begin, size=size), value=0.0)
    assert [got for tensor, got, _ in shapes_of(build) if tensor.op.type == 'Fill'] == [[2, None], [None, 3], [3, 4], []]
