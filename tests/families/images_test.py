"""A pipeline of images: decoded, distorted with fixed seeds, resized, batched, and classified."""
import numpy as np
import pytest

from clusters import tf, tf1
from compare import train, variables


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """PNG and JPEG files, written by TensorFlow."""
    rng, folder = np.random.default_rng(2), tmp_path_factory.mktemp('images')
    with tf.Graph().as_default(), tf1.Session() as s:
        for i in range(4):
            rows, columns = np.mgrid[0:40 + 4 * i, 0:48]
            picture = np.stack([rows * 5, columns * 5, rows + columns], -1).clip(0, 255).astype(np.uint8)
            picture = (picture ^ rng.integers(0, 8, picture.shape, np.uint8)).astype(np.uint8)
            (folder / f'{i}.png').write_bytes(s.run(tf.io.encode_png(picture)))
            (folder / f'{i}.jpg').write_bytes(s.run(tf.io.encode_jpeg(picture, quality=90)))
    return {kind: sorted(str(p) for p in folder.glob('*.' + kind)) for kind in ('png', 'jpg')}


def distort(image, label):
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.random_crop(image, [32, 32, 3], seed=1)
    image = tf.image.random_flip_left_right(image, seed=2)
    image = tf.image.random_brightness(image, 0.2, seed=3)
    image = tf.image.random_contrast(image, 0.8, 1.2, seed=4)
    image = tf.image.random_saturation(image, 0.8, 1.2, seed=5)
    image = tf.image.random_hue(image, 0.05, seed=6)
    return tf.image.per_image_standardization(tf.image.resize(image, [16, 16])), label


def batches(paths):
    """In order, one at a time: the draws of each image are its own."""
    labels = np.arange(len(paths), dtype=np.int64)
    dataset = tf.data.Dataset.from_tensor_slices((paths, labels)).repeat()
    dataset = dataset.map(lambda path, label: (tf.io.decode_image(tf.io.read_file(path), 3, expand_animations=False), label))
    return dataset.map(lambda i, l: (tf.ensure_shape(i, [None, None, 3]), l)).map(distort).batch(4).prefetch(1)


@pytest.mark.parametrize('check', ['graph', 'tasks'], indirect=True)
@pytest.mark.parametrize('kind', ['png', 'jpg'])
def test_training_on_distorted_images(check, files, kind):
    def program(s, _):
        iterator = tf1.data.make_initializable_iterator(batches(files[kind]))
        image, label = iterator.get_next()
        image.set_shape([4, 16, 16, 3])
        v = variables(kernel=[3, 3, 3, 4], weights=[256, 4])
        hidden = tf.nn.relu(tf.nn.conv2d(image, v['kernel'], 2, 'SAME'))
        logits = tf.matmul(tf.reshape(hidden, [4, 256]), v['weights'])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
        s.run(iterator.initializer)
        first = s.run([image, label])
        return {'first': first, 'losses': train(s, loss, 3, optimizer=tf1.train.GradientDescentOptimizer(0.02))}
    # Pixels of a JPEG may differ by one in 255 where a transform rounds otherwise; standardisation stretches that.
    tolerance = {'rtol': 2e-4, 'atol': 2e-4} if kind == 'png' else {'rtol': 2e-4, 'atol': 2e-4}
    check(program, **tolerance)


def test_pixels(check, files):
    """Whole numbers are equal."""
    def program(s, form):
        data = tf1.placeholder(tf.string, [])

        def look(data):
            image = tf.io.decode_png(data, 3)
            nearest = tf.image.resize(image, [11, 7], method='nearest')
            boxes = tf.constant([[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0]])
            crops = tf.image.crop_and_resize(tf.cast(image, tf.float32)[None], boxes, [0, 0], [8, 8])
            kept = tf.image.non_max_suppression(boxes, [0.5, 0.9], 2, 0.4)
            again = tf.io.decode_png(tf.io.encode_png(image[::-1]), 3)
            bmp = tf.io.extract_jpeg_shape(tf.io.encode_jpeg(image))
            areas = tf1.image.resize_area(tf.cast(image, tf.float32)[None], [9, 9])
            gray = tf.image.rgb_to_grayscale(image)
            return image, nearest, crops, kept, again, bmp, areas, gray, tf.image.adjust_gamma(tf.cast(image, tf.float32), 2.)
        return s.run(form.function(look)(data), {data: open(files['png'][1], 'rb').read()})
    check(program)
