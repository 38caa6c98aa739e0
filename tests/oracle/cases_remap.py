"""Vocabularies and matrices of checkpoints: what is refused before a file is opened, and shapes; see programs_remap.py."""
import numpy as np


def cases(check, rng):
    attrs = {'new_vocab_offset': 0, 'num_new_vocab': 2}
    for files in ((b'', b'x'), (b'x', b''), ([b'x'], b'x'), (b'x', [b'x']), (b'nowhere/new', b'nowhere/old')):
        check('GenerateVocabRemapping', [np.array(f, object) for f in files], attrs)
    check('GenerateVocabRemapping', [b'x', b'x'], {'new_vocab_offset': -1, 'num_new_vocab': 2})
    i, f = np.int64, np.float32
    for path, name, rows, columns in ((b'nowhere/x', b'm', [0, 1], []), ([b'nowhere/x'], b'm', [0, 1], []), (b'nowhere/x', [b'm'], [0, 1], []),
                                      (b'x', b'm', [0, 1, 2], []), (b'x', b'm', [0, 0], []), (b'x', b'm', [0, 1], [0]), (b'x', b'm', [0, 1], [1, 1, 0]),
                                      (b'x', b'm', [[0, 1]], [])):
        check('LoadAndRemapMatrix', [np.array(path, object), np.array(name, object), i(rows), i(columns), f([])], {'num_rows': 2, 'num_cols': 3})
    check('LoadAndRemapMatrix', [b'nowhere/x', b'm', i([0, 1]), i([]), f([[1]])], {'num_rows': 2, 'num_cols': 3})
