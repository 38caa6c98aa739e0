"""Programs that save and restore checkpoints of TensorFlow's first format. The files must be equal byte for byte."""
import numpy as np
import tensorflow as tf

from programs import program

raw = tf.raw_ops
TYPES = (np.float32, np.float64, np.int32, np.uint8, np.int16, np.int8, np.complex64, np.int64, np.bool_, np.uint16, np.complex128,
         np.float16, tf.qint8, tf.quint8, tf.qint32, tf.string)
BAD_TYPES = (np.uint32, np.uint64, tf.bfloat16, tf.qint16)
SHAPES = ([], [3], [2, 3], [4, 1, 2], [0], [2, 0], [20])
PLAIN = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint32: tf.int32, tf.qint16: tf.int16}


def draw(p, dtype, shape):
    if dtype is tf.string:
        texts = [bytes(p.rng.integers(0, 256, p.rng.integers(0, 40)).astype(np.uint8)) for _ in range(int(np.prod(shape)))]
        return tf.constant(np.array(texts + [None], object)[:-1].reshape(shape), tf.string, shape)
    plain = tf.as_dtype(PLAIN.get(dtype, dtype))
    low = 0 if plain.is_unsigned or plain == tf.bool else -100
    values = p.rng.integers(low, 2 if plain == tf.bool else 100, shape) * (1.25 if plain.is_floating else 1)
    if plain.is_complex:
        values = values + 1j * p.rng.integers(-9, 9, shape)
    made = tf.cast(tf.constant(np.asarray(values)), plain)
    return tf.bitcast(made, dtype) if dtype in PLAIN else made


@program(60)
def save_and_restore(p):
    count = int(p.rng.integers(1, 5))
    names = [str(n) for n in p.rng.permutation(['w', 'layer/kernel', 'b', 'a' * 300, '\u00e9', 'w2', ''])[:count]]
    types = [p.pick(*TYPES) for _ in names]
    tensors = [draw(p, t, p.pick(*SHAPES)) for t in types]
    p.step(raw.Save(filename='ck', tensor_names=names, data=tensors))
    p.step(raw.ReadFile(filename='ck'))
    for name, dtype in zip(names, types):
        got = raw.Restore(file_pattern=p.pick('ck', 'c?'), tensor_name=name, dt=dtype, preferred_shard=p.pick(-1, 0))
        p.step(tf.bitcast(got, PLAIN[dtype]) if dtype in PLAIN else got)


@program(60)
def slices(p):
    rows, columns = int(p.rng.integers(2, 7)), int(p.rng.integers(1, 4))
    dtype = p.pick(np.float32, np.int32, tf.string, np.float16)
    cut = int(p.rng.integers(1, rows))
    parts = [(0, cut), (cut, rows - cut)]
    order = p.pick([0, 1], [1, 0])
    specs = [f'{rows} {columns} {parts[i][0]},{parts[i][1]}:-' for i in order]
    tensors = [draw(p, dtype, [parts[i][1], columns]) for i in order]
    whole = draw(p, np.int64, [3])
    if p.pick(True, False):
        p.step(raw.SaveSlices(filename='ck', tensor_names=['v', 'v', 'a'], shapes_and_slices=specs + [''], data=tensors + [whole]))
    else:
        p.step(raw.SaveSlices(filename='ck0', tensor_names=['v', 'a'], shapes_and_slices=[specs[0], ''], data=[tensors[0], whole]))
        p.step(raw.SaveSlices(filename='ck1', tensor_names=['v'], shapes_and_slices=specs[1:], data=tensors[1:]))
        p.step(raw.ReadFile(filename='ck0'), raw.ReadFile(filename='ck1'))
        p.step(raw.Restore(file_pattern='ck0', tensor_name='v', dt=dtype))
    p.step(raw.Restore(file_pattern='ck*', tensor_name='v', dt=dtype))
    p.step(raw.Restore(file_pattern='ck*', tensor_name='a', dt=np.int64))
    begin = int(p.rng.integers(0, rows))
    size = int(p.rng.integers(1, rows - begin + 1))
    for spec in (f'{rows} {columns} {begin},{size}:-', f'{rows} {columns} -:0,1', '', f'{rows} {columns + 1} -:-', 'bad', f'{rows} -:-',
                 f'{rows} {columns} 0,{rows + 1}:-'):
        p.step(raw.RestoreSlice(file_pattern='ck*', tensor_name='v', shape_and_slice=p.hide(spec), dt=dtype))


@program(40)
def refusals(p):
    one, two = np.float32(1), np.ones((2, 2), np.float32)
    p.step(raw.Save(filename='ck', tensor_names=['a'], data=[draw(p, p.pick(*BAD_TYPES), [2])]))
    p.step(raw.Save(filename=p.hide(['x', 'y']), tensor_names=['a'], data=[one]))
    p.step(raw.Save(filename='ck', tensor_names=p.hide(['a', 'b']), data=[one]))
    p.step(raw.Save(filename='no/such/folder', tensor_names=['a'], data=[one]))
    p.step(raw.Save(filename='same', tensor_names=['a', 'a'], data=[one, one * 2]))
    p.step(raw.ReadFile(filename='same'))
    p.step(raw.Restore(file_pattern='same', tensor_name='a', dt=tf.float32))
    p.step(raw.Save(filename='same2', tensor_names=['a', 'a'], data=[one, two]))
    p.step(raw.Save(filename='same2', tensor_names=['a', 'a'], data=[one, np.int32(2)]))
    p.step(raw.SaveSlices(filename='s', tensor_names=['a'], shapes_and_slices=p.hide(['4 2 0,3:-']), data=[two]))
    p.step(raw.SaveSlices(filename='s', tensor_names=['a', 'a'], shapes_and_slices=['4 2 0,2:-', '4 2 1,2:-'], data=[two, two]))
    p.step(raw.Restore(file_pattern='s', tensor_name='a', dt=tf.float32))
    p.step(raw.SaveSlices(filename='s', tensor_names=['a', 'a'], shapes_and_slices=['4 2 0,2:-', '5 2 2,2:-'], data=[two, two]))
    p.step(raw.Restore(file_pattern='none', tensor_name='a', dt=tf.float32))
    p.write('garbage', p.pick(b'', b'hello' * 30))
    p.step(raw.Restore(file_pattern='garbage', tensor_name='a', dt=tf.float32))
    p.step(raw.Save(filename='good', tensor_names=['a'], data=[one]))
    p.step(raw.Restore(file_pattern='good', tensor_name='b', dt=tf.float32))
    p.step(raw.Restore(file_pattern='good', tensor_name='a', dt=tf.int32))
    p.step(raw.Restore(file_pattern=p.hide(['good', 'good']), tensor_name='a', dt=tf.float32))
    p.step(raw.Restore(file_pattern='good', tensor_name=p.hide(['a', 'a']), dt=tf.float32))
