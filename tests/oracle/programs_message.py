"""What errors say where programs of TensorFlow's users look for the text: |says| is in both messages."""
import numpy as np
import tensorflow as tf
from programs import program

raw = tf.raw_ops
tf1 = tf.compat.v1


def fed(value):
    """A value whose shape no shape function sees."""
    return tf1.placeholder_with_default(value, None)


@program(1)
def queues_of_one_name(p):
    def sizes(says, make, one, other):
        queues = [make(component_types=[tf.float32], shared_name=f'q{len(p.steps)}', **{'shapes': [[2]], **attrs}) for attrs in (one, other)]
        p.step(raw.QueueSizeV2(handle=queues[0]))
        p.step(raw.QueueSizeV2(handle=queues[1]), says=says)

    sizes('has capacity 3 but requested capacity was 4', raw.FIFOQueueV2, {'capacity': 3}, {'capacity': 4})
    sizes('component shapes [[2]] but requested component shapes were [[3]]', raw.FIFOQueueV2, {}, {'shapes': [[3]]})
    sizes('component shapes [[2]] but requested component shapes were []', raw.FIFOQueueV2, {}, {'shapes': []})
    sizes('min_after_dequeue 2 but requested min_after_dequeue was 3.', raw.RandomShuffleQueueV2,
          {'min_after_dequeue': 2}, {'min_after_dequeue': 3})
    sizes('random seeds (1, 2) but requested seeds are (1, 3).', raw.RandomShuffleQueueV2,
          {'seed': 1, 'seed2': 2}, {'seed': 1, 'seed2': 3})
    sizes('random seeds (1, 2) but requested seeds are (1, 3).', raw.RandomShuffleQueueV2,
          {'seed': 1, 'seed2': 2}, {'seed': 1, 'seed2': 3, 'shapes': [[3]]})
    sizes('', raw.RandomShuffleQueueV2, {'seed': 1, 'seed2': 2}, {})
    sizes('', raw.PaddingFIFOQueueV2, {'shapes': [[None, 2]]}, {'shapes': [[3, 2]]})
    p.step(raw.QueueSizeV2(handle=raw.FIFOQueueV2(component_types=[tf.float32], shared_name='types')))
    for kinds, text in (([tf.int32], 'int32'), ([tf.float32, tf.int32], 'float, int32')):
        p.step(raw.QueueSizeV2(handle=raw.FIFOQueueV2(component_types=kinds, shared_name='types')),
               says='component types float but requested component types were ' + text)
    p.step(raw.QueueSizeV2(handle=raw.FIFOQueueV2(component_types=[tf.float32], shared_name='kinds')))
    p.step(raw.QueueSizeV2(handle=raw.PaddingFIFOQueueV2(component_types=[tf.float32], shapes=[[]], shared_name='kinds')),
           says='Expected FIFOQueue, found PaddingFIFOQueue')


@program(1)
def accumulators(p):
    one = raw.ConditionalAccumulator(dtype=tf.float32, shape=[2], shared_name='sums')
    other = raw.ConditionalAccumulator(dtype=tf.float32, shape=None, shared_name='sums')
    p.step(raw.AccumulatorNumAccumulated(handle=one))
    p.step(raw.AccumulatorNumAccumulated(handle=other))
    p.step(raw.AccumulatorSetGlobalStep(handle=one, new_global_step=fed(np.int64([1]))),
           says='Argument num_required must be scalar, but had bad shape [1]')
    # Last, since TensorFlow says so and adds the gradient nevertheless.
    p.step(raw.AccumulatorApplyGradient(handle=one, local_step=fed(np.int64([0])), gradient=np.ones(2, np.float32)),
           says='Argument local_step must be scalar, but had bad shape [1]')


@program(1)
def shapes_of_queues(p):
    p.step(raw.QueueSizeV2(handle=raw.PaddingFIFOQueueV2(component_types=[tf.float32])),
           says='Shapes must be provided for all components, but received 1 dtypes and 0 shapes.')
    many = lambda queue, value: raw.QueueEnqueueManyV2(handle=queue, components=[fed(value)])
    one = lambda queue, value: raw.QueueEnqueueV2(handle=queue, components=[fed(value)])
    padded = raw.PaddingFIFOQueueV2(component_types=[tf.int32], shapes=[[2, None, 3]])
    p.step(one(padded, np.zeros((2, 2, 4), np.int32)), says='tuple component 0. Expected [2,?,3], got [2,2,4]')
    p.step(many(padded, np.zeros((5, 2, 2, 4), np.int32)), says='tuple component 0. Expected [5,2,?,3], got [5,2,2,4]')
    scalars = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]])
    p.step(many(scalars, np.zeros((2, 2), np.int32)), says='tuple component 0. Expected [2], got [2,2]')
    unknown = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[None])  # read as a scalar
    p.step(one(unknown, np.zeros(2, np.int32)), says='tuple component 0. Expected [], got [2]')
    p.step(one(unknown, np.int32(2)))
    partial = raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[None, 2]])
    p.step(one(partial, np.zeros((2, 2), np.int32)), says='Shape [?,2] is not fully defined')
    p.step(raw.QueueDequeueManyV2(handle=raw.FIFOQueueV2(component_types=[tf.int32]), n=1, component_types=[tf.int32]),
           says="FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.")


@program(1)
def barriers(p):
    def sizes(name, says, types, shapes):
        b = raw.Barrier(component_types=types, shapes=shapes, shared_name=name)
        p.step(raw.BarrierReadySize(handle=b), says=says)

    sizes('types', None, [tf.float32], [[]])
    sizes('types', "Shared barrier 'types' has component types float but requested component types were int32", [tf.int32], [[]])
    sizes('shapes', None, [tf.float32], [[2]])
    sizes('shapes', 'has component shapes [[2]] but requested component shapes were [[3]]', [tf.float32], [[3]])
    sizes('partial', 'Shape [?,2] is not fully defined', [tf.float32], [[None, 2]])
    unknown = raw.Barrier(component_types=[tf.float32], shapes=[None])
    insert = lambda value: raw.BarrierInsertMany(handle=unknown, keys=[b'key'], values=fed(value), component_index=0)
    p.step(insert(np.zeros((1, 0), np.float32)), says='Tensors with no elements are not supported')
    p.step(insert(np.ones(1, np.float32)))
    p.step(raw.BarrierReadySize(handle=unknown))


@program(1)
def variables_not_set(p):
    """The message names the variable, whoever reads or writes it."""
    v = raw.VariableV2(shape=[2], dtype=tf.float32, name='weights')
    says = 'Attempting to use uninitialized value weights'
    index, update = np.int32([0]), np.float32([1])
    for use in (raw.Identity(input=v), raw.AssignAdd(ref=v, value=np.ones(2, np.float32)),
                raw.AssignSub(ref=v, value=np.ones(2, np.float32)), raw.ScatterAdd(ref=v, indices=index, updates=update),
                raw.ScatterNdUpdate(ref=v, indices=[[0]], updates=update),
                raw.ApplyGradientDescent(var=v, alpha=np.float32(1), delta=np.ones(2, np.float32)),
                raw.ApplyMomentum(var=v, accum=v, lr=np.float32(1), grad=np.ones(2, np.float32), momentum=np.float32(1)),
                raw.StridedSliceAssign(ref=v, begin=[0], end=[1], strides=[1], value=update)):
        p.step(use, says=says)
    p.step(raw.Assign(ref=v, value=np.ones(2, np.float32)))
    p.step(raw.AssignAdd(ref=v, value=np.ones(2, np.float32)))


@program(1)
def shape_ensured(p):
    """The message names the node whose shape it is."""
    derived = tf.add(fed(np.ones((2, 1), np.float32)), 3, name='derived')
    says = 'Shape of tensor derived [2,1] is not compatible with expected shape [3,?].'
    p.step(raw.EnsureShape(input=derived, shape=[3, None]), says=says)
    p.step(raw.EnsureShape(input=derived, shape=[2, None]))


@program(1)
def arrays(p):
    sizes = lambda value: fed(np.int32(value))
    p.step(raw.ConcatOffset(concat_dim=1, shape=[sizes([2, 3, 5]), sizes([2, 7, 10])]),
           says="All dimensions except 1 must match. Input 1 has shape [2 7 10] and doesn't match input 0 with shape [2 3 5].")
    p.step(raw.ConcatOffset(concat_dim=sizes([1]), shape=[sizes([2]), sizes([2])]), says='scalar integer, but got shape [1]')
    p.step(raw.ConcatOffset(concat_dim=0, shape=[sizes([[2]]), sizes([2])]), says='input 1 should be a vector, but got shape [1,1]')
    p.step(raw.SplitV(value=np.zeros(4), size_splits=[1, 3], axis=sizes([]), num_split=2), says='must have exactly one element')
    data, ids = np.ones((4, 2), np.float32), np.int32([0, 5])
    p.step(raw.SparseSegmentSumWithNumSegments(data=data, indices=np.int32([0, 1]), segment_ids=ids, num_segments=fed(np.int32(3))),
           says='segment ids must be < num_segments')
    p.step(raw.SparseSegmentSumWithNumSegments(data=data, indices=np.int32([9, 1]), segment_ids=ids, num_segments=fed(np.int32(3))),
           says='segment ids must be < num_segments')


@program(1)
def parts_of_arrays(p):
    array = raw.TensorArrayV3(size=2, dtype=tf.float32)
    p.step(raw.TensorArraySplitV3(handle=array.handle, value=fed(np.zeros(3, np.float32)), lengths=fed(np.int64([1, -2])), flow_in=array.flow),
           says="Expected sum of lengths to be equal to values.shape[0], but sum of lengths is -1 and value's shape is: [3]")


@program(1)
def items_of_lists(p):
    empty = raw.EmptyTensorList(element_shape=fed(np.int32([2])), max_num_elements=1, element_dtype=tf.float32)
    for index in (0, -1, 3):
        for dims, says in (([2, 1], 'Tried to set a tensor with incompatible shape at a list index. Item element shape: [2,1] list shape: [2]'),
                           ([2], f'Trying to modify element {index} in a list with 0 elements')):
            made = raw.TensorListSetItem(input_handle=empty, index=fed(np.int32(index)), item=fed(np.zeros(dims, np.float32)))
            p.step(raw.TensorListLength(input_handle=made), says=says)


@program(1)
def sizes_of_ranges(p):
    """More than fits is an error before there is memory for it."""
    number = lambda value: fed(value)
    too_many = 'Requires ((limit - start) / delta) <= 9223372036854775807'
    p.step(raw.Range(start=np.float32(0), limit=number(np.float32(1e30)), delta=np.float32(1)), says=too_many)
    p.step(raw.Range(start=np.float32(0), limit=number(np.float32(np.inf)), delta=np.float32(1)), says=too_many)
    p.step(raw.Range(start=np.int64(-2**63), limit=number(np.int64(2**62)), delta=np.int64(1)), says=too_many)
    p.step(raw.Range(start=np.float32(0), limit=number(np.float32(np.nan)), delta=np.float32(1)),
           says='Requires start <= limit when delta > 0: 0/nan')
    p.step(raw.Range(start=np.int64(0), limit=number(np.int64(2**63 - 1)), delta=np.int64(1)),
           says='OOM when allocating tensor with shape[9223372036854775807] and type int64')
    p.step(raw.Range(start=np.float32(0), limit=number(np.float32(1e15)), delta=np.float32(1)), says='OOM when allocating')
    p.step(raw.Fill(dims=number(np.int64([2**40, 2**40])), value=1.0), says='would have more than 2**63 - 1 elements')
    p.step(raw.Fill(dims=number(np.int64([2**62])), value=1.0), says='OOM when allocating')


@program(1)
def lists_and_arrays(p):
    array = raw.TensorArrayV3(size=3, dtype=tf.float32)
    split = lambda lengths: raw.TensorArraySplitV3(handle=array[0], value=np.ones(3, np.float32), lengths=lengths, flow_in=array[1])
    p.step(split(fed(np.int64(1))), says='Expected lengths to be a vector, received shape: []')
    made = raw.EmptyTensorList(element_shape=-1, max_num_elements=-1, element_dtype=tf.float32)
    for value in (np.ones(2, np.float32), np.ones((2, 2), np.float32)):
        made = raw.TensorListPushBack(input_handle=made, tensor=fed(value))
    p.step(raw.TensorListConcatV2(input_handle=made, element_shape=-1, leading_dims=np.zeros(0, np.int64), element_dtype=tf.float32),
           says='Incompatible ranks')
    sums = raw.SparseConditionalAccumulator(dtype=tf.float32, shape=[2, 2])
    p.step(raw.SparseAccumulatorApplyGradient(handle=sums, local_step=np.int64(0), gradient_indices=fed(np.int64([[0]])),
                                              gradient_values=fed(np.float32([[1]])), gradient_shape=np.int64([]),
                                              has_known_shape=False), says='Input indices should be vector but received shape: [1,1]')
    variable = raw.VarHandleOp(dtype=tf.float32, shape=[])
    p.step(raw.VarIsInitializedOp(resource=raw.GuaranteeConst(input=variable)),
           says='Input tensor cannot be a resource variable handle.')


@program(1)
def examples(p):
    def feature(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'x', b'y', b'z']))
    written = tf.train.Example(features=tf.train.Features(feature={'a': feature([1, 2]), 't': text})).SerializeToString()

    def dense(key, dtype, shape, names=(), before=()):
        return raw.ParseExampleV2(serialized=fed(np.array([*before, written], object)), names=np.array(names, object).astype('S'),
                                  sparse_keys=np.array([], 'S'), dense_keys=[key.encode()], ragged_keys=np.array([], 'S'),
                                  dense_defaults=[np.zeros(0, dtype)], num_sparse=0, sparse_types=[], ragged_value_types=[],
                                  ragged_split_types=[], dense_shapes=[shape])

    p.step(dense('a', np.int64, [1], ['first']),
           says='Name: first, Key: a, Index: 0.  Number of int64 values != expected.  Values size: 2 but output shape: [1]')
    p.step(dense('a', np.float32, [2]), says="Name: <unknown>, Key: a, Index: 0.  Data types don't match. Data type: int64 but expected")
    p.step(dense('b', np.int64, [2]), says='Name: <unknown>, Feature: b (data type: int64) is required but could not be found.')
    # Of two examples that are wrong, the first.
    p.step(dense('a', np.float32, [2], before=[b'']), says='Name: <unknown>, Feature: a (data type: float) is required but could not be found.')
    p.step(dense('a', np.int64, [1], before=[b'x']), says='Could not parse example input')
    p.step(dense('t', np.dtype('S'), [5]), says='Key: t, Index: 0.  Number of bytes values != expected.  Values size: 3')


@program(1)
def gathers(p):
    def rows(params, indices, says):
        p.step(raw.GatherNd(params=fed(np.zeros(params, np.float32)), indices=fed(indices)), says=says)

    rows([], np.zeros((1, 0), np.int32), 'params must be at least a vector')
    rows([3], np.int32(0), 'indices must be at least a vector')
    rows([3], np.zeros((2, 2), np.int32), 'index innermost dimension length must be <= params rank; saw: 2 vs. 1')
    rows([3], np.array([[0], [3]], np.int32), 'indices[1] = [3] does not index into param shape [3]')


@program(1)
def stitches(p):
    for op in (raw.DynamicStitch, raw.ParallelDynamicStitch):
        p.step(op(indices=[fed(np.int32([0, -1, 3]))], data=[fed(np.zeros((1, 3), np.float32))]), says='is out of range')
        p.step(op(indices=[fed(np.int32([0, 1, 3]))], data=[fed(np.zeros((1, 3), np.float32))]),
               says='data[0].shape = [1,3] does not start with indices[0].shape = [3]')


@program(1)
def scatters(p):
    def both(indices, updates, dims, one, other):
        ids, rows = fed(np.zeros(indices, np.int32)), fed(np.zeros(updates, np.float32))
        p.step(raw.ScatterNd(indices=ids, updates=rows, shape=fed(np.int32(dims))), says=one)
        p.step(raw.TensorScatterAdd(tensor=fed(np.zeros(dims, np.float32)), indices=ids, updates=rows), says=other)

    both([4, 1], [4, 2], [4, 2, 2], 'Dimensions [1,3) of input[shape=[4,2,2]] must match dimensions [1,2) of updates[shape=[4,2]]',
         'Inner dimensions of output shape must match inner dimensions of updates shape. Output: [4,2,2] updates: [4,2]')
    both([4, 1], [3, 2], [4, 2], 'Dimensions [0,1) of indices[shape=[4,1]] must match dimensions [0,1) of updates[shape=[3,2]]',
         'Outer dimensions of indices and update must match. Indices shape: [4,1], updates shape:[3,2]')
    both([], [4], [4], *['Indices shape must have rank at least one. Found:[]'] * 2)
    both([4, 1], [], [4], *['Updates shape must have rank at least one. Found:[]'] * 2)


@program(1)
def windows(p):
    for bad, says in enumerate(('ksize', 'stride')):
        sizes = [fed(np.ones(3 if i == bad else 4, np.int32)) for i in range(2)]
        p.step(raw.MaxPoolV2(input=np.zeros((1, 4, 4, 1), np.float32), ksize=sizes[0], strides=sizes[1], padding='VALID'),
               says=f'Sliding window {says} field must specify 4 dimensions')


@program(1)
def merged_checkpoints(p):
    def merge(prefixes, destination, says):
        p.step(raw.MergeV2Checkpoints(checkpoint_prefixes=fed(prefixes), destination_prefix=fed(destination)), says=says)

    merge('a', 'b', 'Input checkpoint_prefixes should be an 1-D tensor, got [] instead.')
    merge([['a']], 'b', 'Input checkpoint_prefixes should be an 1-D tensor, got [1,1] instead.')
    merge(['a'], ['b'], 'Input destination_prefix should be a scalar tensor, got [1] instead.')


@program(1)
def unravelled(p):
    for shape, text in (((), '[]'), ((1, 2), '[1,2]')):
        p.step(raw.UnravelIndex(indices=[1], dims=fed(np.full(shape, 3, np.int32))), says=f'The indices can only be 1-D, got "{text}"')
