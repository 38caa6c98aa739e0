"""Files: readers, checkpoints, summaries; and generators of random numbers, whose state is the plan's."""
import gzip
import struct
import zlib

import numpy as np
import tensorflow as tf
from programs import program

raw, tf1 = tf.raw_ops, tf.compat.v1
TYPES = (np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.complex64, np.bool_, np.float16)


def draw_bytes(rng, n):
    return bytes(rng.integers(0, 256, n).astype(np.uint8))


def draw(rng, dtype, shape):
    return np.asarray(rng.integers(0, 2 if dtype is np.bool_ else 90, shape)).astype(dtype)


# ---- readers ----

def text_file(rng):
    lines = [b'line %d %s' % (i, b'z' * int(rng.integers(20))) for i in range(int(rng.integers(0, 6)))]
    return (b'\r\n' if rng.integers(4) == 0 else b'\n').join(lines) + (b'\n' if rng.integers(2) else b'')


def record_file(rng):
    table = [0] * 256
    for i in range(256):
        c = i
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
        table[i] = c

    def masked(data):
        c = 0xffffffff
        for b in data:
            c = c >> 8 ^ table[(c ^ b) & 255]
        c ^= 0xffffffff
        return struct.pack('<I', ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)
    out = b''
    for _ in range(int(rng.integers(0, 6))):
        data = draw_bytes(rng, int(rng.integers(0, 50)))
        length = struct.pack('<Q', len(data))
        out += length + masked(length) + data + masked(data)
    return out


def compressed(rng, draw_file, name):
    """A function that draws a file and compresses it; at times cut short, or with a second stream behind. Not behind an empty one:
    TensorFlow loses what follows, Weir does not."""
    pack = {'ZLIB': zlib.compress, 'GZIP': lambda data, level: gzip.compress(data, level, mtime=0)}.get(name)
    if not pack:
        return draw_file
    damage = int(rng.integers(6))

    def draw_compressed(r):
        plain = draw_file(r)
        data = pack(plain, int(r.integers(0, 10)))
        if damage == 1:
            return data[:int(r.integers(0, len(data)))]
        return data + pack(draw_file(r), 6) if damage == 2 and plain else data
    return draw_compressed


def make_reader(p, kind, compression='', v='V2'):
    """The node, and a function that draws a file for it."""
    rng = p.rng
    if kind == 4:
        return getattr(raw, 'IdentityReader' + v)(), lambda r: b''
    if kind == 0:
        return getattr(raw, 'TextLineReader' + v)(skip_header_lines=int(rng.integers(0, 3))), text_file
    if kind == 1:
        return getattr(raw, 'WholeFileReader' + v)(), lambda r: draw_bytes(r, int(r.integers(0, 100)))
    if kind == 2:
        size, hop = int(rng.integers(1, 6)), int(rng.integers(0, 4))
        head, foot = int(rng.integers(0, 3)), int(rng.integers(0, 3))

        def draw_file(r):
            n = int(r.integers(0, 6))
            return draw_bytes(r, head + foot + (size + (n - 1) * (hop or size) if n else 0))
        encoding = {'encoding': compression} if v else {}
        reader = getattr(raw, 'FixedLengthRecordReader' + v)(record_bytes=size, header_bytes=head, footer_bytes=foot, hop_bytes=hop, **encoding)
        return reader, compressed(rng, draw_file, compression)
    return getattr(raw, 'TFRecordReader' + v)(compression_type=compression), compressed(rng, record_file, compression)


def read(p, kind, compression='', v='V2'):
    rng = p.rng

    def op(name, **kwargs):
        return getattr(raw, name + v)(reader_handle=reader, **kwargs)

    reader, draw_file = make_reader(p, kind, compression, v)
    queue = getattr(raw, 'FIFOQueue' + v)(component_types=[tf.string], shapes=[[]], capacity=20)
    names = [p.write(f'file{i}', draw_file(rng)) for i in range(int(rng.integers(1, 4)))]
    if rng.integers(8) == 0:
        names.append('missing')
    p.step(getattr(raw, 'QueueEnqueueMany' + v)(handle=queue, components=[tf.constant(names)]))
    p.step(getattr(raw, 'QueueClose' + v)(handle=queue))
    one = op('ReaderRead', queue_handle=queue)
    some = op('ReaderReadUpTo', queue_handle=queue, num_records=p.hide(np.int64(rng.integers(1, 4))))
    counts = [op('ReaderNumRecordsProduced'), op('ReaderNumWorkUnitsCompleted')]
    for _ in range(int(rng.integers(4, 14))):
        p.step(p.pick(one, some, some))
        p.step(counts)
    p.step(op('ReaderReset'))
    p.step(counts)


@program(40)
def old_readers(p):
    """Readers by reference: TensorFlow's client makes but one kind of those that graphs of old have."""
    read(p, 1, '', '')


@program(20)
def names_read(p):
    read(p, 4)


@program(30)
def states_of_readers(p):
    """Readers of names and of whole files can be saved."""
    v = p.pick('', 'V2')

    def op(name, **kwargs):
        return getattr(raw, name + v)(reader_handle=reader, **kwargs)

    kind = p.pick(4, 4, 4, 0, 1, 2, 3) if v else 1
    reader, _ = make_reader(p, kind, '', v)
    queue = getattr(raw, 'FIFOQueue' + v)(component_types=[tf.string], shapes=[[]], capacity=20)
    p.step(getattr(raw, 'QueueEnqueueMany' + v)(handle=queue, components=[tf.constant(['a', 'b\0c', '', 'd'])]))
    save, counts = op('ReaderSerializeState'), [op('ReaderNumRecordsProduced'), op('ReaderNumWorkUnitsCompleted')]
    p.step(save)
    if kind == 4:
        for _ in range(int(p.rng.integers(1, 4))):
            p.step(op('ReaderRead', queue_handle=queue))
            p.step(save)
    state = tf1.placeholder(tf.string, None)
    restore = op('ReaderRestoreState', state=state)
    for text in (b'', b'\x08\x03\x10\x02\x18\x05\x22\x01x', b'\x08\x03\x10\x03', b'\x08\x01\x10\x02', b'\xff', b'\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01'):
        p.step(restore, feeds={state: text})
        p.step(save)
        p.step(counts)
    p.step(restore, feeds={state: [b'']})
    p.step(op('ReaderReset'))
    p.step(save)


@program(40)
def text_lines(p):
    read(p, 0)


@program(40)
def whole_files(p):
    read(p, 1)


@program(60)
def fixed_length_records(p):
    read(p, 2)


@program(40)
def records(p):
    read(p, 3)


@program(60)
def compressed_fixed_length_records(p):
    read(p, 2, p.pick('ZLIB', 'GZIP', 'ZLIB', 'GZIP', 'none'))


@program(60)
def compressed_records(p):
    read(p, 3, p.pick('ZLIB', 'GZIP', 'ZLIB', 'GZIP', 'none'))


# ---- checkpoints ----

@program(60)
def saved_and_restored(p):
    rng = p.rng
    n = int(rng.integers(1, 5))
    types = [p.pick(*TYPES) for _ in range(n)]
    shapes = [tuple(map(int, rng.integers(1, 5, rng.integers(0, 3)))) for _ in range(n)]
    names = [f'dir/var{i}' for i in range(n)]
    prefix = p.maybe_hide('model.ckpt')
    p.step(raw.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[''] * n, dtypes=types))
    p.step(raw.SaveV2(prefix=prefix, tensor_names=p.maybe_hide(names), shape_and_slices=[''] * n,
                      tensors=[p.maybe_hide(draw(rng, t, s)) for t, s in zip(types, shapes)]))
    p.step(raw.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[''] * n, dtypes=types))
    order = rng.permutation(n)
    p.step(raw.RestoreV2(prefix=prefix, tensor_names=[names[i] for i in order], shape_and_slices=[''] * n,
                         dtypes=[types[i] for i in order]))
    p.step(raw.RestoreV2(prefix=prefix, tensor_names=['absent'], shape_and_slices=[''], dtypes=[tf.float32]))
    p.step(raw.RestoreV2(prefix=prefix, tensor_names=names[:1], shape_and_slices=[''], dtypes=[tf.string]))
    if shapes[0] and types[0] is not np.float16:  # of which TensorFlow restores no slices
        rows = int(rng.integers(1, shapes[0][0] + 1))
        begin = int(rng.integers(0, shapes[0][0] - rows + 1))
        text = ' '.join(map(str, shapes[0])) + f' {begin},{rows}' + ':-' * (len(shapes[0]) - 1)
        p.step(raw.RestoreV2(prefix=prefix, tensor_names=names[:1], shape_and_slices=p.hide([text]), dtypes=types[:1]))


@program(40)
def saved_in_slices(p):
    """Two parts of one tensor are saved, and restored whole or cut elsewhere."""
    rng, dtype = p.rng, p.pick(np.float32, np.float64, np.int32, np.int64)
    rows, width, cut = int(rng.integers(2, 7)), int(rng.integers(1, 4)), 0
    cut = int(rng.integers(1, rows))
    x = draw(rng, dtype, (rows, width))
    specs = [f'{rows} {width} 0,{cut}:-', f'{rows} {width} {cut},{rows - cut}:-']
    p.step(raw.SaveV2(prefix='parts', tensor_names=['x', 'x'], shape_and_slices=specs, tensors=[x[:cut], x[cut:]]))
    p.step(raw.RestoreV2(prefix='parts', tensor_names=['x'], shape_and_slices=[''], dtypes=[dtype]))
    begin = int(rng.integers(0, rows))
    size = int(rng.integers(1, rows - begin + 1))
    p.step(raw.RestoreV2(prefix='parts', tensor_names=['x'], shape_and_slices=[f'{rows} {width} {begin},{size}:-'],
                         dtypes=[dtype]))


@program(40)
def checkpoints_merged(p):
    rng, n = p.rng, int(p.rng.integers(1, 4))
    names, prefixes = [], []
    for i in range(n):
        prefixes.append(raw.ShardedFilename(basename='part', shard=i, num_shards=n))
        mine = [f'v{i}_{j}' for j in range(int(rng.integers(1, 4)))]
        p.step(raw.SaveV2(prefix=prefixes[-1], tensor_names=mine, shape_and_slices=[''] * len(mine),
                          tensors=[tf.constant(draw(rng, np.float32, (2, j + 1))) for j in range(len(mine))]))
        names += mine
    p.step(raw.MergeV2Checkpoints(checkpoint_prefixes=tf.stack(prefixes), destination_prefix='all',
                                  delete_old_dirs=bool(rng.integers(2))))
    p.step(raw.RestoreV2(prefix='all', tensor_names=names, shape_and_slices=[''] * len(names),
                         dtypes=[tf.float32] * len(names)))
    p.step(raw.MergeV2Checkpoints(checkpoint_prefixes=['absent'], destination_prefix='other'))
    p.step(raw.ShardedFilespec(basename='part', num_shards=n), *prefixes)


@program(30)
def variables_saved_and_restored(p):
    rng, dtype = p.rng, p.pick(np.float32, np.float64, np.int64)
    v = raw.VarHandleOp(dtype=dtype, shape=[3], shared_name='v')
    r = raw.VariableV2(dtype=dtype, shape=[2, 2])
    value = raw.ReadVariableOp(resource=v, dtype=dtype)
    save = raw.SaveV2(prefix='model', tensor_names=['v', 'r'], shape_and_slices=['', ''], tensors=[value, r])
    back = raw.RestoreV2(prefix='model', tensor_names=['v', 'r'], shape_and_slices=['', ''], dtypes=[dtype, dtype])
    restore = [raw.AssignVariableOp(resource=v, value=back[0]), raw.Assign(ref=r, value=back[1])]
    set_all = [raw.AssignVariableOp(resource=v, value=draw(rng, dtype, (3,))), raw.Assign(ref=r, value=draw(rng, dtype, (2, 2)))]
    change = [raw.AssignAddVariableOp(resource=v, value=draw(rng, dtype, (3,))),
              raw.AssignSub(ref=r, value=draw(rng, dtype, (2, 2)))]
    p.step(save)
    p.step(set_all)
    for _ in range(int(rng.integers(2, 6))):
        p.step(p.pick(save, change, restore))
    p.step(value, r)


# ---- plain files ----

@program(40)
def files(p):
    rng = p.rng
    names = [f'dir/a{i}.txt' for i in range(int(rng.integers(1, 4)))] + ['b.bin']
    for name in names:
        p.step(raw.WriteFile(filename=name, contents=p.maybe_hide(draw_bytes(rng, int(rng.integers(0, 60))))))
    p.step(raw.ReadFile(filename=p.maybe_hide(names[int(rng.integers(len(names)))])))
    p.step(raw.MatchingFiles(pattern=p.maybe_hide(p.pick('dir/*.txt', '*.bin', 'b.bin', 'd*/a0.txt', 'dir/a?.txt', 'none*', 'dir/a[01].txt'))))
    p.step(raw.ReadFile(filename='dir/none'))
    p.step(raw.WriteFile(filename='dir', contents='x'))


# ---- summaries ----

@program(40)
def summaries(p):
    rng, n = p.rng, int(p.rng.integers(1, 4))
    dtype = p.pick(np.float32, np.float64, np.int32, np.int64)
    scalar = raw.ScalarSummary(tags=p.maybe_hide([f't{i}' for i in range(n)]), values=p.maybe_hide(draw(rng, dtype, (n,))))
    histogram = raw.HistogramSummary(tag='h', values=p.maybe_hide(rng.standard_normal((n, 30)).astype(p.pick(np.float32, np.float64)) * 10))
    tensor = raw.TensorSummaryV2(tag='x', tensor=p.maybe_hide(draw(rng, dtype, (n,))), serialized_summary_metadata='')
    p.step(scalar, histogram, tensor)
    p.step(raw.MergeSummary(inputs=[scalar, histogram, tensor][:n]))
    p.step(raw.MergeSummary(inputs=[scalar, scalar]))


@program(60)
def image_summaries(p):
    """The pixels of the first image. The encoders need not agree, but files of these sizes have lengths of two bytes each, so that
    the file begins at the same place in both messages."""
    rng, dtype = p.rng, p.pick(np.uint8, np.float32, np.float16, np.float64)
    shape = (int(rng.integers(1, 3)), int(rng.integers(9, 20)), int(rng.integers(9, 20)), p.pick(1, 3, 4))
    x = rng.random(shape) * (255 if dtype is np.uint8 else p.pick(1, 255, 1000))
    if dtype is not np.uint8:
        x -= p.pick(0, 0, 0.5, x.mean())
        x.reshape(-1)[rng.integers(0, x.size, p.pick(0, 0, 5))] = p.pick(np.nan, np.inf, -np.inf)
    most, tag = p.pick(1, 3), p.pick('', 'tag')
    summary = raw.ImageSummary(tag=tag, tensor=p.maybe_hide(x.astype(dtype)), max_images=most,
                               bad_color=tf.make_tensor_proto(rng.integers(0, 256, p.pick(4, 4, 5)).astype(np.uint8)))
    name = tag + '/image' + ('/0' if most > 1 else '')
    begin = len(b'V__') + len('T_') + len(name) + len(b'I__') + len(b'H_W_D_') + len(b'F__')
    p.step(raw.DecodePng(contents=raw.Substr(input=summary, pos=begin, len=1 << 20)))
    p.step(raw.Substr(input=summary, pos=begin - len(b'H_W_D_F__'), len=len(b'H_W_D_')),
           raw.Substr(input=summary, pos=len(b'V__'), len=len('T_') + len(name)))
    wrong = p.pick(lambda: raw.ImageSummary(tag=['a', 'b'], tensor=x.astype(dtype)),
                   lambda: raw.ImageSummary(tag='a', tensor=x[..., 0].astype(dtype)),
                   lambda: raw.ImageSummary(tag='a', tensor=x[..., :0].astype(dtype)))
    p.step(wrong())


# ---- random numbers ----

@program(60)
def random_sequences(p):
    """A node's sequence goes on from step to step, whichever signature runs it."""
    rng = p.rng
    seeds = dict(seed=int(rng.integers(1, 1 << 30)), seed2=int(rng.integers(0, 1 << 30)))
    shape = p.maybe_hide(np.array(rng.integers(0, 6, rng.integers(0, 3)), np.int32))
    real = p.pick(tf.float32, tf.float64, tf.float16)
    nodes = [raw.RandomUniform(shape=shape, dtype=real, **seeds), raw.RandomStandardNormal(shape=shape, dtype=real, **seeds),
             raw.TruncatedNormal(shape=shape, dtype=real, **seeds),
             raw.RandomUniformInt(shape=shape, minval=-3, maxval=p.hide(np.int32(rng.integers(-2, 9))), **seeds),
             raw.RandomShuffle(value=draw(rng, np.float32, (5, 2)), **seeds),
             raw.Multinomial(logits=rng.standard_normal((2, 4)).astype(np.float32), num_samples=5, **seeds)]
    for _ in range(int(rng.integers(3, 8))):
        chosen = [nodes[i] for i in rng.permutation(len(nodes))[:int(rng.integers(1, 4))]]
        p.step(chosen)
