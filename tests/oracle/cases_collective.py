"""Collectives of groups of one, which a kernel alone can show: types, shapes, keys, errors. Groups of more are in
src/ops/collective/hub_test.c and tests/cluster/collectives_test.py."""
import numpy as np
from ml_dtypes import bfloat16

NUMBERS = (bfloat16, np.float16, np.float32, np.float64, np.int32, np.int64)
PLAIN = NUMBERS[1:]
ONE = [np.int32(1), np.int32(7), np.int32(8)]
KEYS = {'group_size': 1, 'group_key': 7, 'instance_key': 8}
SHAPES = ((), (0,), (3,), (1, 2, 0), (1, 4))


def draw(rng, t, shape):
    return np.asarray(rng.standard_normal(shape) * 9).astype(t)


def reductions(check, rng):
    ways = [{'merge_op': merge, 'final_op': final} for merge in ('Add', 'Mul', 'Min', 'Max') for final in ('Id', 'Div')]
    for t in NUMBERS:
        for shape in SHAPES:
            way = ways[int(rng.integers(len(ways)))]
            check('CollectiveReduce', [draw(rng, t, shape)], {**KEYS, **way, 'subdiv_offsets': [0]})
            check('CollectiveReduceV2', [draw(rng, t, shape), *ONE], way)
            if len(shape) and 0 not in shape:  # TensorFlow has no implementation for CPUs
                check('CollectiveReduceScatterV2', [draw(rng, t, shape), *ONE], way, tf_only_fails=True)
    x, way = np.float32([1, 2]), ways[0]
    for size in (0, -1):
        check('CollectiveReduce', [x], {**KEYS, **way, 'subdiv_offsets': [], 'group_size': size})
        check('CollectiveReduceV2', [x, np.int32(size), *ONE[1:]], way)
    for i in range(3):
        keys = [np.int32([1]) if i == j else key for j, key in enumerate(ONE)]
        check('CollectiveReduceV2', [x, *keys], way)


def moves(check, rng):
    for t in (np.bool_, *PLAIN):
        for shape in SHAPES:
            x = draw(rng, t, shape)
            check('CollectiveBcastSend', [x], {**KEYS, 'shape': shape})
            check('CollectiveBcastSendV2', [x, *ONE])
            if t is not np.bool_ and shape and 0 not in shape:  # TensorFlow crashes on empty ones
                check('CollectiveGather', [x], {**KEYS, 'shape': shape})
                check('CollectiveGatherV2', [x, *ONE])
    for t in NUMBERS:
        for shape in ((1,), (1, 3)):  # TensorFlow wants an option of the step for it
            check('CollectiveAllToAllV2', [draw(rng, t, shape), *ONE], tf_only_fails=True)
    x = np.float32([1, 2])
    check('CollectiveGather', [np.float32(1)], {**KEYS, 'shape': ()})
    check('CollectiveGather', [x], {**KEYS, 'shape': (7,)})
    check('CollectiveBcastSend', [x], {**KEYS, 'shape': (3,)})
    check('CollectiveBcastSend', [x], {**KEYS, 'shape': (None,)})
    check('CollectiveBcastRecv', [], {**KEYS, 'shape': (2,), 'T': np.float32})
    for shape in (np.int32([2]), np.int64([2, 3]), np.int32([[2]]), np.int32([-1])):
        check('CollectiveBcastRecvV2', [*ONE, shape], {'T': np.float32})


def groups(check):
    table = np.int32([[0, 1], [2, 3]])
    for device in (0, 1, 2, 3, 4, -1):
        check('CollectiveAssignGroupV2', [table, np.int32(device), np.int32(5)])
    for key in (0, -1, 2**31 - 1):
        check('CollectiveAssignGroupV2', [table, np.int32(2), np.int32(key)])
    for bad in ([[0, -1]], [[0, 7]], [[7, 0]], [[-1, 0]], [[1, 1], [9, 0]], [0, 1], np.zeros((0, 2))):
        check('CollectiveAssignGroupV2', [np.int32(bad), np.int32(0), np.int32(5)])
    check('CollectiveAssignGroupV2', [table, np.int32([2]), np.int32(1)])
    check('CollectiveAssignGroupV2', [table, np.int32(2), np.int32([1])])
    for group in ((7, 0, 1), (7, 1, 1), (7, -1, 1), (7, 0, 0), ([7], 0, 1), (7, [0], 1), (7, 0, [1])):
        if group[1:] != (0, 1) or group[0] != 7:  # a handle cannot be looked into
            check('CollectiveInitializeCommunicator', [np.int32(x) for x in group])


def cases(check, rng):
    reductions(check, rng)
    moves(check, rng)
    groups(check)
