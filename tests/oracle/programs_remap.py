"""Vocabularies and matrices of checkpoints, remapped."""
import numpy as np
import tensorflow as tf
from programs import program

raw = tf.raw_ops


@program(40)
def vocabularies(p):
    old = p.pick(b'a\nb\nc\nd\n', b'a\nb\nc\nd', b'a\na\nb\n', b'a\r\nc\r\n', b'', b'a\n\nc')
    new = p.pick(b'c\nx\na\nd\nb\n', b'c\nx\na\nd\nb', b'c\nc\nc\n', b'c\r\na\r\nb\r\n', b'a\tb\nc\na\n', b'c\n\na', b'')
    files = p.pick((p.write('new', new), p.write('old', old)), (p.write('new', new), p.write('old', old)), (p.write('new', new), 'none'), ('', 'none'), ('none', 'none'))
    p.step(*raw.GenerateVocabRemapping(new_vocab_file=p.hide(np.array(files[0].encode(), object)), old_vocab_file=p.hide(np.array(files[1].encode(), object)), new_vocab_offset=p.pick(0, 0, 1, 2, 9),
                                       num_new_vocab=p.pick(0, 1, 2, 3, 5), old_vocab_size=p.pick(-1, -1, -1, 0, 1, 2, 9)))


@program(60)
def matrices(p):
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    whole = raw.SaveV2(prefix='whole', tensor_names=['m', 'v', 'd'], shape_and_slices=[''] * 3, tensors=[matrix, matrix[0], np.float64(matrix)])
    parts = raw.SaveV2(prefix='parts', tensor_names=['m', 'm'], shape_and_slices=['4 3 0,2:0,3', '4 3 2,2:0,3'], tensors=[matrix[:2], matrix[2:]])
    p.step(whole, parts)
    rows = p.rng.permutation(4)[:p.rng.integers(0, 5)]
    rows = np.where(p.rng.integers(0, 4, rows.shape) == 0, -1, rows)
    columns = p.pick([], [], [2, 0], [2, -1, 0], [0, 1, 2], [-1, -2], [1, 1], [0, -1, -1, 1])
    if rows.size and p.rng.integers(8) == 0:
        rows[0] = p.pick(4, rows[-1])
    width = len(columns) or 3
    missing = int((rows < 0).sum()) * width + int((rows >= 0).sum()) * sum(c < 0 for c in columns)
    p.step(raw.LoadAndRemapMatrix(ckpt_path=p.hide(np.array(p.pick(b'whole', b'whole', b'parts', b'nowhere'), object)), old_tensor_name=p.pick('m', 'm', 'm', 'm', 'v', 'd', 'x'),
                                  row_remapping=p.hide(rows.astype(np.int64)), col_remapping=p.hide(np.int64(columns)),
                                  initializing_values=p.hide(np.float32(p.rng.integers(20, 99, max(0, missing + p.pick(0, 0, 0, 0, 1, -1))))), num_rows=len(rows) + p.pick(0, 0, 0, 0, 0, 1),
                                  num_cols=width + p.pick(0, 0, 0, 0, 0, 1), max_rows_in_memory=p.pick(-1, -1, 0, 1, 2, 9)))
