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
def shapes_of_queues(p):
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
