"""The oracle itself: what is recorded with TensorFlow is replayed without it, and a wrong value is found."""
import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

pytest.importorskip('tensorflow')
ORACLE = ROOT / 'tests' / 'oracle'
sys.path.insert(0, str(ORACLE))
import record
import values

# Runs a script where importing tensorflow fails.
WITHOUT = 'import runpy, sys; sys.modules["tensorflow"] = None; sys.argv = sys.argv[1:]; ' \
          'sys.path.insert(0, sys.argv[0].rsplit("/", 1)[0]); runpy.run_path(sys.argv[0], run_name="__main__")'


def run(*arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=ROOT)


def spoil(path):
    """Changes one expected value; the name of its case."""
    reader = record.Reader(path, record_kind(path))
    writer = record.Writer(record_kind(path), reader.seed)
    writer.blobs = list(reader.blobs)
    name = None
    for case in reader.cases:
        numbers = case['whole']['outputs'] if 'whole' in case else [n for s in case['steps'] for n in s['values']]
        for i, number in enumerate(numbers):
            array = reader.array(number)
            if name is None and array is not None and array.dtype.kind == 'f' and array.size:
                array.reshape(-1)[0] += 1
                writer.blobs.append(values.write_tensor(array))
                replace(case, i, len(writer.blobs) - 1)
                name = case.get('op') or case['name'].split('[')[0]
        writer.add(case)
    writer.save(path)
    return name


def replace(case, index, number):
    if 'whole' in case:
        case['whole']['outputs'][index] = number
        return
    for step in case['steps']:
        if index < len(step['values']):
            step['values'][index] = number
            return
        index -= len(step['values'])


def record_kind(path):
    return 'programs' if 'programs' in os.path.basename(path) else 'oracle'


@pytest.mark.parametrize('script, library, names', [
    ('oracle.py', ['--probe', BUILD / 'tests' / 'oracle' / 'libweir_probe.so'], ['Softmax', 'Roll', 'AssignAdd', 'StringJoin']),
    ('programs.py', ['--lib', BUILD / 'libweir.so'], ['fifo', 'resource_variable', 'text_lines', 'random_sequences'])])
def test_replay_without_tensorflow(script, library, names, tmp_path):
    path = str(tmp_path / f'{script}.xz')
    done = run(ORACLE / script, *library, '--record', path, *names)
    assert done.returncode == 0 and ' 0 failures' in done.stdout, done.stdout + done.stderr
    cases = record.Reader(path, record_kind(path)).cases
    assert len(cases) >= 100
    done = run('-c', WITHOUT, ORACLE / script, *library, '--replay', path)
    assert done.returncode == 0 and f'{len(cases)} cases, 0 failures' in done.stdout, done.stdout + done.stderr
    spoiled = spoil(path)
    done = run('-c', WITHOUT, ORACLE / script, *library, '--replay', path)
    assert done.returncode == 1 and ', 1 failures' in done.stdout and spoiled in done.stdout, done.stdout + done.stderr


def test_a_seed_repeats_its_cases():
    probe = BUILD / 'tests' / 'oracle' / 'libweir_probe.so'
    tables = [run(ORACLE / 'oracle.py', '--probe', probe, '--seed', 5, 'TopKV2').stdout for _ in range(2)]
    assert tables[0] == tables[1] and 'seed 5' in tables[0] and ' 0 failures' in tables[0]


def test_the_core_table_wants_every_op(tmp_path):
    counts = tmp_path / 'oracle.json'
    counts.write_text('{"Abs": [40, 0]}')
    done = run(ORACLE / 'oracle.py', '--core', counts)
    assert done.returncode == 1 and 'no case: Acos' in done.stdout and 'no case: Abs' not in done.stdout
