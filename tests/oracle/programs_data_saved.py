"""Datasets in folders: saved, and loaded again."""
import tensorflow as tf
from programs import program
from programs_data import INT, variant, walk

raw = tf.raw_ops
Dataset = tf.data.Dataset


def function(p, body, *specs):
    made = tf.function(body, autograph=False).get_concrete_function(*specs)
    made.add_to_graph(p.graph)
    return made


def save(p, d, shard, path='folder', compression='', into=raw.SaveDataset, **more):
    specs = [tf.TensorSpec(s.shape, s.dtype) for s in tf.nest.flatten(d.element_spec)]
    return into(input_dataset=d._variant_tensor, path=path, shard_func_other_args=[], shard_func=function(p, shard, *specs),
                compression=compression, **more)


def load(p, specs, path='folder', compression=''):
    types, shapes = [s.dtype for s in specs], [s.shape for s in specs]
    spec = specs[0] if len(specs) == 1 else tuple(specs)

    def read(shards):
        whole = tf.data.experimental.from_variant(shards, tf.data.DatasetSpec(spec))
        return whole.flat_map(lambda x: x)._variant_tensor
    made = raw.LoadDataset(path=path, reader_func_other_args=[], reader_func=function(p, read, tf.TensorSpec([], tf.variant)),
                           output_types=types, output_shapes=shapes, compression=compression)
    return made, variant(made, *specs)


@program(10)
def saved(p):
    n, k, kind = int(p.rng.integers(0, 7)), int(p.rng.integers(1, 4)), p.pick('', '', 'GZIP', 'ZLIB')
    d, specs = p.pick((Dataset.range(n), [INT]),
                      (Dataset.range(n).map(lambda x: (x, tf.fill([x], tf.strings.as_string(x)), tf.cast(x, tf.bfloat16))),
                       [INT, tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.bfloat16)]))
    p.step(save(p, d, lambda x, *_: x % k, compression=kind))
    made, loaded = load(p, specs, compression=kind)
    p.step(raw.DatasetCardinality(input_dataset=made))
    walk(p, loaded, 9)


@program(5)
def saved_on_the_way(p):
    d = Dataset.range(4)
    made = save(p, d, lambda x: x % 2, into=raw.SaveDatasetV2, output_types=[tf.int64], output_shapes=[[]])
    p.step(raw.DatasetCardinality(input_dataset=made))
    walk(p, variant(made, INT), 6)
    walk(p, load(p, [INT])[1], 6)


@program(2)
def loaded_from_nowhere(p):
    p.step(load(p, [INT], 'nowhere')[0].op)
