"""Cases with what TensorFlow made of them, in a file, and their replay where there is no TensorFlow.

    oracle.py --record FILE ...      programs.py --record FILE ...
    oracle.py --replay FILE ...      programs.py --replay FILE ...

A file is xz of one line of JSON followed by blobs: {"kind", "seed", "blobs": their sizes, "cases": [...]}. A case refers to
blobs (NodeDef, GraphDef, TensorProto) by number; equal ones are stored once. Replaying needs numpy and ml_dtypes.
"""
import json
import lzma

from values import read_tensor, write_tensor

NOTHING = -1  # in place of a blob's number: no value


class Writer:
    def __init__(self, kind, seed):
        self.head = {'kind': kind, 'seed': seed, 'blobs': [], 'cases': []}
        self.blobs, self.numbers = [], {}

    def blob(self, data):
        if data not in self.numbers:
            self.numbers[data] = len(self.blobs)
            self.blobs.append(data)
        return self.numbers[data]

    def array(self, array):
        return NOTHING if array is None else self.blob(write_tensor(array))

    def add(self, case):
        self.head['cases'].append(case)

    def save(self, path):
        self.head['blobs'] = [len(b) for b in self.blobs]
        with lzma.open(path, 'wb') as f:
            f.write(json.dumps(self.head).encode() + b'\n')
            for data in self.blobs:
                f.write(data)


class Reader:
    def __init__(self, path, kind):
        with lzma.open(path, 'rb') as f:
            head = json.loads(f.readline())
            self.blobs = [f.read(size) for size in head['blobs']]
        if head['kind'] != kind:
            raise SystemExit(f'{path} holds cases of {head["kind"]}, not of {kind}')
        self.cases, self.seed = head['cases'], head['seed']

    def blob(self, number):
        return self.blobs[number]

    def array(self, number):
        return None if number == NOTHING else read_tensor(self.blobs[number])


def plain(options):
    """Those of a case's options that are numbers, flags and texts."""
    return {k: v for k, v in options.items() if isinstance(v, (bool, int, float, str))}
