"""Times input pipelines of TensorFlow's tf.data with Weir and with TensorFlow, interleaved: the same GraphDef in both.

usage: input.py [NAME ...] [--threads N ...] [--rounds N] [--seconds S] [--images N] [--json FILE]
TFRecords of JPEG files of 256 x 256 are read, shuffled, decoded and distorted in a parallel map, batched by 64 and prefetched. Prints
images a second and their ratio: above 1 means that Weir is faster. The records are made once, under build/.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WEIR = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'release')) / 'cli' / 'weir'
FOLDER = ROOT / 'build' / 'bench_input'
SIDE, CROP, BATCH, FILES = 256, 224, 64, 4


def picture(rng):
    """An image with the spectrum of a photograph: noise at every scale, the coarse strong and the fine weak, and some edges."""
    image = np.full((SIDE, SIDE, 3), 128.)
    for scale in (2, 4, 8, 16, 32, 64, 128):
        coarse = rng.standard_normal((scale, scale, 3)) * 90 / scale ** .7
        image += tf.image.resize(coarse, (SIDE, SIDE), 'bicubic').numpy()
    for _ in range(6):
        (y, x), (h, w) = rng.integers(0, SIDE, 2), rng.integers(16, 128, 2)
        image[y:y + h, x:x + w] += rng.standard_normal(3) * 40
    return np.clip(image, 0, 255).astype(np.uint8)


def make_records(count):
    rng = np.random.default_rng(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        path = FOLDER / f'{count}-{number}.tfrecord'
        if path.exists():
            continue
        with tf.io.TFRecordWriter(str(path.with_suffix('.part'))) as writer:
            for _ in range(count // FILES):
                jpeg = tf.io.encode_jpeg(picture(rng), quality=90).numpy()
                features = {'image': tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
                            'label': tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(1000))]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        path.with_suffix('.part').rename(path)


def parse(record):
    features = {'image': tf.io.FixedLenFeature([], tf.string), 'label': tf.io.FixedLenFeature([], tf.int64)}
    example = tf.io.parse_single_example(record, features)
    return example['image'], example['label']


def colours(image):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, .125)
    return tf.image.random_contrast(image, .5, 1.5)


def crop(record):
    """Decode all of it, take a random part."""
    jpeg, label = parse(record)
    image = tf.image.random_crop(tf.image.decode_jpeg(jpeg, channels=3), [CROP, CROP, 3])
    return colours(tf.image.convert_image_dtype(image, tf.float32)), label


def inception(record):
    """Decode a random box only, bring it to size."""
    jpeg, label = parse(record)
    shape = tf.image.extract_jpeg_shape(jpeg)
    begin, size, _ = tf.image.sample_distorted_bounding_box(shape, tf.zeros([1, 0, 4]), area_range=(.4, 1.),
                                                            use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.convert_image_dtype(tf.image.decode_and_crop_jpeg(jpeg, window, channels=3), tf.float32)
    return colours(tf.image.resize(image, [CROP, CROP])), label


def decode(record):
    """Nothing but the pixels."""
    jpeg, label = parse(record)
    return tf.ensure_shape(tf.image.decode_jpeg(jpeg, channels=3), [SIDE, SIDE, 3]), label


def records(record):
    """No pixels at all: what reading, calls and batches cost."""
    jpeg, label = parse(record)
    return tf.strings.length(jpeg), label


PIPELINES = {f.__name__: f for f in (crop, inception, decode, records)}


def make_graph(name, count, threads):
    path = FOLDER / f'{name}_{threads}.pb'
    with tf.Graph().as_default() as graph:
        files = [str(FOLDER / f'{count}-{i}.tfrecord') for i in range(FILES)]
        data = tf.data.TFRecordDataset(files).shuffle(BATCH).repeat()
        data = data.map(PIPELINES[name], num_parallel_calls=threads).batch(BATCH, drop_remainder=True).prefetch(2)
        iterator = tf1.data.make_initializable_iterator(data)
        images, labels = iterator.get_next()
        loss = tf.reduce_sum(tf.cast(labels, tf.float32)) + tf.cast(tf.reshape(images, [-1])[0], tf.float32)
        tf.identity(loss, name='loss')
        tf.group(iterator.initializer, name='init')
        tf.group(loss, name='step')
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def run(command):
    return json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout)


def weir(path, threads, seconds):
    return run([WEIR, 'bench', path, '--json', f'--threads={threads}', f'--seconds={seconds}', '--steps=100000'])


def tensorflow(path, threads, seconds):
    return run([sys.executable, HERE / 'peer_tf.py', path.parent, path.stem, '--threads', threads, '--seconds', seconds,
                '--steps', 100000])


def measure(name, threads, args):
    path = make_graph(name, args.images, threads)
    rates = {weir: [], tensorflow: []}
    for _ in range(args.rounds):
        for peer, seen in rates.items():
            seen.append(BATCH * 1e3 / peer(path, threads, args.seconds)['step_ms'])
    ours, theirs = (statistics.median(seen) for seen in rates.values())
    ratio = statistics.median(a / b for a, b in zip(*rates.values()))
    return dict(pipeline=name, threads=threads, weir=ours, tensorflow=theirs, ratio=ratio)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('names', nargs='*', help=f'of {", ".join(PIPELINES)}')
    parser.add_argument('--threads', type=int, nargs='*', default=[1, 2])
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=4)
    parser.add_argument('--images', type=int, default=512)
    parser.add_argument('--json')
    args = parser.parse_args()
    unknown = set(args.names) - set(PIPELINES)
    if unknown:
        parser.error(f'no pipeline {", ".join(sorted(unknown))}; there are {" ".join(PIPELINES)}')
    make_records(args.images)
    rows = []
    print(f'{"pipeline":12} {"threads":>7} {"weir img/s":>11} {"TF img/s":>11} {"weir/TF":>8}')
    for name in args.names or PIPELINES:
        for threads in args.threads:
            rows.append(measure(name, threads, args))
            print('{pipeline:12} {threads:7} {weir:11.1f} {tensorflow:11.1f} {ratio:8.2f}'.format(**rows[-1]), flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
