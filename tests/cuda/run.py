"""The tests of GPUs, on a machine that has one and neither TensorFlow nor cmocka: `make test-cuda`.

    run.py --build FOLDER [--device cuda] [--only NAME...]

    oracle      recorded cases of TensorFlow for every op with a kernel of GPUs (make_records.py)
    programs    recorded programs: state, control flow, functions, lists, queues
    random      recorded random programs
    gradients   recorded gradients of ops that have a kernel of GPUs, which libweir adds, and gradients of these
    models      losses of training steps as on the CPU, in IEEE float
    ways        all that is tried for a convolution computes the same
    recorded    losses of steps that are repeated as CUDA graphs are those of steps that are not, to the bit
    several     collectives between all GPUs of the machine, by NCCL (one GPU: a group of one)
    towers      a net trained on all GPUs of the machine, each with its part of a batch
    growth      thousands of steps take no more memory than ten
    sanitizer   compute-sanitizer's memcheck, racecheck and synccheck over cases of every op
    mnist       the demo's network reaches 99 %
"""
import argparse
import concurrent.futures
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, '..', 'oracle')
STEPS, TOLERANCE = 5, 1e-4
RECORDED_STEPS = 12  # of which the fourth is recorded
GROWTH_STEPS = 10000


def run(*command, **more):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


class Tests:
    def __init__(self, options):
        self.build, self.device = options.build, options.device
        self.ieee = f'cpu,{self.device}@tf32=0'
        self.weir, self.library = f'{self.build}/cli/weir', f'{self.build}/libweir.so'
        self.probe = f'{self.build}/tests/oracle/libweir_probe.so'

    def replay(self, program, *more):
        """Whether all is as recorded; and the last line. Cases run several times, and must come out the same to the bit."""
        made = run(sys.executable, f'{ORACLE}/{program}.py', '--devices', f'{self.ieee}@deterministic=1', '--jobs', os.cpu_count() // 2, *more)
        lines = made.stdout.strip().split('\n')
        if made.returncode:
            print('\n'.join(line for line in lines if line.startswith(('FAIL', ' ', 'CRASH'))))
        return made.returncode == 0, lines[-1]

    def oracle(self):
        return self.replay('replay', '--replay', f'{HERE}/oracle.xz', '--probe', self.probe)

    def programs(self, name='programs'):
        return self.replay('program_run', '--replay', f'{HERE}/{name}.xz', '--lib', self.library)

    def random(self):
        return self.programs('random')

    def gradients(self):
        return self.programs('gradients')

    # ---- models ----

    def losses(self, graph, *more):
        made = subprocess.run([self.weir, 'bench', graph, f'--trace={STEPS}', '--threads=2', '--json', *more], capture_output=True, text=True)
        if made.returncode:
            return made.stderr.strip()
        return json.loads(made.stdout)['losses']

    def model(self, graph):
        """None, or what is wrong."""
        want, got = self.losses(graph), self.losses(graph, f'--devices={self.ieee}')
        if isinstance(want, str) or isinstance(got, str):
            return got if isinstance(got, str) else want
        apart = max(abs(a - b) / max(1e-3, abs(a)) for a, b in zip(want, got))
        return None if apart < TOLERANCE else f'{got}, not {want}'

    def each_model(self, check):
        """What |check| says of each model, by its name."""
        with tempfile.TemporaryDirectory() as folder:
            with lzma.open(f'{HERE}/models.tar.xz') as f, tarfile.open(fileobj=f) as tar:
                tar.extractall(folder)
            names = sorted(os.listdir(folder))
            with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
                return dict(zip(names, pool.map(check, (os.path.join(folder, name) for name in names))))

    def models(self):
        problems = self.each_model(self.model)
        for name, problem in problems.items():
            if problem:
                print(f'FAIL {name}: {problem}')
        wrong = sum(p is not None for p in problems.values())
        return wrong == 0, f'{len(problems)} models, {wrong} differ by more than {TOLERANCE}'

    # ---- recordings ----

    def recorded_model(self, graph):
        """Losses with and without recordings, and whether there was one."""
        rows = []
        for is_on in '01':
            made = subprocess.run([self.weir, 'bench', graph, f'--trace={RECORDED_STEPS}', '--threads=2', '--json',
                                   f'--devices={self.ieee}@deterministic=1'], capture_output=True, text=True,
                                  env=dict(os.environ, WEIR_CUDA_GRAPHS=is_on, WEIR_LOG_LEVEL='0'))
            rows.append(made.stderr.strip().split('\n')[-1] if made.returncode else json.loads(made.stdout)['losses'])
        return *rows, 'was recorded' in made.stderr

    def recorded(self):
        results = self.each_model(self.recorded_model)
        wrong = {name: (plain, repeated) for name, (plain, repeated, _) in results.items() if plain != repeated or isinstance(plain, str)}
        for name, (plain, repeated) in wrong.items():
            print(f'FAIL {name}: {repeated}, not {plain}')
        count = sum(is_recorded for _, _, is_recorded in results.values())
        return not wrong and count > 0, f'{len(results)} models, {count} recorded, {len(wrong)} differ'

    # ---- convolutions ----

    def ways(self):
        """How far candidates are from each other, relative to the largest element, while a net searches for the fastest."""
        seen, worst = set(), 0
        for graph, options, limit in ('alexnet_b16', (), 4e-3), ('alexnet_b16', ('--amp=bf16',), 4e-2), ('vgg_a_b4', (), 4e-3):
            with tempfile.TemporaryDirectory() as cache:
                made = run(self.weir, 'bench', f'{HERE}/../../bench/graphs/{graph}.pb', '--device=cuda:0', '--steps=40', *options,
                           env=dict(os.environ, WEIR_CUDNN_LOG='2', WEIR_CACHE_DIR=cache))
            for way, difference in re.findall(r': tried: ([a-z ]+?)(?:, engine| *:).*differs by (\S+?)(?:,|\n)', made.stdout):
                seen.add(way)
                if not float(difference) <= limit:
                    print(f'FAIL {way}: {difference}, in {graph} with {options}')
                    worst = float('inf')
                worst = max(worst, float(difference) / limit)
        missing = {'plain', 'fused', 'wide', 'folded', 'folded fused', 'direct', 'direct wide', 'direct folded'} - seen
        return not missing and worst <= 1, f'{", ".join(sorted(seen))}; missing: {", ".join(sorted(missing)) or "none"}; at most {worst:.2f} of what is allowed'

    # ---- several GPUs ----

    def several(self):
        made = run(sys.executable, f'{HERE}/several.py', '--weir', self.weir)
        lines = made.stdout.strip().split('\n')
        if made.returncode:
            print('\n'.join(lines[:-1]))
        return made.returncode == 0, lines[-1]

    def towers(self):
        sys.path.insert(0, HERE)
        from several import count_gpus
        count = max(count_gpus(), 1)
        made = run(f'{self.build}/examples/replicas', f'--devices=cuda:{count}', '--steps=300', cwd=os.path.join(HERE, '..', '..'))
        found = re.findall(r'(\d+\.\d+) ?%', made.stdout)
        return made.returncode == 0 and bool(found) and float(found[-1]) >= 94, f'{count} GPUs: ' + made.stdout.strip().split('\n')[-1]

    # ---- memory ----

    def peak(self, graph, steps):
        """Steps, and bytes at most in use, of host and GPU."""
        made = run(self.weir, 'bench', graph, f'--devices=cpu,{self.device}', f'--steps={steps}', '--seconds=600', '--json')
        result = json.loads(made.stdout)
        return result['steps'], result['peak_bytes'] + result['device_peak_bytes']

    def growth(self):
        graph = f'{HERE}/../../bench/graphs/mlp_b128.pb'
        few, many = self.peak(graph, 10), self.peak(graph, GROWTH_STEPS)
        text = f'{few[0]} steps: {few[1]} bytes; {many[0]} steps: {many[1]}'
        return many[0] == GROWTH_STEPS and many[1] <= few[1] * 1.01, text

    # ---- compute-sanitizer ----

    def sanitizer(self):
        if not shutil.which('compute-sanitizer'):
            return False, 'there is no compute-sanitizer'
        rows = []
        for tool in ('memcheck', 'racecheck', 'synccheck'):
            made = run('compute-sanitizer', '--tool', tool, '--print-limit', '20', sys.executable, f'{HERE}/cases.py', '--probe', self.probe,
                       '--devices', self.ieee, '--records', f'{HERE}/oracle.xz', '--each', 2 if tool == 'memcheck' else 1)
            found = re.findall(r'(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)', made.stdout)
            count = sum(int(a or b) for a, b in found)
            if count or not found:
                print('\n'.join(made.stdout.split('\n')[:80]))
            rows.append((tool, count if found else 'no summary'))
        return all(count == 0 for _, count in rows), ', '.join(f'{tool} {count}' for tool, count in rows)

    # ---- the demo ----

    def mnist(self):
        with tempfile.TemporaryDirectory() as folder:
            made = run(f'{self.build}/examples/mnist', '--device=cuda:0', f'{folder}/run', cwd=os.path.join(HERE, '..', '..'))
        found = re.findall(r'(\d\d\.\d+) ?%', made.stdout)
        return made.returncode == 0 and bool(found) and float(found[-1]) >= 99, made.stdout.strip().split('\n')[-1]


NAMES = ('oracle', 'programs', 'random', 'gradients', 'models', 'ways', 'recorded', 'several', 'towers', 'growth', 'mnist', 'sanitizer')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--build', default=os.path.join(HERE, '..', '..', 'build', 'cuda'))
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--only', nargs='+', choices=NAMES, default=NAMES)
    tests = Tests(parser.parse_args())
    failed = 0
    for name in parser.parse_args().only:
        start = time.monotonic()
        is_good, text = getattr(tests, name)()
        failed += not is_good
        print(f'{"ok" if is_good else "FAILED":6} {name:10} {time.monotonic() - start:6.1f} s  {text}', flush=True)
    print(f'{len(parser.parse_args().only) - failed} passed, {failed} failed')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
