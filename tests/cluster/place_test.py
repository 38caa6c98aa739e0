"""Predictions for a cluster: what transfers between its tasks take is measured on it."""
import json
import subprocess

import clusters


def weir(*arguments):
    return subprocess.run([str(clusters.WEIR), *map(str, arguments)], capture_output=True, text=True)

GRAPH = '''
node {name: "n" op: "Const" attr {key: "dtype" value {type: DT_INT32}}
      attr {key: "value" value {tensor {dtype: DT_INT32 tensor_shape {dim {size: 1}} int_val: 9}}}}
node {name: "there" op: "RandomUniform" input: "n" attr {key: "T" value {type: DT_INT32}} attr {key: "dtype" value {type: DT_FLOAT}}
      device: "/job:worker/task:1"}
node {name: "loss" op: "Neg" input: "there" attr {key: "T" value {type: DT_FLOAT}} device: "/job:worker/task:0"}
'''


def test_rates_of_tasks(cluster, tmp_path):
    names = [f'/job:worker/replica:0/task:{i}' for i in range(2)]
    done = weir('place', '--print-rates', f'--target={cluster.target}', f'--tasks={",".join(names)}')
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [f'{name}/device:CPU:0' for name in names]
    rates = tmp_path / 'rates'
    rates.write_text(done.stdout)
    graph = tmp_path / 'graph.pbtxt'
    graph.write_text(GRAPH)
    found = json.loads(weir('place', graph, f'--cluster={rates}', '--run=', '--place=graph', '--json').stdout)
    assert found['crossed_bytes'] == 36 and found['step_ns'] > 0


def test_trace_of_tasks(cluster, tmp_path):
    """The times of nodes come from the tasks that ran them."""
    graph, trace = tmp_path / 'graph.pbtxt', tmp_path / 'trace'
    graph.write_text(GRAPH)
    done = weir('bench', graph, f'--target={cluster.target}', '--run=', '--init=', '--steps=1', f'--profile={trace}')
    assert done.returncode == 0, done.stderr
    events = {event['args']['name']: event for event in json.loads(trace.read_text())['traceEvents']}
    assert events['loss']['args']['device'] == '/job:worker/replica:0/task:0/device:CPU:0'
    assert events['there']['args']['device'] == '/job:worker/replica:0/task:1/device:CPU:0'
    assert events['there']['name'] == 'RandomUniform' and events['there']['args']['bytes'] == 36


def test_tasks_that_are_not_there(cluster):
    done = weir('place', '--print-rates', f'--target={cluster.target}', '--tasks=/job:worker/task:0,/job:worker/task:9')
    assert done.returncode == 1 and 'task:9' in done.stderr
    done = weir('place', '--print-rates', f'--target={cluster.target}', '--tasks=/job:worker/task:0')
    assert done.returncode == 1 and 'two tasks' in done.stderr
