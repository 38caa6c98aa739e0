"""The benchmark graphs give TensorFlow's losses: the same GraphDef, the same seeds, step by step.

Some graphs are chaotic: rounding grows from step to step. The large convolutional nets count for two steps. lstm_lm_h650
counts for all twenty on 64-bit ARM, where products round as TensorFlow's do (kernel/gemm/gemm_packed.h), elsewhere for ten:
TensorFlow with its oneDNN kernels differs from itself without them by 1.3e-3 at the eleventh step, and with one thread from
itself with two by 1.4e-3 at the thirteenth.
"""
import json
import pathlib
import platform
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRAPHS = ROOT / 'bench' / 'graphs'
STEPS = {'alexnet_b16': 2, 'overfeat_b8': 2, 'vgg_a_b4': 2, 'googlenet_b8': 2}
if platform.machine() != 'aarch64':
    STEPS['lstm_lm_h650'] = 10
GPU_SIZED = {'alexnet_b128', 'overfeat_b128', 'vgg_a_b64', 'googlenet_b128', 'inception_v3_b64', 'resnet50_b64'}
NAMES = sorted({p.stem for p in GRAPHS.glob('*.pb')} - GPU_SIZED)


def steps_of(name):
    return STEPS.get(name, 20)


@pytest.fixture(scope='module')
def expected(request):
    """Losses of the real TensorFlow, by the same script that times it: loading TensorFlow takes longer than most graphs."""
    names = [i.callspec.params['name'] for i in request.session.items if getattr(i, 'originalname', '') == 'test_losses']
    losses = {}
    for steps in sorted({steps_of(name) for name in names}):
        command = ['python3', ROOT / 'bench' / 'peer_tf.py', GRAPHS, *(name for name in names if steps_of(name) == steps),
                   '--trace', str(steps)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        losses.update((line['graph'], line['losses']) for line in map(json.loads, out.splitlines()))
    return losses


@pytest.mark.parametrize('name', NAMES)
def test_losses(name, weir, expected):
    out = weir('bench', GRAPHS / f'{name}.pb', f'--trace={steps_of(name)}').stdout
    got = json.loads(out)['losses']
    assert got == pytest.approx(expected[name], rel=1e-3)


# Large enough for kernels to be cut among threads, small enough for one.
CUT = ['googlenet_b8', 'lenet_b128', 'lstm_lm_b20', 'mlp_b128', 'wide_embedding_b512']


@pytest.mark.parametrize('name', CUT)
def test_losses_with_any_threads(name, weir):
    """To the bit: how work is cut does not depend on who does it."""
    losses = [json.loads(weir('bench', GRAPHS / f'{name}.pb', '--trace=3', f'--threads={n}').stdout)['losses'] for n in (1, 2, 7)]
    assert losses[0] == losses[1] == losses[2]
