"""Cases of the ops of src/ops/io: checkpoints, files, summaries."""
import atexit
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

REAL = [np.float32, np.float64, np.int32, np.uint8, np.int16, np.int8, np.int64, tf.bfloat16.as_numpy_dtype, np.uint16,
        np.float16, np.uint32, np.uint64]


def strings(*texts):
    return np.array([t.encode() if isinstance(t, str) else t for t in texts] + [None], dtype=object)[:-1]


def checkpoint_cases(check, rng, directory):
    prefix = os.path.join(directory, 'ckpt')
    whole = rng.standard_normal((4, 4)).astype(np.float32)
    text = strings('a', 'bc', 'x' * 100)
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=['w', 'top', 't', 'i'],
                      shape_and_slices=['', '4 4 0,2:-', '', ''],
                      tensors=[tf.constant(whole), tf.constant(whole[:2]), tf.constant(text), tf.constant([1, 2, 3])])

    def restore(names, specs, dtypes, at=prefix, **options):
        check('RestoreV2', [at, strings(*names) if isinstance(names, (list, tuple)) else names, strings(*specs)],
              {'dtypes': dtypes}, exact=True, **options)

    restore(['w'], [''], [tf.float32])
    restore(['t', 'i', 'w'], ['', '', '4 4 1,2:-'], [tf.string, tf.int32, tf.float32])
    for spec in ('4 4 0,2:-', '4 4 0,1:1,2', '4 4 1,1:3,1', '4 4 0,3:-', '4 4 -:-', '', '4 5 -:-', '4 4', '4 4 0,2',
                 '4 4 0,2:a', '4 4 0,9:-', '4 4  -:-', '4 4 -:-:-', 'x 4 -:-', '- ', '4 4 0,0:-', '4 4 -1,1:-',
                 '4 4 0,2:-,-', '4'):
        restore(['top'], [spec], [tf.float32])
        restore(['w'], [spec], [tf.float32])
    restore(['absent'], [''], [tf.float32])
    restore(['w'], [''], [tf.float64])
    restore(['t'], [''], [tf.float32])
    restore(['w'], [''], [tf.float32], at=prefix + 'x')
    restore(['w', 't'], ['', ''], [tf.float32])
    restore(['w', 't'], [''], [tf.float32])
    restore('w', [''], [tf.float32])
    restore(['w'], [''], [tf.float32], at=strings(prefix, prefix))

    def save(names, specs, tensors, at=os.path.join(directory, 'saved')):
        check('SaveV2', [at, strings(*names), strings(*specs)] + tensors,
              {'dtypes': [tf.string if t.dtype == object else t.dtype for t in tensors]})

    save(['a', 'b'], ['', ''], [whole, text])
    restore(['a', 'b'], ['', ''], [tf.float32, tf.string], at=os.path.join(directory, 'saved'))
    save(['a'], ['4 4 0,2:-'], [whole[:2]], at=os.path.join(directory, 'sliced'))
    restore(['a'], ['4 4 1,1:-'], [tf.float32], at=os.path.join(directory, 'sliced'))
    save(['a'], ['4 4 0,2:-'], [whole[:3]])
    save(['a', 'a'], ['', ''], [whole, whole])
    save(['a', 'b'], ['', ''], [whole])
    save(['a'], [''], [whole], at=os.path.join(directory, 'absent', 'x'))
    check('MergeV2Checkpoints', [strings(prefix + 'x'), os.path.join(directory, 'm')])
    check('MergeV2Checkpoints', [strings(prefix + 'x'), os.path.join(directory, 'm')], {'allow_missing_files': True})
    check('MergeV2Checkpoints', [prefix, os.path.join(directory, 'm')])
    check('MergeV2Checkpoints', [strings(prefix), strings('m')])


def file_cases(check, directory):
    for shard, total in ((0, 1), (3, 12), (123456, 999999), (-1, 3)):
        check('ShardedFilename', ['/tmp/x', np.int32(shard), np.int32(total)])
        check('ShardedFilespec', ['base', np.int32(total)])
    check('ShardedFilename', [strings('x'), np.int32(1), np.int32(2)])
    check('ShardedFilename', ['x', np.int32([1]), np.int32(2)])
    check('ShardedFilespec', ['x', np.int32([1])])
    path = os.path.join(directory, 'd', 'e', 'file')
    os.makedirs(os.path.dirname(path))
    for name in ('file', 'file2', '.hidden', 'other'):
        with open(os.path.join(directory, 'd', 'e', name), 'wb') as file:
            file.write(name.encode() * 3 + b'\0')
    check('ReadFile', [path])
    check('ReadFile', ['file://' + path])
    for bad in (path + 'x', directory, 'nowhere://x', '', strings(path)):
        check('ReadFile', [bad])
    check('WriteFile', [os.path.join(directory, 'w', 'x'), b'content\0'])
    check('ReadFile', [os.path.join(directory, 'w', 'x')])
    check('WriteFile', [strings('x'), 'y'])
    check('WriteFile', ['x', strings('y')])
    check('WriteFile', [path + '/x', 'y'])
    for pattern in ('d/e/*', 'd/e/file?', 'd/*', '*/*/file', 'd/e/[fo]*', 'd/e/file', 'd/e/nope*', 'nope/*'):
        check('MatchingFiles', [os.path.join(directory, pattern)])
    check('MatchingFiles', ['file://' + directory + '/d/e/f*'])
    check('MatchingFiles', [strings(directory + '/d/e/f*', directory + '/d/e/*')])
    check('MatchingFiles', [strings()])
    check('MatchingFiles', [strings('x').reshape(1, 1)])
    check('MatchingFiles', ['nowhere://x*'])


def summary_cases(check, rng):
    for dtype in REAL:
        values = (np.abs(rng.standard_normal(50)) * 40).astype(dtype)
        check('ScalarSummary', [strings('a', 'b', 'a'), values[:3]])
        check('ScalarSummary', ['tag', values[0]])
        check('HistogramSummary', ['h', values])
        check('HistogramSummary', ['h', values[:0]])
    check('ScalarSummary', [strings('a', 'b'), np.float32([1])])
    check('ScalarSummary', ['a', np.float32([1])])
    check('ScalarSummary', [strings(), np.float32([])])
    check('ScalarSummary', [strings('', 'x'), np.float32([np.nan, -np.inf])])
    for scale in (1e-14, 1e-6, 1, 1e6, 1e25):
        check('HistogramSummary', ['scale', rng.standard_normal((7, 11)) * scale])
    check('HistogramSummary', ['many', rng.standard_normal(2000).astype(np.float32)])
    check('HistogramSummary', ['same', np.zeros((3, 3), np.float32)])
    for bad in (np.nan, np.inf, -np.inf):
        check('HistogramSummary', ['a', np.float32([1, bad])])
    check('HistogramSummary', [strings('a'), np.float32([1])])
    one = tf.raw_ops.ScalarSummary(tags=['a', 'b'], values=[1.0, 2.0]).numpy()
    two = tf.raw_ops.HistogramSummary(tag='c', values=[1.0, 2.0]).numpy()
    check('MergeSummary', [one], {'N': 1})
    check('MergeSummary', [one, two], {'N': 2})
    check('MergeSummary', [strings(one, two), b''], {'N': 2})
    check('MergeSummary', [one, one], {'N': 2})
    check('MergeSummary', [b'x'], {'N': 1})
    metadata = b'\x0a\x06\x0a\x04text\x12\x01x'
    for tensor in (np.float32([1, 2]), strings('x', 'y'), np.int64(3), np.zeros((0, 2), np.float64), np.bool_([True])):
        check('TensorSummaryV2', ['tag', tensor, metadata])
        check('TensorSummaryV2', ['tag', tensor, b''])
    check('TensorSummaryV2', [strings('a'), np.float32(1), b''])
    check('TensorSummaryV2', ['a', np.float32(1), strings('')])


def media_cases(check, rng):
    """Sounds byte by byte; of images what fails: tests/codec_test.py compares pixels."""
    for shape in ((2, 50), (1, 7, 1), (5, 20, 2), (0, 4), (2, 0, 3), (4, 9, 5)):
        sound = (rng.standard_normal(shape) * 0.7).astype(np.float32)
        for rate in (44100, 0.2, 8000.5, 0.5, 1.5):
            check('AudioSummaryV2', ['tag', sound, np.float32(rate)])
        check('AudioSummaryV2', ['', sound, np.float32(100)], {'max_outputs': 1})
        check('AudioSummaryV2', ['t', sound, np.float32(100)], {'max_outputs': 4})
    sound = np.float32([[1, -1, 0.99999, -2, 3, 1 / 65536, 0.5 / 65536, np.inf, -np.inf]])
    check('AudioSummaryV2', ['t', sound, np.float32(1e5)])
    for rate in (0, -1, np.nan, [100], [[100]], [100, 100], []):
        check('AudioSummaryV2', ['t', sound, np.float32(rate)])
    check('AudioSummaryV2', ['t', sound[0], np.float32(1)])
    check('AudioSummaryV2', ['t', sound[None, None], np.float32(1)])
    check('AudioSummaryV2', [strings('t'), sound, np.float32(1)])
    check('AudioSummaryV2', ['t', np.zeros((2, 3, 0), np.float32), np.float32(1)])
    image = rng.random((2, 4, 5, 3)).astype(np.float32)
    for bad in (image[0], image[..., :2], np.zeros((2, 4, 5, 5), np.float32)):
        check('ImageSummary', ['t', bad])
    check('ImageSummary', [strings('a', 'b'), image])
    check('ImageSummary', ['t', image[:0]])
    check('ImageSummary', ['t', image], {'bad_color': np.uint8([1, 2])})
    check('ImageSummary', ['t', image], {'bad_color': np.float32([1, 2, 3])})
    check('ImageSummary', ['t', image], {'bad_color': np.uint8([[1, 2, 3]])})


def scratch():
    directory = tempfile.mkdtemp(prefix='weir_io_')
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def cases(check, rng):
    checkpoint_cases(check, rng, scratch())
    file_cases(check, scratch())
    summary_cases(check, rng)
    media_cases(check, rng)
