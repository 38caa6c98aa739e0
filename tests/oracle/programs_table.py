"""Lookup tables."""
import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1
STATIC = [(np.int64, object), (object, np.int64), (object, object), (np.int64, np.int64), (object, np.float32),
          (object, np.int32), (np.int64, np.float32), (np.int32, object), (np.int64, np.float64), (np.int64, np.int32),
          (object, np.bool_), (object, np.float64), (np.int32, np.float32), (np.int32, np.int32), (np.int32, np.float64)]
MUTABLE = [(np.int64, object), (object, np.int64), (np.int64, np.int64), (object, np.float32), (object, np.int32),
           (np.int64, np.float32), (np.int64, np.float64), (object, np.bool_), (object, np.float64), (np.int64, np.int32),
           (np.int32, np.float32), (np.int32, np.int32)]


def tf_type(t):
    return tf.string if t is object else tf.as_dtype(t)


def draw(rng, t, n):
    if t is object:
        out = np.empty(n, object)
        out[:] = [b'v%d' % rng.integers(99) + b'y' * int(rng.integers(30)) for _ in range(n)]
        return out
    return rng.integers(0, 2 if t is np.bool_ else 99, n).astype(t)


def draw_keys(rng, t, n):
    keys = rng.permutation(12)[:n]
    if t is object:
        out = np.empty(n, object)
        out[:] = [b'key %d' % k for k in keys]
        return out
    return (keys - 3).astype(t)


class Table:
    def __init__(self, p, kind, pairs, is_v2):
        self.p, self.v2 = p, 'V2' if is_v2 else ''
        self.key, self.value = pairs[p.number % len(pairs)]
        attrs = {}
        if p.rng.integers(3) == 0:
            attrs = {'shared_name': 'table', 'use_node_name_sharing': False}
        self.handle = getattr(raw, kind + self.v2)(key_dtype=tf_type(self.key), value_dtype=tf_type(self.value), **attrs)
        self.keys, self.values = tf1.placeholder(tf_type(self.key), None), tf1.placeholder(tf_type(self.value), None)
        default = draw(p.rng, self.value, 1)[0]
        self.default = p.hide(np.asarray(default, object if self.value is object else self.value))
        self.find = self.call('LookupTableFind', keys=self.keys, default_value=self.default)
        self.size = self.call('LookupTableSize')
        self.export = self.call('LookupTableExport', Tkeys=tf_type(self.key), Tvalues=tf_type(self.value))

    def call(self, name, **kwargs):
        return getattr(raw, name + self.v2)(table_handle=self.handle, **kwargs)

    def content(self, n=None):
        n = int(self.p.rng.integers(0, 7)) if n is None else n
        return {self.keys: draw_keys(self.p.rng, self.key, n), self.values: draw(self.p.rng, self.value, n)}

    def look(self):
        n = int(self.p.rng.integers(0, 9))
        keys = draw_keys(self.p.rng, self.key, n)
        if n % 2 == 0:
            keys = keys.reshape(2, n // 2)
        self.p.step(self.find, self.size, feeds={self.keys: keys})

    def look_at_all(self):
        """Exports are in no order: their number, and every key's value."""
        self.p.step(tf.size(self.export.keys), tf.size(self.export.values))
        self.p.step(self.call('LookupTableFind', keys=self.export.keys, default_value=self.default)[:0])
        self.p.step(self.find, feeds={self.keys: draw_keys(self.p.rng, self.key, 12)})


def static(p, is_v2):
    t = Table(p, 'HashTable', STATIC, is_v2)
    set_all = t.call('InitializeTable' if p.rng.integers(2) else 'LookupTableImport', keys=t.keys, values=t.values)
    t.look()
    first = t.content()
    p.step(set_all, feeds=first)
    t.look()
    p.step(set_all, feeds=first if p.rng.integers(2) else t.content())
    t.look()
    t.look_at_all()


@program(60)
def hash_table(p):
    static(p, True)


@program(45)
def hash_table_by_reference(p):
    static(p, False)


def mutable(p, is_v2):
    t = Table(p, 'MutableHashTable', MUTABLE, is_v2)
    insert = t.call('LookupTableInsert', keys=t.keys, values=t.values)
    replace = t.call('LookupTableImport', keys=t.keys, values=t.values)
    remove = t.call('LookupTableRemove', keys=t.keys) if is_v2 else None
    for _ in range(int(p.rng.integers(2, 7))):
        action = int(p.rng.integers(6))
        if action < 3:
            p.step(insert, feeds=t.content())
        elif action == 3:
            p.step(replace, feeds=t.content())
        elif action == 4 and is_v2:
            p.step(remove, feeds={t.keys: draw_keys(p.rng, t.key, int(p.rng.integers(0, 5)))})
        else:
            feeds = t.content(2)
            feeds[t.values] = draw(p.rng, t.value, 3)
            p.step(insert, feeds=feeds)
        t.look()
    t.look_at_all()


@program(60)
def mutable_hash_table(p):
    mutable(p, True)


@program(45)
def mutable_hash_table_by_reference(p):
    mutable(p, False)


@program(30)
def tables_of_one_name(p):
    """Shared by name; of another type an error."""
    a = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name='same')
    second = p.pick(tf.int64, tf.int64, tf.float32)
    b = raw.HashTableV2(key_dtype=tf.string, value_dtype=second, shared_name='same', container=p.pick('', '', 'other'))
    n = int(p.rng.integers(1, 5))
    p.step(raw.LookupTableImportV2(table_handle=a, keys=[f'k{i}' for i in range(n)], values=p.rng.integers(0, 9, n)))
    p.step(raw.LookupTableSizeV2(table_handle=b))
    p.step(raw.LookupTableFindV2(table_handle=b, keys=['k0', 'no'], default_value=tf.cast(-1, second)))


@program(40)
def table_from_file(p):
    """Lines, columns and line numbers; files that do not fit."""
    key, value = p.pick((tf.string, tf.int64), (tf.int64, tf.string), (tf.string, tf.string), (tf.string, tf.float32), (tf.int32, tf.float64),
                        (tf.string, tf.int32), (tf.string, tf.bool))
    lines = p.pick('a\t1\nb\t2\nc\t3\n', '1\t2\n3\t4', '1\t0.5\r\n2\t1e3\r\n', 'a\nb\n', 'a\n\nb\n', '', 'a,7\nb,8,9\n', '5\n6\n7\n')
    path = p.write('words.txt', lines.encode())
    is_v2 = bool(p.rng.integers(2))
    table = (raw.HashTableV2 if is_v2 else raw.HashTable)(key_dtype=key, value_dtype=value)
    fill = (raw.InitializeTableFromTextFileV2 if is_v2 else raw.InitializeTableFromTextFile)(
        table_handle=table, filename=p.pick(path, path, path, 'nothing.txt'), key_index=p.pick(-2, -2, -1, 0, 1), value_index=p.pick(-2, -1, -1, 0, 1, 2),
        vocab_size=p.pick(-1, -1, -1, 0, 2, 9), delimiter=p.pick('\t', '\t', ','), offset=p.pick(0, 0, 3))
    v2 = 'V2' if is_v2 else ''
    size = getattr(raw, 'LookupTableSize' + v2)(table_handle=table)
    keys = p.hide(np.array([b'a', b'b', b'zz', b'a\t1', b'5'], object) if key == tf.string else np.arange(5).astype(key.as_numpy_dtype))
    default = tf.constant('none') if value == tf.string else tf.cast(-1, value)
    find = getattr(raw, 'LookupTableFind' + v2)(table_handle=table, keys=keys, default_value=default)
    p.step(size)
    p.step(fill)
    p.step(size, find)
    p.step(fill)


@program(30)
def anonymous_tables(p):
    """A table that a step makes, fills and asks; the next step has another one."""
    kind = p.pick('HashTable', 'MutableHashTable', 'MutableHashTableOfTensors')
    key, value = p.pick(*(STATIC if kind == 'HashTable' else MUTABLE))
    more = {'value_shape': [1]} if kind.endswith('Tensors') else {}
    table = getattr(raw, 'Anonymous' + kind)(key_dtype=tf_type(key), value_dtype=tf_type(value), **more)
    n = int(p.rng.integers(0, 6))
    fill = raw.LookupTableImportV2(table_handle=table, keys=p.hide(draw_keys(p.rng, key, n)), values=p.hide(draw(p.rng, value, n).reshape([n] + [1] * len(more))))
    default = p.hide(draw(p.rng, value, 1).reshape([1] * len(more)))
    keys = p.hide(draw_keys(p.rng, key, 8))
    with tf.control_dependencies([fill]):
        asked = [raw.LookupTableSizeV2(table_handle=table), raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=default)]
    p.step(asked)
    p.step(raw.LookupTableSizeV2(table_handle=table))
    p.step(asked)


@program(40)
def tensor_maps(p):
    """Maps from tensors to tensors: each change is another map."""
    def item(kind):
        return {0: np.float32(p.rng.integers(3)), 1: np.array(p.rng.integers(0, 2, 2), np.int64), 2: np.array(b'k%d' % p.rng.integers(3), object)}[kind]
    maps, kind = [raw.EmptyTensorMap()], p.pick(0, 1, 2)
    for _ in range(int(p.rng.integers(1, 7))):
        if p.rng.integers(8) == 0:
            kind = p.pick(0, 1, 2)
        base, k = maps[int(p.rng.integers(len(maps)))], p.maybe_hide(item(kind))
        if p.rng.integers(4) == 0:
            maps.append(raw.TensorMapErase(input_handle=base, key=k, value_dtype=tf.float32))
        else:
            maps.append(raw.TensorMapInsert(input_handle=base, key=k, value=p.pick(p.hide(np.float32([1, 2])), tf.constant(3.0))))
    for m in maps:
        k = p.maybe_hide(item(kind))
        p.step(raw.TensorMapSize(input_handle=m), raw.TensorMapHasKey(input_handle=m, key=k))
        p.step(raw.TensorMapLookup(input_handle=m, key=k, value_dtype=p.pick(tf.float32, tf.float32, tf.int32)))
    p.step(raw.TensorMapSize(input_handle=tf.zeros_like(maps[-1])))
    one = raw.TensorMapInsert(input_handle=maps[0], key=item(kind), value=1.0)
    p.step(raw.TensorMapStackKeys(input_handle=one, key_dtype=p.pick(tf.float32, tf.int64, tf.string)))
    p.step(raw.TensorMapStackKeys(input_handle=maps[0], key_dtype=tf.float32))
    p.step(raw.TensorMapSize(input_handle=raw.EmptyTensorList(element_shape=-1, max_num_elements=1, element_dtype=tf.float32)))


@program(50)
def tables_of_tensors(p):
    """Values are vectors of one length, or scalars."""
    key, value = p.pick(*[(k, v) for k, v in MUTABLE])
    shape, v2 = p.pick([], [2], [3]), p.pick('', 'V2')
    table = getattr(raw, 'MutableHashTableOfTensors' + v2)(key_dtype=tf_type(key), value_dtype=tf_type(value), value_shape=shape)
    keys, values = tf1.placeholder(tf_type(key), None), tf1.placeholder(tf_type(value), None)
    default = tf1.placeholder(tf_type(value), None)

    def call(name, **kwargs):
        return getattr(raw, name + v2)(table_handle=table, **kwargs)
    insert, replace = (call(n, keys=keys, values=values) for n in ('LookupTableInsert', 'LookupTableImport'))
    find, size = call('LookupTableFind', keys=keys, default_value=default), call('LookupTableSize')
    export = call('LookupTableExport', Tkeys=tf_type(key), Tvalues=tf_type(value))
    remove = raw.LookupTableRemoveV2(table_handle=table, keys=keys) if v2 else None

    def some(n, dims):
        return draw(p.rng, value, n * int(np.prod(dims, dtype=int))).reshape([n] + dims)
    for _ in range(int(p.rng.integers(3, 8))):
        n, action = int(p.rng.integers(0, 6)), int(p.rng.integers(5))
        content = {keys: draw_keys(p.rng, key, n), values: some(n, p.pick(shape, shape, shape, [4]))}
        if action < 2:
            p.step(insert, feeds=content)
        elif action == 2:
            p.step(replace, feeds=content)
        elif action == 3 and v2:
            p.step(remove, feeds={keys: content[keys]})
        wanted = draw_keys(p.rng, key, 7)
        p.step(find, size, feeds={keys: wanted, default: p.pick(some(1, shape)[0], some(7, shape), some(1, [5])[0])})
    p.step(tf.shape(export.keys), tf.shape(export.values))


DENSE = [(object, np.int64), (object, np.int32), (object, np.float32), (object, np.float64), (object, np.bool_), (np.int64, np.int64), (np.int64, np.int32),
         (np.int64, np.float32), (np.int64, np.float64), (np.int64, np.bool_), (np.int32, np.int32), (np.int32, np.float32), (np.int32, np.float64)]


def dense_table(p, kind, key, value, shape, **more):
    """A dense table and what is done with it; keys are scalars, or vectors of two."""
    width = p.pick([], [], [2])
    empty, deleted = (np.full(width, k, object if key is object else key) for k in ((b'', b'$') if key is object else (-100, -101)))
    if p.rng.integers(12) == 0:
        deleted = empty if p.rng.integers(2) else deleted.reshape([1] + width)
    attrs = {'initial_num_buckets': p.pick(4, 4, 8, 32, 5), 'max_load_factor': p.pick(0.8, 0.8, 0.5, 0.1, 0.99, 1.0), 'value_shape': shape, **more}
    table = getattr(raw, kind)(empty_key=p.hide(empty), deleted_key=p.hide(deleted), value_dtype=tf_type(value), **attrs)
    return table, width, empty, deleted


@program(50)
def dense_tables(p):
    """All places are exported: where keys are is compared, too."""
    key, value = p.pick(*DENSE)
    shape = p.pick([], [], [1], [3], [2, 2] if p.rng.integers(6) == 0 else [2])
    table, width, empty, deleted = dense_table(p, 'MutableDenseHashTableV2', key, value, shape, shared_name=p.pick('', 'dense'))
    keys, values = tf1.placeholder(tf_type(key), None), tf1.placeholder(tf_type(value), None)
    default = tf1.placeholder(tf_type(value), None)
    insert = raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
    find = raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=default)
    size, remove = raw.LookupTableSizeV2(table_handle=table), raw.LookupTableRemoveV2(table_handle=table, keys=keys)
    export = raw.LookupTableExportV2(table_handle=table, Tkeys=tf_type(key), Tvalues=tf_type(value))

    def some_keys(n):
        out = draw_keys(p.rng, key, n)
        if width:
            out = np.stack([out, draw_keys(p.rng, key, n)], 1)
        if n and p.rng.integers(9) == 0:
            out[int(p.rng.integers(n))] = (empty if p.rng.integers(2) else deleted).ravel()[0]
        return out

    def some(n, dims):
        return draw(p.rng, value, n * int(np.prod(dims, dtype=int))).reshape([n] + dims)
    for _ in range(int(p.rng.integers(3, 9))):
        n, action = int(p.rng.integers(0, 7)), int(p.rng.integers(7))
        if action < 4:
            p.step(insert, feeds={keys: some_keys(n), values: some(n, p.pick(shape, shape, shape, shape, [4]))})
        elif action < 6:
            p.step(remove, feeds={keys: some_keys(n)})
        else:
            p.step(find, feeds={keys: some_keys(4).reshape([2, 2] + width), default: some(1, shape)[0]})
        n = int(p.rng.integers(0, 8))
        p.step(find, feeds={keys: some_keys(n), default: p.pick(some(1, shape)[0], some(n, shape), some(1, [5])[0])})
        p.step(size, export)


@program(30)
def dense_tables_restored(p):
    """What one table exports another one imports, as checkpoints do."""
    key, value = p.pick(*DENSE)
    shape = p.pick([], [2])
    first, width, _, _ = dense_table(p, 'MutableDenseHashTableV2', key, value, shape)
    second = raw.MutableDenseHashTableV2(empty_key=b'' if key is object else tf_type(key).as_numpy_dtype(-100), deleted_key=b'$' if key is object else tf_type(key).as_numpy_dtype(-101),
                                         value_dtype=tf_type(value), value_shape=shape, initial_num_buckets=4)
    n = int(p.rng.integers(0, 8))
    fed = draw_keys(p.rng, key, n)
    fed = np.stack([fed, fed], 1) if width else fed
    p.step(raw.LookupTableInsertV2(table_handle=first, keys=p.hide(fed), values=p.hide(draw(p.rng, value, n * (2 if shape else 1)).reshape([n] + shape))))
    export = raw.LookupTableExportV2(table_handle=first, Tkeys=tf_type(key), Tvalues=tf_type(value))
    if not width:
        p.step(raw.LookupTableRemoveV2(table_handle=first, keys=p.hide(fed[:2])))
        p.step(raw.LookupTableImportV2(table_handle=second, keys=export.keys, values=export.values))
    more = draw_keys(p.rng, key, 5)
    p.step(raw.LookupTableSizeV2(table_handle=second))
    p.step(raw.LookupTableFindV2(table_handle=second, keys=p.hide(more), default_value=p.hide(draw(p.rng, value, 2 if shape else 1).reshape(shape))))
    p.step(raw.LookupTableInsertV2(table_handle=second, keys=p.hide(more), values=p.hide(draw(p.rng, value, 5 * (2 if shape else 1)).reshape([5] + shape))))
    p.step(raw.LookupTableExportV2(table_handle=second, Tkeys=tf_type(key), Tvalues=tf_type(value)))
    p.step(raw.LookupTableImportV2(table_handle=second, keys=p.hide(more), values=p.hide(draw(p.rng, value, 4).reshape([2, 2]))))


@program(20)
def dense_tables_without_a_name(p):
    key, value = p.pick(*DENSE)
    table, width, _, _ = dense_table(p, 'AnonymousMutableDenseHashTable', key, value, [])
    n = int(p.rng.integers(0, 6))
    fed = draw_keys(p.rng, key, n)
    fill = raw.LookupTableInsertV2(table_handle=table, keys=p.hide(np.stack([fed, fed], 1) if width else fed), values=p.hide(draw(p.rng, value, n)))
    with tf.control_dependencies([fill]):
        p.step(raw.LookupTableSizeV2(table_handle=table), raw.LookupTableExportV2(table_handle=table, Tkeys=tf_type(key), Tvalues=tf_type(value)))
    old = raw.MutableDenseHashTable(empty_key=p.hide(np.int64(0)), value_dtype=tf.float32)  # lacks an input that its kernel wants
    p.step(raw.LookupTableSize(table_handle=old))
