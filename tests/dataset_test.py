"""Pipelines built by weir/dataset.h, functions and all, are graphs that TensorFlow runs, too, with the same elements."""
import os
import subprocess

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import pytest
import tensorflow as tf

from conftest import BUILD

v1 = tf.compat.v1
LENGTHS = {'files': 6, 'shuffled': 7, 'padded': 5, 'long_lines': 4}


def tensorflow(path):
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name='')
        session.run('variables')
        session.run('start')
        while True:
            try:
                yield session.run('next:0')
            except tf.errors.OutOfRangeError:
                return


def numbers(text):
    return [float(word) for word in text.replace('[', ' ').replace(']', ' ').split()]


@pytest.mark.parametrize('name', LENGTHS)
def test_elements(name, tmp_path):
    (tmp_path / 'a.txt').write_text('one\nthree\nseventeen\n')
    (tmp_path / 'b.txt').write_text('four\nsix\neight')
    graph = tmp_path / 'graph.pb'
    program = BUILD / 'tests' / 'programs' / 'datasets'
    out = subprocess.run([program, name, tmp_path, graph], check=True, capture_output=True, text=True).stdout
    ours, theirs = [numbers(line) for line in out.splitlines()], [np.ravel(value).tolist() for value in tensorflow(graph)]
    assert ours == theirs
    assert len(ours) == LENGTHS[name]
