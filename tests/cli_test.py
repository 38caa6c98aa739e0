"""The weir command from outside: verbs, options, exit codes, what goes to which stream."""
import json
import os
import pathlib
import re
import subprocess
import time

import numpy as np
import pytest

import conftest

GRAPHS = conftest.ROOT / 'bench' / 'graphs'
MLP = GRAPHS / 'mlp_b128.pb'
VERBS = ['bench', 'run', 'place', 'show', 'serve', 'freeze', 'checkpoint', 'ops', 'top', 'completion', 'version']

ADD = '''
node {name: "x" op: "Placeholder" attr {key: "dtype" value {type: DT_FLOAT}}}
node {name: "y" op: "Const" attr {key: "dtype" value {type: DT_FLOAT}}
      attr {key: "value" value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 2}}}}
node {name: "sum" op: "AddV2" input: "x" input: "y" attr {key: "T" value {type: DT_FLOAT}}}
node {name: "text" op: "Placeholder" attr {key: "dtype" value {type: DT_STRING}}}
node {name: "same" op: "Identity" input: "text" attr {key: "T" value {type: DT_STRING}}}
node {name: "v" op: "VarHandleOp" attr {key: "dtype" value {type: DT_FLOAT}} attr {key: "shape" value {shape {}}}}
node {name: "set" op: "AssignVariableOp" input: "v" input: "y" attr {key: "dtype" value {type: DT_FLOAT}}}
node {name: "read" op: "ReadVariableOp" input: "v" attr {key: "dtype" value {type: DT_FLOAT}}}
'''


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / 'add.pbtxt'
    path.write_text(ADD)
    return path


def test_version(weir):
    assert weir('version').stdout.startswith('weir 0.')
    assert weir('--version').stdout == weir('version').stdout


@pytest.mark.parametrize('verb', VERBS)
def test_help(weir, verb):
    done = weir(verb, '--help')
    assert done.stdout.startswith(f'usage: weir {verb}') and done.stderr == ''
    assert verb in weir('--help').stdout


@pytest.mark.parametrize('args', [
    [], ['nonsense'], ['bench'], ['run'], ['show'], ['run', 'x.pb', '--json', '--save=x'], ['bench', 'x.pb', '--steps=0'], ['bench', 'x.pb', '--steps=a'],
    ['bench', 'x.pb', '--threads=-1'], ['bench', 'x.pb', '--nonsense'], ['show', 'x.pb', '--nonsense'], ['ops', '--nonsense'],
    ['completion'], ['completion', 'fish'], ['completion', 'bash', 'bash'],
    ['run', 'x.pb', '--fetch=a', '--nonsense'], ['show', 'a.pb', 'b.pb']])
def test_bad_usage(weir, args):
    done = weir(*args, check=False)
    assert done.returncode == 2 and done.stdout == '' and 'weir' in done.stderr


@pytest.mark.parametrize('verb', [['show'], ['bench'], ['run', '--fetch=a']])
def test_bad_files(weir, tmp_path, verb):
    for name, data in [('bad.pb', b'\x0a\xff\xff\xff'), ('bad.pbtxt', b'node {'), ('text.pb', b'hello world')]:
        (tmp_path / name).write_bytes(data)
        done = weir(verb[0], tmp_path / name, *verb[1:], check=False)
        assert done.returncode == 1 and done.stdout == '' and done.stderr.startswith('weir: ')
    done = weir(verb[0], tmp_path / 'missing.pb', *verb[1:], check=False)
    assert done.returncode == 1 and 'NOT_FOUND' in done.stderr and 'missing.pb' in done.stderr


def test_show(weir, graph):
    out = weir('show', graph).stdout
    assert '8 nodes' in out and 'AddV2' in out
    out = weir('show', graph, '--nodes').stdout
    assert 'sum = AddV2(x, y) -> float' in out
    again = graph.with_name('again.pbtxt')
    again.write_text(weir('show', graph, '--text').stdout)
    assert weir('show', again, '--nodes').stdout.splitlines()[1:] == out.splitlines()[1:]


def test_run(weir, graph, tmp_path):
    assert weir('run', graph, '--feed', 'x=3', '--fetch', 'sum').stdout == 'sum = 5\n'
    assert weir('run', graph, '--feed=x=1,2', '--fetch=sum:0', '--fetch=y').stdout == 'sum:0 = [3 4]\ny = 2\n'
    assert 'hello' in weir('run', graph, '--feed=text=hello', '--fetch=same').stdout
    assert weir('run', graph, '--init=set', '--fetch=read').stdout == 'read = 2\n'
    assert weir('run', graph, '--target=set').stdout == ''
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / 'x.npy', array)
    weir('run', graph, f'--feed=x=@{tmp_path}/x.npy', '--fetch=sum', '--save', tmp_path / 'out')
    np.testing.assert_array_equal(np.load(tmp_path / 'out0.npy'), array + 2)


@pytest.mark.parametrize('args, text', [
    (['--fetch=sum'], "must feed a value for placeholder tensor 'x'"),
    (['--fetch=nobody'], 'nobody'),
    (['--target=nobody'], 'nobody'),
    (['--feed=x=words', '--fetch=sum'], 'x'),
    (['--feed=nobody=1', '--fetch=sum'], 'nobody'),
    (['--feed=x', '--fetch=sum'], 'x'),
    (['--feed=x=@/nonexistent.npy', '--fetch=sum'], '/nonexistent.npy'),
    (['--fetch=read'], 'FAILED_PRECONDITION')])
def test_run_fails(weir, graph, args, text):
    done = weir('run', graph, *args, check=False)
    assert done.returncode == 1 and done.stdout == '' and text in done.stderr


def test_ops(weir):
    lines = [json.loads(line) for line in weir('ops', '--json').stdout.splitlines()]
    names = [op['name'] for op in lines]
    assert len(names) > 300 and names == sorted(names) and 'MatMul' in names
    assert all(set(op) >= {'name', 'types', 'devices', 'gradient'} for op in lines)
    assert not any('invalid' in types for op in lines for types in op['types'].values())
    assert 'transpose_a' in weir('ops', 'MatMul').stdout
    done = weir('ops', 'Nobody', check=False)
    assert done.returncode == 1 and 'NOT_FOUND' in done.stderr


def test_every_op_says_what_it_does(weir):
    header = (conftest.BUILD / 'include' / 'weir' / 'ops.h').read_text()
    described = dict(re.findall(r'^// (\w+): (.*)$', header, re.M))
    for op in map(json.loads, weir('ops', '--json').stdout.splitlines()):
        name, summary = op['name'], op['summary']
        assert 2 <= len(summary) <= 99, f'{name}: {summary}'
        assert summary != name and summary.strip() == summary and '\n' not in summary, name
        assert described.get(name, summary) == summary
    assert set(re.findall(r'^// (\w+)$', header, re.M)) == set()  # functions without a word
    assert f"  {described['Roll']}\n" in weir('ops', 'Roll').stdout


def test_bench_json(weir):
    done = weir('bench', MLP, '--json', '--steps=6', '--warmup=1')
    result = json.loads(done.stdout)
    assert result['graph'] == 'mlp_b128' and result['steps'] == 6 and result['system'].startswith('weir ')
    assert 0 < result['step_ms'] <= result['p90_ms'] and result['nodes'] > 0 and result['peak_bytes'] > 0
    assert done.stderr == ''  # no progress where nobody watches


def test_bench_text(weir):
    done = weir('bench', MLP, '--steps=5')
    assert done.stdout.startswith('mlp_b128: ') and done.stdout.count('\n') == 1 and done.stderr == ''


def test_bench_losses_do_not_depend_on_threads(weir):
    one, four = (json.loads(weir('bench', MLP, '--trace=5', f'--threads={n}').stdout)['losses'] for n in (1, 4))
    assert len(one) == 5 and one == four


def test_mixed_precision(weir, monkeypatch):
    trace = lambda *options: json.loads(weir('bench', MLP, '--trace=3', *options).stdout)['losses']
    plain, mixed = trace(), trace('--amp=bf16')
    assert mixed != plain and mixed == pytest.approx(plain, rel=0.02)
    assert trace('--amp=off') == plain
    monkeypatch.setenv('WEIR_DISABLE_PASSES', 'mixed')
    assert trace('--amp=bf16') == plain
    for verb in ('bench', 'run'):
        failed = weir(verb, MLP, '--fetch=loss:0', '--amp=int8', check=False)
        assert failed.returncode == 1 and "'bf16' or 'half', not 'int8'" in failed.stderr


def test_bench_profile(weir, tmp_path):
    weir('bench', MLP, '--steps=5', f'--profile={tmp_path}/trace.json')
    events = json.loads((tmp_path / 'trace.json').read_text())['traceEvents']
    assert 'MatMul' in {event['name'] for event in events}
    assert all(event['ph'] == 'X' and event['dur'] >= 0 and event['args']['name'] for event in events)
    done = weir('bench', MLP, '--steps=5', '--profile=/nonexistent/trace.json', check=False)
    assert done.returncode == 1 and '/nonexistent/trace.json' in done.stderr


def test_bench_unknown_nodes(weir):
    for option in ('--init=nobody', '--run=nobody', '--fetch=nobody:0'):
        done = weir('bench', MLP, option, check=False)
        assert done.returncode == 1 and done.stderr.startswith('weir: NOT_FOUND')


def test_devices(weir):
    """The same loss wherever the nodes are; what is no device, and no placement, is said."""
    loss = [weir('bench', MLP, '--steps=5', '--seconds=0', *more).stdout.split('loss ')[1].split(',')[0]
            for more in ((), ('--devices=cpu:2', '--place=/device:CPU:1'), ('--devices=cpu:2,guard:2', '--place=random:1'),
                         ('--devices=guard', '--place=/device:GUARD:0'), ('--devices=cpu,guard:2', '--place=cost'))]
    assert len(set(loss)) == 1
    for option in ('--place=GPU', '--devices=gpu:1', '--devices=cpu:0'):
        done = weir('bench', MLP, option, check=False)
        assert done.returncode == 1 and done.stderr.startswith('weir: INVALID_ARGUMENT')


def test_place(weir):
    """A report on a step that never runs: every node is somewhere, and the critical path ends with the step."""
    text = weir('place', MLP, '--devices=cpu,guard:2').stdout
    assert 'predicted step: ' in text and 'bytes crossed: ' in text and 'critical path: ' in text
    found = json.loads(weir('place', MLP, '--devices=cpu,guard:2@speed=0.5', '--json', '--verbose').stdout)
    devices = {device['name'].split('/')[-1]: device for device in found['devices']}
    assert set(devices) == {'device:CPU:0', 'device:GUARD:0', 'device:GUARD:1'}
    assert sum(device['nodes'] for device in devices.values()) == len(found['nodes']) > 50
    last = found['critical_path'][-1]
    assert abs(last['start_ns'] + last['ns'] - found['step_ns']) <= 2
    alone = json.loads(weir('place', MLP, '--devices=cpu', '--json').stdout)
    assert alone['crossed_bytes'] == 0 and 'nodes' not in alone
    away = json.loads(weir('place', MLP, '--devices=cpu,guard', '--place=/device:GUARD:0', '--json').stdout)
    assert away['crossed_bytes'] > 0


def test_place_by_rates(weir, tmp_path):
    """With the same rates, the same placement and the same prediction; what is said of a device counts."""
    devices = '--devices=cpu,guard:2@speed=0.5'
    rates = tmp_path / 'rates'
    rates.write_text(weir('place', '--print-rates', devices).stdout)
    assert [line.split()[0] for line in rates.read_text().splitlines()] == ['CPU:0', 'GUARD:0', 'GUARD:1']
    first, second = (weir('place', MLP, devices, f'--rates={rates}', '--verbose', '--json').stdout for _ in range(2))
    assert first == second
    line = '%s flops=1e9 bytes=1e9 copy_bytes=1e9 speed=%s\n'
    rates.write_text(''.join(line % at for at in (('CPU:0', 1e-3), ('GUARD:0', 1e-3), ('GUARD:1', 1))))
    found = json.loads(weir('place', MLP, devices, f'--rates={rates}', '--json').stdout)
    nodes = [device['nodes'] for device in found['devices']]
    assert nodes[2] > 10 * (nodes[0] + nodes[1])
    assert 'loss' in weir('bench', MLP, devices, '--place=cost', f'--rates={rates}', '--steps=1', '--seconds=0').stdout


def test_bench_places_as_measured(weir):
    """The same loss, wherever nodes went after a few steps that left nothing behind."""
    options = ['--devices=cpu,guard:2', '--trace=3']
    first, second = (json.loads(weir('bench', MLP, *options, f'--place={how}').stdout)['losses'] for how in ('graph', 'measured'))
    np.testing.assert_allclose(first, second, rtol=1e-5)
    assert weir('run', MLP, '--fetch=loss:0', '--place=measured', check=False).returncode == 1


def test_place_in_a_cluster(weir, tmp_path):
    """What tasks would do: a step takes as much more as it takes to start one, and values to get there."""
    graph, tasks = tmp_path / 'graph.pbtxt', tmp_path / 'tasks'
    node = 'node {name: "%s" op: "Exp" input: "%s" device: "/job:worker/task:%d" attr {key: "T" value {type: DT_FLOAT}}}\n'
    line = '/job:worker/replica:0/task:%d/device:CPU:0 flops=1e9 bytes=1e12 copy_bytes=1e6 copy_ns=%d step_ns=%d\n'
    took = {}
    for key, at in {'one': (0, 0, 0), 'two': (0, 1, 0)}.items():
        graph.write_text(ADD + ''.join(node % item for item in zip('abc', ('read', 'a', 'b'), at)))
        tasks.write_text(line % (0, 0, 5000000) + line % (1, 3000000, 8000000))
        found = json.loads(weir('place', graph, f'--cluster={tasks}', '--place=graph', '--run=', '--fetch=c', '--json').stdout)
        took[key] = found['step_ns'], found['crossed_bytes']
    assert abs(took['one'][0] - 5e6) < 1e5 and took['one'][1] == 0
    assert abs(took['two'][0] - (8e6 + 2 * 3e6)) < 1e5 and took['two'][1] == 8  # there and back
    tasks.write_text('CPU:0 flops=1')
    done = weir('place', MLP, f'--cluster={tasks}', check=False)
    assert done.returncode == 1 and 'line 1' in done.stderr
    assert weir('place', '--print-rates', '--tasks=/job:a/task:0', check=False).returncode == 2


def trace_of(times, device=''):
    events = [{'name': 'Op', 'ph': 'X', 'tid': 0, 'ts': 0, 'dur': micros, 'args': {'name': name, 'device': device, 'bytes': 0}}
              for name, micros in times.items()]
    return json.dumps({'traceEvents': events})


def test_place_by_trace(weir, tmp_path):
    """Times of a trace go before what ops compute: what it says takes a second does."""
    trace = tmp_path / 'trace.json'
    weir('bench', MLP, '--steps=5', '--seconds=0', f'--profile={trace}')
    took = sum(event['dur'] for event in json.loads(trace.read_text())['traceEvents'])
    found = json.loads(weir('place', MLP, f'--trace={trace}', '--json').stdout)
    assert 0.5 * took <= found['step_ns'] / 1e3 <= 1.5 * took + 100  # the nodes of one CPU, one after the other
    trace.write_text(trace_of({'MatMul': 1e6}))
    found = json.loads(weir('place', MLP, f'--trace={trace}', '--json').stdout)
    assert any(item['name'] == 'MatMul' and abs(item['ns'] - 1e9) < 1e6 for item in found['critical_path'])


def test_place_goes_with_the_trace(weir, tmp_path):
    """Two branches go apart where they are heavy, and stay together where that does not pay."""
    graph = tmp_path / 'branches.pbtxt'
    branch = '''
node {name: "%s" op: "%s" input: "read" device: "/device:GUARD:*" attr {key: "T" value {type: DT_FLOAT}}}'''
    graph.write_text(ADD + branch % ('a', 'Square') + branch % ('b', 'Exp') + '''
node {name: "both" op: "AddV2" input: "a" input: "b" attr {key: "T" value {type: DT_FLOAT}}}''')
    trace = tmp_path / 'trace.json'
    where = {}
    for micros in (1, 1e6):
        trace.write_text(trace_of({'a': micros, 'b': micros}))
        found = json.loads(weir('place', graph, '--devices=cpu,guard:2@bandwidth=1e3', '--run=', '--fetch=both', '--json', '--verbose',
                                f'--trace={trace}').stdout)
        where[micros] = {node['name']: node['device'] for node in found['nodes']}
    assert where[1]['a'] == where[1]['b'] and 'GUARD' in where[1]['a']
    assert {where[1e6]['a'][-7:], where[1e6]['b'][-7:]} == {'GUARD:0', 'GUARD:1'}


@pytest.mark.parametrize('options, code, message', [
    (['--devices=tpu'], 'INVALID_ARGUMENT', 'tpu'),
    (['--run=nobody'], 'NOT_FOUND', 'nobody'),
    (['--fetch=nobody:0'], 'NOT_FOUND', 'nobody'),
    (['--trace=/no/such/trace.json'], 'NOT_FOUND', '/no/such/trace.json'),
    ([f'--trace={__file__}'], 'INVALID_ARGUMENT', 'line 1'),
    (['--place=anywhere'], 'INVALID_ARGUMENT', 'anywhere'),
    (['--rates=/no/such/rates'], 'NOT_FOUND', '/no/such/rates'),
    ([f'--rates={__file__}'], 'INVALID_ARGUMENT', 'line 1'),
])
def test_place_errors(weir, options, code, message):
    done = weir('place', MLP, *options, check=False)
    assert done.returncode == 1 and done.stderr.startswith(f'weir: {code}') and message in done.stderr and not done.stdout


def test_place_of_what_is_no_graph(weir, tmp_path):
    bad = tmp_path / 'bad.pb'
    bad.write_bytes(b'\xff\xff\xff')
    done = weir('place', bad, check=False)
    assert done.returncode == 1 and 'bad.pb' in done.stderr
    assert weir('place', check=False).returncode == 2
    assert weir('place', MLP, '--threads=many', check=False).returncode == 2


def thread_count(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('Threads:'):
            return int(line.split()[1])


def most_threads(threads):
    """The highest number of threads seen while a bench runs."""
    process = subprocess.Popen([conftest.BUILD / 'cli' / 'weir', 'bench', MLP, '--steps=1000000', '--seconds=1', f'--threads={threads}'],
                               stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, thread_count(process.pid) or 0)
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.01)
    assert process.wait() == 0
    return most


def test_one_thread_means_one():
    assert most_threads(1) == 1


def test_so_many_threads_and_no_more():
    assert 1 <= most_threads(3) <= 3


def completed(tmp_path, *words):
    """What bash proposes for the last of |words|, by the completion that the command prints."""
    script = f"""
eval "$(weir completion bash)"
COMP_WORDS=({' '.join(f"'{word}'" for word in words)})
COMP_CWORD={len(words) - 1}
compopt() {{ echo "compopt $*" >&2; }}  # which needs readline
_weir
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = dict(os.environ, PATH=f"{conftest.BUILD / 'cli'}:{os.environ['PATH']}")
    done = subprocess.run(['bash', '-uc', script], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    return done.stdout.split(), done.stderr


def test_completion_of_verbs(weir, tmp_path):
    help_text = weir('--help').stdout.split('\n\n')[1]
    verbs = [line.split()[0] for line in help_text.splitlines()]
    assert completed(tmp_path, 'weir', '') == (verbs + ['--help', '--version'], '')
    assert completed(tmp_path, 'weir', 'vers') == (['version'], '')
    assert completed(tmp_path, 'weir', 'ops', 'BatchMatMul') == (['BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3'], '')
    assert completed(tmp_path, 'weir', 'show', 'a') == ([], '')  # a file: bash's own


def test_completion_of_options(tmp_path):
    words, _ = completed(tmp_path, 'weir', 'bench', '--t')
    assert sorted(words) == ['--target=', '--tf32=', '--threads=', '--tls-ca=', '--tls-cert=', '--tls-key=', '--token-file=', '--trace=']
    assert completed(tmp_path, 'weir', 'run', '--fee') == (['--feed='], 'compopt -o nospace\n')
    assert completed(tmp_path, 'weir', 'show', 'x.pb', '--te') == (['--text'], '')
    assert '--exit-with-chief' in completed(tmp_path, 'weir', 'server', '-')[0]
    for verb in ('bench', 'run'):  # which say how another verb is called
        assert '--print-rates' not in completed(tmp_path, 'weir', verb, '--')[0]
