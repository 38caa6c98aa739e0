"""Training graphs that TensorFlow's client exports give TensorFlow's losses: each model of models/ with each optimizer.

TensorFlow runs a graph twice: as it comes, and with one thread and without its oneDNN kernels. Where the two part by more
than rounding, the model is chaotic from that step on, and only the steps before it count. On some processors the two round alike;
so before losses are called different TensorFlow runs the graph with constants that differ in their last bits, too.
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
MODELS = ['mlp', 'lenet', 'resnet', 'lstm_v1', 'lstm_v2', 'seq2seq_v1', 'seq2seq_v2', 'gan', 'vae', 'sampled_softmax',
          'wide_deep', 'transformer']
OPTIMIZERS = ['sgd', 'momentum', 'adam', 'adagrad', 'rmsprop']
NAMES = [f'{model}-{optimizer}' for model, optimizer in itertools.product(MODELS, OPTIMIZERS)]
STEPS = 50
LEAST_STEPS = 10  # a model that is chaotic before this proves nothing
TOLERANCE = 1e-3  # relative
CALM = 1e-4  # relative; how near TensorFlow must stay to itself
NUDGES = [3, -3, 6, -6]  # by how many floats constants are moved


def start_tensorflow(folder, names, threads, **environment):
    """Starts one process that traces all |names|: loading TensorFlow takes longer than most models."""
    command = [sys.executable, TESTS.parent / 'bench' / 'peer_tf.py', folder, *names, '--trace', str(STEPS), '--threads', threads]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def finish(process):
    out, _ = process.communicate()
    assert process.returncode == 0
    return {line['graph']: line['losses'] for line in map(json.loads, out.splitlines())}


@pytest.fixture(scope='module')
def traced(request, tmp_path_factory):
    """Exports the graphs of the selected tests; gives their folder and both sets of TensorFlow's losses."""
    names = [i.callspec.params['name'] for i in request.session.items if getattr(i, 'originalname', '') == 'test_model']
    folder = tmp_path_factory.mktemp('models')
    subprocess.run([sys.executable, TESTS / 'models' / 'export.py', folder, *names], check=True, stdout=subprocess.DEVNULL)
    plain = start_tensorflow(folder, names, '2')
    other = start_tensorflow(folder, names, '1', TF_ENABLE_ONEDNN_OPTS='0')
    return folder, finish(plain), finish(other)


def agreeing_steps(a, b):
    """How many steps pass before the two traces part."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not abs(x - y) <= CALM * abs(x)), len(a))


def nudged(graph, floats):
    """The GraphDef |graph| with every fraction among its scalar constants moved by so many floats."""
    import numpy as np  # pylint: disable=import-outside-toplevel
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    graph = tf.compat.v1.GraphDef.FromString(graph)
    for tensor in [node.attr['value'].tensor for node in graph.node if node.op == 'Const']:
        value = tf.make_ndarray(tensor) if tensor.dtype == tf.float32 else np.zeros(0)
        if value.size == 1 and value != np.round(value):
            moved = (value.view(np.int32) + np.int32(floats)).view(np.float32)
            tensor.CopyFrom(tf.make_tensor_proto(moved))
    return graph.SerializeToString()


def calm_steps(folder, name, losses):
    """How many steps pass before TensorFlow parts from its |losses| for a change of last bits."""
    names = [f'{name}{floats:+d}' for floats in NUDGES]
    for nudge, floats in zip(names, NUDGES):
        (folder / f'{nudge}.pb').write_bytes(nudged((folder / f'{name}.pb').read_bytes(), floats))
    traces = finish(start_tensorflow(folder, names, '2'))
    return min(agreeing_steps(losses, traces[nudge]) for nudge in names)


@pytest.mark.parametrize('name', NAMES)
def test_model(name, traced, weir):
    folder, plain, other = traced
    steps = agreeing_steps(plain[name], other[name])
    got = json.loads(weir('bench', folder / f'{name}.pb', f'--trace={STEPS}', '--json').stdout)['losses']
    assert len(got) == STEPS
    if got[:steps] != pytest.approx(plain[name][:steps], rel=TOLERANCE):
        steps = min(steps, calm_steps(folder, name, plain[name]))
    worst = max((abs(x - y) / abs(y) for x, y in zip(got[:steps], plain[name])), default=0)
    print(f'{name}: {steps} of {STEPS} steps count, loss {plain[name][0]:.4g} to {plain[name][-1]:.4g}, off by {worst:.1e}')
    assert steps >= LEAST_STEPS
    assert got[:steps] == pytest.approx(plain[name][:steps], rel=TOLERANCE)


# ---- over several devices ----

SPREAD = [f'{model}-{optimizer}' for model, optimizer in zip(MODELS, itertools.cycle(OPTIMIZERS))]
LAYERS = '/device:CPU:0,/device:GUARD:0,/device:CPU:1,/device:GUARD:1'


@pytest.fixture(scope='module')
def spread(request, tmp_path_factory):
    """The folder with the graphs of the selected tests of spread models."""
    tests = ('test_model_over_devices', 'test_model_with_any_threads', 'test_layers_on_devices', 'test_model_without_fusion',
             'test_model_in_mixed_precision')
    items = [i for i in request.session.items if getattr(i, 'originalname', '') in tests]
    folder = tmp_path_factory.mktemp('spread')
    names = sorted({i.callspec.params['name'] for i in items})
    subprocess.run([sys.executable, TESTS / 'models' / 'export.py', f'--layers={LAYERS}', folder, *names], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def losses(weir, file, *options):
    return json.loads(weir('bench', file, '--trace=10', '--json', *options).stdout)['losses']


@pytest.mark.parametrize('name', SPREAD)
def test_model_over_devices(name, spread, weir):
    want = losses(weir, spread / f'{name}.pb')
    for seed in (1, 2):
        assert losses(weir, spread / f'{name}.pb', '--devices=cpu:2,guard:2', f'--place=random:{seed}') == want


@pytest.mark.parametrize('name', SPREAD)
def test_model_with_any_threads(name, spread, weir):
    """To the bit: how work is cut does not depend on who does it."""
    want = losses(weir, spread / f'{name}.pb', '--threads=1')
    for threads in (2, 7):
        assert losses(weir, spread / f'{name}.pb', f'--threads={threads}') == want


@pytest.mark.parametrize('name', SPREAD)
def test_layers_on_devices(name, spread, weir):
    """By hand, layer by layer, as for a model that does not fit one device."""
    got = losses(weir, spread / f'{name}-layers.pb', '--devices=cpu:2,guard:2')
    assert len(got) == 10 and got == losses(weir, spread / f'{name}.pb')


@pytest.mark.parametrize('name', SPREAD)
def test_model_without_fusion(name, spread, weir, monkeypatch):
    """To the bit: a fused node rounds where its nodes did."""
    want = losses(weir, spread / f'{name}.pb')
    monkeypatch.setenv('WEIR_DISABLE_PASSES', 'fuse')
    assert losses(weir, spread / f'{name}.pb') == want


@pytest.mark.parametrize('kind', ['bf16', 'half'])
@pytest.mark.parametrize('name', SPREAD)
def test_model_in_mixed_precision(name, kind, spread, weir):
    """Near the losses of float, on any devices. Which nodes are in 16 bits depends on the graph, which depends on its devices."""
    file = spread / f'{name}.pb'
    want = losses(weir, file)
    for options in ((), ('--devices=cpu:2,guard:2', '--place=random:1')):
        got = losses(weir, file, f'--amp={kind}', *options)
        assert got != want and got[:8] == pytest.approx(want[:8], rel=0.02)
