"""Iterators that a string stands for, and those whose elements go to several devices."""
import numpy as np
import tensorflow as tf
from programs import program
from tensorflow.python.data.ops import multi_device_iterator_ops

raw, tf1 = tf.raw_ops, tf.compat.v1
Dataset = tf.data.Dataset
SPEC = dict(output_types=[tf.int64], output_shapes=[[]])


# ---- strings ----

@program(3)
def anonymous_by_string(p):
    """What the client's copy_to_device does: a string is all that functions have of the iterator."""
    dataset = Dataset.range(3).apply(tf.data.experimental.copy_to_device('/cpu:0'))
    iterator = p.pick(tf1.data.make_one_shot_iterator, tf1.data.make_initializable_iterator)(dataset)
    if 'initializer' in dir(iterator) and iterator._initializer is not None:
        p.step(iterator.initializer)
    element = iterator.get_next()
    for _ in range(5):
        p.step(element)


@program(2)
def anonymous_is_destroyed(p):
    p.is_spread = False  # a string does not bring those who read it to the iterator's device
    handle = raw.AnonymousIterator(**SPEC)
    text = raw.IteratorToStringHandle(resource_handle=handle)
    again = raw.IteratorFromStringHandleV2(string_handle=text, **SPEC)
    with tf.control_dependencies([raw.DestroyResourceOp(resource=again, ignore_lookup_error=False)]):
        p.step(raw.IteratorFromStringHandleV2(string_handle=text, **SPEC).op)
        p.step(raw.DestroyResourceOp(resource=again, ignore_lookup_error=False))


@program(2)
def carried_by_string(p):
    """While its handle lives, an iterator without a name is found by the string; with other components it is refused."""
    handle = p.pick(lambda: raw.AnonymousIteratorV2(**SPEC).handle, lambda: raw.AnonymousIteratorV3(**SPEC))()
    with tf.control_dependencies([raw.MakeIterator(dataset=Dataset.range(2, 5)._variant_tensor, iterator=handle)]):
        text = raw.IteratorToStringHandle(resource_handle=handle)
    again = raw.IteratorFromStringHandleV2(string_handle=text, **SPEC)
    element = raw.IteratorGetNext(iterator=again, **SPEC)
    with tf.control_dependencies(element):
        p.step(element, raw.IteratorGetNext(iterator=handle, **SPEC))
    other = raw.IteratorFromStringHandleV2(string_handle=text, output_types=[tf.float32], output_shapes=[[]])
    with tf.control_dependencies([other]):
        p.step(raw.IteratorGetNext(iterator=handle, **SPEC))


# ---- several devices ----

def shards(p, count, name=''):
    handle = raw.MultiDeviceIterator(devices=['/cpu:0'] * count, shared_name=name, container='', **SPEC)
    shard, incarnation = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.int64, [])
    element = raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=handle, shard_num=shard, incarnation_id=incarnation, **SPEC)
    return handle, lambda k, i=1: p.step(element, feeds={shard: np.int32(k), incarnation: np.int64(i)})


def init(handle, dataset, size=2):
    return raw.MultiDeviceIteratorInit(dataset=dataset._variant_tensor, multi_device_iterator=handle, max_buffer_size=size)


@program(4)
def dealt(p):
    handle, ask = shards(p, 3)
    p.step(init(handle, Dataset.range(8).map(lambda x: 12 // (x - 4)), int(p.rng.integers(1, 4))))
    for k in (0, 1, 2, 0, 2, 1, 1, 0, 2, 0, 1):
        ask(k)
    p.step(init(handle, Dataset.range(2)))
    ask(0)
    for k in (0, 2, 1, 0):
        ask(k, 2)


@program(2)
def waits_for_others(p):
    handle, ask = shards(p, 2)
    p.step(init(handle, Dataset.range(6), 1))
    ask(0)
    ask(0)
    element = raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=handle, shard_num=0, incarnation_id=1, **SPEC)
    p.blocks(element)


@program(3)
def device_handles(p):
    handle, ask = shards(p, 2, 'dealt')
    p.step(init(handle, Dataset.range(4)))
    text = raw.MultiDeviceIteratorToStringHandle(multi_device_iterator=handle)
    again = raw.MultiDeviceIteratorFromStringHandle(string_handle=text, **SPEC)
    p.step(raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=again, shard_num=1, incarnation_id=1, **SPEC))
    p.step(raw.MultiDeviceIteratorFromStringHandle(string_handle=text, output_types=[tf.float32], output_shapes=[[]]).op)
    p.step(raw.MultiDeviceIteratorFromStringHandle(string_handle=text, output_types=[tf.int64], output_shapes=[[3]]).op)
    p.step(raw.MultiDeviceIteratorFromStringHandle(string_handle=p.hide(b'nonsense')).op)
    p.step(raw.MultiDeviceIterator(devices=['/cpu:0'], shared_name='dealt', container='', output_types=[tf.int32], output_shapes=[[]]).op)
    for dataset in (Dataset.from_tensors(np.float32(1)), Dataset.from_tensors(np.int64([1, 2])), Dataset.zip((Dataset.range(2),) * 2)):
        p.step(init(handle, dataset))
    deleter = raw.AnonymousIteratorV2(**SPEC).deleter
    delete = raw.DeleteMultiDeviceIterator(multi_device_iterator=handle, iterators=[], deleter=deleter)
    p.step(delete)


@program(3)
def anonymous_devices(p):
    make = raw.AnonymousMultiDeviceIteratorV3 if p.number % 2 else lambda **a: raw.AnonymousMultiDeviceIterator(**a).handle
    handle = make(devices=['/cpu:0', '/cpu:0'], **SPEC)
    incarnation = init(handle, Dataset.range(7, 10))
    text = raw.MultiDeviceIteratorToStringHandle(multi_device_iterator=handle)
    again = raw.MultiDeviceIteratorFromStringHandle(string_handle=text, **SPEC)
    ask = lambda source, k: raw.MultiDeviceIteratorGetNextFromShard(
        multi_device_iterator=source, shard_num=k, incarnation_id=incarnation, **SPEC)
    first = ask(again, 0)
    with tf.control_dependencies(first):
        p.step(first, ask(handle, 1), ask(handle, 0))


@program(4)
def by_the_client(p):
    """The client's own class: a generator a device, each with the string of the handle."""
    dataset = Dataset.range(int(p.rng.integers(3, 8)))
    size = int(p.rng.integers(0, 3))
    iterator = multi_device_iterator_ops.MultiDeviceIterator(dataset, ['/cpu:0', '/cpu:0'], prefetch_buffer_size=size)
    p.step(iterator.initializer)
    elements = iterator.get_next()
    for _ in range(6):
        p.step(elements[0])
        p.step(elements[1])
