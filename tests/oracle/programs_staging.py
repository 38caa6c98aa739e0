"""Staging areas, with and without keys. What waits holds a thread in TensorFlow, for ever where there is but one: nothing here waits."""
import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1


@program(40)
def staging_area(p):
    """Puts, looks and takes in random order, never one that would wait."""
    rng, types = p.rng, [tf.int32, tf.float32, tf.string][:int(p.rng.integers(1, 4))]
    attrs = {'dtypes': types, 'shared_name': 'area' if rng.integers(2) else '', 'container': p.pick('', 'c'), 'capacity': int(p.pick(0, 0, 5))}
    if not attrs['shared_name']:
        attrs['shared_name'] = 's'
    values = [tf1.placeholder(t, None) for t in types]
    stage = raw.Stage(values=values, **{k: v for k, v in attrs.items() if k != 'dtypes'})
    index = tf1.placeholder(tf.int32, None)
    unstage, peek = raw.Unstage(**attrs), raw.StagePeek(index=index, **attrs)
    size, clear = raw.StageSize(**attrs), raw.StageClear(**attrs)
    count = 0
    for _ in range(int(rng.integers(5, 15))):
        action = rng.integers(6)
        if action <= 1 and (attrs['capacity'] == 0 or count < attrs['capacity']):
            drawn = [rng.integers(9, size=2), rng.standard_normal(), b'text%d' % rng.integers(99)]
            p.step(stage, feeds=dict(zip(values, drawn)))
            count += 1
        elif action == 2 and count:
            p.step(*unstage)
            count -= 1
        elif action == 3 and count:
            p.step(*peek, feeds={index: int(rng.integers(count))})
        elif action == 4 and rng.integers(3) == 0:
            p.step(clear)
            count = 0
        p.step(size)
    p.step(*peek, feeds={index: [0]})


@program(12)
def staging_errors(p):
    """Tuples that do not fit; more than the limit of memory."""
    area = {'shared_name': 'x'}
    p.step(raw.Stage(values=[tf.constant(1), tf.constant(2.0)], **area))
    p.step(*raw.Unstage(dtypes=[tf.int32], **area))
    p.step(raw.StageSize(dtypes=[], **area))
    p.step(raw.Stage(values=[tf.constant(1), tf.constant(2.0)], **area))
    p.step(*raw.Unstage(dtypes=[tf.float32, tf.float32], **area))
    limited = {'shared_name': 'y', 'memory_limit': int(p.pick(4, 8, 12))}
    p.step(raw.Stage(values=[tf.constant(1), tf.constant(2.0)], **limited))
    p.step(raw.StageSize(dtypes=[], **limited))


@program(40)
def staging_map(p):
    """Tuples under keys, whole and in parts."""
    rng, kind = p.rng, p.pick('Map', 'OrderedMap')

    def op(name, **kwargs):
        return getattr(raw, kind + name)(shared_name='m', **kwargs)

    types = [tf.int32, tf.float32]
    key, indices = tf1.placeholder(tf.int64, None), tf1.placeholder(tf.int32, None)
    a, b = tf1.placeholder(tf.int32, None), tf1.placeholder(tf.float32, None)
    whole = op('Stage', key=key, indices=indices, values=[a, b], dtypes=types)
    first, second = (op('Stage', key=key, indices=[i], values=[v], dtypes=types) for i, v in ((0, a), (1, b)))
    get, get_first = op('Unstage', key=key, indices=indices, dtypes=types), op('Unstage', key=key, indices=[0], dtypes=types[:1])
    peek = op('Peek', key=key, indices=indices, dtypes=types)
    sizes = [op('Size', dtypes=types), op('IncompleteSize', dtypes=types)]
    get_any = op('UnstageNoKey', indices=[0, 1], dtypes=types)
    there, partly, begun = set(), set(), {}
    spoiled = set()  # keys of which a refused step left a part: never whole again
    for _ in range(int(rng.integers(8, 20))):
        k, action = int(rng.integers(5)), rng.integers(8)
        feeds = {key: k, a: rng.integers(9, size=3), b: rng.standard_normal(), indices: [0, 1]}
        if action == 0:
            p.step(whole, feeds=feeds)
            there.add(k)
        elif action in (1, 2):
            p.step(first if action == 1 else second, feeds=feeds)
            if k in spoiled:
                pass
            elif begun.get(k, {action}) != {action}:
                del begun[k]
                there.add(k)
            else:
                begun[k] = {action}
        elif action == 3 and k in there:
            p.step(*peek, feeds=feeds)
        elif action == 4 and k in there:
            p.step(*get, feeds=feeds)
            if k not in partly:
                there.discard(k)
        elif action == 5 and k in there:
            p.step(*get_first, feeds=feeds)
            partly.add(k)
        elif action == 6 and there and not partly and not spoiled and (kind == 'OrderedMap' or len(there) == 1):
            p.step(get_any.key, *get_any.values)
            there.discard(min(there))
        elif action == 7:
            p.step(whole, feeds={**feeds, indices: p.pick([1, 0], [0, 0], [], [0, 1, 2])})
            if begun.pop(k, None):
                spoiled.add(k)
            p.step(whole, feeds={**feeds, key: p.pick([], [1, 2], [[3, 4]])})
            p.step(first, feeds={**feeds, key: 99})
            p.step(first, feeds={**feeds, key: 99})
            p.step(op('Stage', key=key, indices=[int(p.pick(-1, 2, 5))], values=[a], dtypes=types), feeds={**feeds, key: 77})
        p.step(*sizes)
    p.step(op('Clear', dtypes=types))
    p.step(*sizes)
    p.step(whole, feeds={key: 1, a: 1, b: 2.0, indices: [0, 1]})
    p.step(*op('Unstage', key=key, indices=[0, 1], dtypes=[tf.float32, tf.float32]), feeds={key: 1})
    p.step(*sizes)


@program(16)
def staging_limits(p):
    """What counts against a limit of memory: all of a tuple, but of one under a key only its last tensor; what is got, or looked at, is taken off."""
    kind = p.pick('Map', 'OrderedMap')
    area = {'shared_name': 'm', 'memory_limit': 100}
    types = [tf.uint8, tf.uint8]
    a, b = tf1.placeholder(tf.uint8, None), tf1.placeholder(tf.uint8, None)
    key = tf1.placeholder(tf.int64, [])

    def op(name, **kwargs):
        return getattr(raw, kind + name)(dtypes=types, **area, **kwargs)

    put, part = op('Stage', key=key, indices=[0, 1], values=[a, b]), op('Stage', key=key, indices=[1], values=[b])
    peek, get, size = op('Peek', key=key, indices=[0, 1]), op('Unstage', key=key, indices=[0, 1]), op('Size')

    def feeds(k, first, second):
        return {key: k, a: np.zeros(first, np.uint8), b: np.zeros(second, np.uint8)}

    p.step(put, feeds=feeds(0, 1, 101))
    p.step(part, feeds=feeds(0, 1, 101))
    p.step(put, feeds=feeds(0, 10, 40))
    p.step(put, feeds=feeds(1, 1000, 40))
    p.step(part, feeds=feeds(2, 0, 20))
    p.step(size)
    p.step(*get, feeds={key: 0})
    p.step(put, feeds=feeds(4, 700, 50))
    p.step(size)
    p.step(op('Clear'))
    p.step(put, feeds=feeds(5, 40, 40))
    p.step(*peek, feeds={key: 5})
    p.step(put, feeds=feeds(6, 100, 100))
    p.step(size)
    words = {'values': [tf.constant(['abc', 'd' * int(p.pick(48, 49))])], 'memory_limit': 99}
    p.step(raw.Stage(shared_name='words', **words))
    p.step(raw.MapStage(key=1, indices=[0], dtypes=[tf.string], shared_name='words_by_key', **words))
