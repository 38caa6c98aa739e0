"""ONNX models: the node tests of the onnx package, weights beside a model, functions, and whole networks.

    python3 tests/onnx_test.py [PATTERN]    prints what does not pass, and the tables of docs/import.md
"""
import collections
import pathlib
import re
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_cases import Model, judge, lib, node_cases
from weir_tensors import WeirError

import ctypes

DOCS = pathlib.Path(__file__).resolve().parent.parent / 'docs' / 'import.md'
# So many of the node tests of onnx 1.23 pass; fewer would be a loss.
FLOOR = 1511
# Where Weir gives other numbers, and why.
MEANT = {
    r'attention.*(bf16|fp16)_expanded': 'products in 16 bits are summed in 32 and rounded once; the test rounds each step',
}


def is_meant(name):
    return any(re.search(pattern, name) for pattern in MEANT)


def run_all(pattern=''):
    """{'passes': [(name, '')], 'refused': [(name, why)], 'fails': [(name, why)]}"""
    verdicts = collections.defaultdict(list)
    for case in node_cases():
        if re.search(pattern, case.name):
            verdict, why = judge(case)
            verdicts[verdict].append((case.name, why))
    return verdicts


class Op(ctypes.Structure):
    _fields_ = [('domain', ctypes.c_char_p), ('name', ctypes.c_char_p), ('since', ctypes.c_int)]


lib.lib.weir_onnx_op_at.restype = Op


def ops():
    """(name, since) of all ops that Weir imports."""
    out = []
    while (op := lib.lib.weir_onnx_op_at(len(out))).name:
        out.append(((op.domain.decode() + '.' if op.domain else '') + op.name.decode(), op.since))
    return sorted(out)


def table():
    """The table of ops in docs/import.md: a line of names for each version from which on they are imported."""
    by_version = collections.defaultdict(list)
    for name, since in ops():
        by_version[since].append(name)
    rows = [f'| {since} | {", ".join(by_version[since])} |' for since in sorted(by_version)]
    return '\n'.join(['| opset | ops |', '|---|---|'] + rows)


@pytest.fixture(scope='module')
def verdicts():
    return run_all()


def test_nodes_give_what_onnx_says(verdicts):
    wrong = [f'{name}: {why}' for name, why in verdicts['fails'] if not is_meant(name)]
    assert not wrong, '\n'.join(wrong)


def test_none_that_passed_is_lost(verdicts):
    assert len(verdicts['passes']) >= FLOOR


def test_refusals_name_what_is_not_there(verdicts):
    for name, why in verdicts['refused']:
        assert re.search(r"ops that Weir cannot import: \S+ \('|node '.*': \w+ |input '.*' is |no tensor|type ", why), (name, why)


def test_docs_have_the_table():
    assert table() in DOCS.read_text()


def save(tmp_path, nodes, inputs, outputs, initializers=(), functions=(), opsets=(), **options):
    graph = helper.make_graph(nodes, 'g', inputs, outputs, list(initializers))
    imports = [helper.make_opsetid('', 17)] + [helper.make_opsetid(*o) for o in opsets]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)
    onnx.save_model(model, str(tmp_path / 'm.onnx'), **options)
    return tmp_path / 'm.onnx'


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def test_weights_beside_the_model(tmp_path):
    w = np.arange(2000, dtype=np.float32).reshape(20, 100)
    path = save(tmp_path, [helper.make_node('MatMul', ['x', 'w'], ['y'])], [value('x', ['n', 20])], [value('y', ['n', 100])],
                [numpy_helper.from_array(w, 'w')], save_as_external_data=True, location='w.bin', size_threshold=0)
    x = np.ones((3, 20), np.float32)
    with Model(path) as model:
        np.testing.assert_allclose(model.run([x])[0], x @ w)
    (tmp_path / 'w.bin').unlink()
    with pytest.raises(WeirError, match="w.bin"):
        Model(path)


def test_functions_have_attributes(tmp_path):
    scaled = helper.make_node('LeakyRelu', ['a'], ['b'])
    attribute = onnx.AttributeProto(name='alpha', type=onnx.AttributeProto.FLOAT, ref_attr_name='slope')
    scaled.attribute.append(attribute)
    function = helper.make_function('mine', 'Slope', ['a'], ['b'], [scaled], [helper.make_opsetid('', 17)], ['slope'])
    path = save(tmp_path, [helper.make_node('Slope', ['x'], ['y'], domain='mine', slope=0.25)], [value('x', [2])],
                [value('y', [2])], functions=[function], opsets=[('mine', 1)])
    with Model(path) as model:
        assert list(model.run([np.array([-4, 4], np.float32)])[0]) == [-1, 4]


def test_branches_see_values_around_them(tmp_path):
    branches = {f'{side}_branch': helper.make_graph([helper.make_node(op, ['x', 'w'], [side])], side, [], [value(side, [2])])
                for side, op in (('then', 'Add'), ('else', 'Mul'))}
    path = save(tmp_path, [helper.make_node('If', ['c'], ['y'], **branches)],
                [value('c', [], TensorProto.BOOL), value('x', [2])], [value('y', [2])],
                [numpy_helper.from_array(np.array([3, 5], np.float32), 'w')])
    x = np.array([2, 2], np.float32)
    with Model(path) as model:
        assert list(model.run([np.array(True), x])[0]) == [5, 7]
        assert list(model.run([np.array(False), x])[0]) == [6, 10]


def network():
    """A small network as exporters write them: convolutions, batch normalization, shapes computed from shapes."""
    rng = np.random.default_rng(1)
    weights = {'w1': (8, 3, 3, 3), 's': (8,), 'b': (8,), 'm': (8,), 'v': (8,), 'dw': (8, 1, 3, 3), 'fc': (10, 128), 'fb': (10,)}
    arrays = {n: rng.uniform(0.1, 0.5, shape).astype(np.float32) for n, shape in weights.items()}
    make = helper.make_node
    nodes = [
        make('Conv', ['x', 'w1'], ['c1'], pads=[1, 1, 1, 1], strides=[2, 2]),
        make('BatchNormalization', ['c1', 's', 'b', 'm', 'v'], ['n1']),
        make('Clip', ['n1', 'zero', 'six'], ['r1']),
        make('Conv', ['r1', 'dw'], ['c2'], group=8, auto_pad='SAME_UPPER'),
        make('AveragePool', ['c2'], ['p'], kernel_shape=[2, 2], strides=[2, 2]),
        make('Shape', ['p'], ['shape']),
        make('Gather', ['shape', 'at'], ['batch']),
        make('Unsqueeze', ['batch', 'axes'], ['row']),
        make('Concat', ['row', 'rest'], ['flat'], axis=0),
        make('Reshape', ['p', 'flat'], ['f']),
        make('Gemm', ['f', 'fc', 'fb'], ['logits'], transB=1),
        make('Softmax', ['logits'], ['y'], axis=-1)]
    arrays |= {'zero': np.array(0, np.float32), 'six': np.array(6, np.float32), 'at': np.array(0), 'axes': np.array([0]),
               'rest': np.array([-1])}
    return nodes, arrays


def test_network_with_a_batch_of_any_size(tmp_path):
    from onnx.reference import ReferenceEvaluator
    nodes, arrays = network()
    path = save(tmp_path, nodes, [value('x', ['n', 3, 16, 16])], [value('y', ['n', 10])],
                [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    reference = ReferenceEvaluator(str(path))
    with Model(path) as model:
        for batch in (1, 5):
            x = np.random.default_rng(batch).standard_normal((batch, 3, 16, 16)).astype(np.float32)
            np.testing.assert_allclose(model.run([x])[0], reference.run(None, {'x': x})[0], rtol=1e-4, atol=1e-6)


class NamedTensor(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('tensor', ctypes.c_void_p)]


def test_model_load_runs_by_name(tmp_path):
    path = save(tmp_path, [helper.make_node('Sub', ['left side', 'b'], ['the/difference'])],
                [value('left side', ['n']), value('b', ['n'])], [value('the/difference', ['n'])])
    model = lib.make('weir_model_load', str(path).encode(), None)
    tensors = [lib.tensor(np.array(v, np.float32)) for v in ([5, 7], [1, 2])]
    inputs = (NamedTensor * 2)(NamedTensor(b'b', tensors[1].value), NamedTensor(b'left side', tensors[0].value))
    outputs = (NamedTensor * 1)(NamedTensor(b'the/difference', None))
    lib.call('weir_model_run', model, None, inputs, 2, outputs, 1, None)
    assert list(lib.array(ctypes.c_void_p(outputs[0].tensor))) == [4, 5]
    for tensor in tensors:
        lib.lib.weir_tensor_release(tensor)
    lib.lib.weir_model_destroy(model)


def main():
    verdicts = run_all(sys.argv[1] if len(sys.argv) > 1 else '')
    for verdict in ('refused', 'fails'):
        for name, why in verdicts[verdict]:
            print(f'{verdict:8} {name}: {why[:200]}')
    print(', '.join(f'{len(found)} {verdict}' for verdict, found in sorted(verdicts.items())))
    print(table())


if __name__ == '__main__':
    main()
