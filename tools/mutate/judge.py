"""Judges faults: a tree of its own, an incremental build, and the tests that should notice, the cheap ones first."""
import functools
import glob
import hashlib
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Whose unit tests should notice a fault in a folder of src/, beside its own.
NEIGHBOURS = {
    'api': ['library', 'session'], 'base': ['tensor', 'op', 'exec'], 'cluster': ['rpc', 'library'], 'device': ['exec', 'runtime', 'session'],
    'exec': ['runtime', 'session', 'control'], 'file': ['library'], 'graph': ['pass', 'session', 'api'], 'image': [], 'kernel': [],
    'library': [], 'op': ['queue', 'exec', 'runtime', 'session', 'graph'], 'pass': ['runtime', 'session', 'exec'], 'rpc': ['cluster'],
    'runtime': ['session', 'exec', 'control'], 'session': ['runtime', 'exec', 'api'], 'tensor': ['op', 'session'],
    'wire': ['tensor', 'graph', 'file'],
}
LIMIT = 400  # seconds for a check that has not passed yet
BAD = 40  # cases with bad inputs of an op
PROGRAMS = 12  # at most, that are run with TensorFlow again because a fault is in one of their ops
TIMES = 0.3  # how many of each program's cases are recorded; of all programs a third of these are run
# And which of the tests that drive it from outside.
OUTSIDE = {'cluster': ['cluster/steps_test.py', 'cluster/errors_test.py', 'cluster/raw_calls_test.py', 'cluster/sessions_test.py',
                       'cluster/between_tasks_test.py'],
           'file': ['files_test.py', 'v1_checkpoint_test.py'], 'api': ['compat_test.py']}
OUTSIDE['rpc'] = OUTSIDE['cluster'] + ['cluster/connections_test.py']
# And which, before those, of a file by a word of its name.
ABOUT = {'collective': 'cluster/collectives_test.py', 'same_host': 'cluster/same_host_test.py', 'ucx': 'cluster/ucx_test.py',
         'rates': 'cluster/place_cost_test.py', 'devices': 'cluster/devices_test.py', 'client': 'cluster/token_test.py',
         'limits': 'cluster/limits_test.py', 'batch': 'cluster/batching_test.py', 'place': 'cluster/place_test.py'}


class Check:
    """A command that fails where a fault is noticed, and what must be built for it."""

    def __init__(self, name, build, targets, command):
        self.name, self.build, self.targets, self.command = name, build, targets, command

    def key(self, tree):
        """The same in all trees."""
        return self.name, ' '.join(self.command).replace(tree.folder, '')


class Tree:
    """A copy of the working tree, in which faults are made; the working tree itself is only read."""

    def __init__(self, folder, log):
        self.folder, self.log = folder, log
        self.learning = 0.0  # seconds spent on checks without a fault
        self.env = dict(os.environ, WEIR_BUILD=self.build('fast'), CCACHE_BASEDIR=folder, CMAKE_GENERATOR='Ninja',
                        ASAN_OPTIONS='abort_on_error=0', WEIR_LOG='', CCACHE_NOHASHDIR='1')
        if shutil.which('ccache'):
            self.env['CMAKE_C_COMPILER_LAUNCHER'] = 'ccache'

    def build(self, name):
        return os.path.join(self.folder, 'build', name)

    def update(self):
        """Makes the copy equal to the working tree; what is equal keeps its time, for the sake of the build."""
        names = subprocess.check_output(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, text=True).split('\n')
        for name in filter(None, names):
            source, copy = os.path.join(ROOT, name), os.path.join(self.folder, name)
            if not os.path.isfile(source):
                continue
            data = open(source, 'rb').read()
            if not os.path.exists(copy) or open(copy, 'rb').read() != data:
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(source, copy)
        for copy in glob.glob(self.folder + '/src/**/*.[ch]', recursive=True):
            if os.path.relpath(copy, self.folder) not in names:
                os.remove(copy)

    def run(self, command, limit):
        """The exit status; None when it took longer than |limit| seconds. The output goes to the log."""
        with open(self.log, 'w') as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=log, stderr=log, start_new_session=True,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # tests raise it
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                return None

    def configure(self):
        common = ['cmake', '-S', '.', '-DCMAKE_BUILD_TYPE=RelWithDebInfo', '-DWEIR_PERTURB=ON']
        if shutil.which('mold'):  # a fault is linked several times
            common += [f'-DCMAKE_{kind}_LINKER_FLAGS=-fuse-ld=mold' for kind in ('EXE', 'SHARED')]
        flags = {'fast': ['-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -Werror=incompatible-pointer-types -Werror=int-conversion'],
                 'asan': ['-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 -g1', '-DWEIR_SANITIZE=address,undefined']}
        for name, more in flags.items():
            if not os.path.exists(self.build(name) + '/build.ninja'):
                self.must(common + ['-B', self.build(name)] + more)

    def tail(self, size):
        """The end of what the last command wrote."""
        with open(self.log, errors='replace') as log:
            return log.read()[-size:]

    def must(self, command, limit=3600):
        if self.run(command, limit) != 0:
            sys.exit(f'{" ".join(command)}\n{self.tail(3000)}')

    def ninja(self, build, targets, limit=3600):
        return self.run(['ninja', '-C', self.build(build), *targets], limit)

    def object_of(self, path):
        return f'CMakeFiles/{"weir_library" if path.startswith("src/library/") else "weir_core"}.dir/{path}.o'

    def object_hash(self, path):
        with open(os.path.join(self.build('fast'), self.object_of(path)), 'rb') as f:
            return hashlib.sha1(f.read()).hexdigest()

    def write(self, path, text):
        with open(os.path.join(self.folder, path), 'w') as f:
            f.write(text)


# ---- which checks ----

def unit_tests(tree, folder):
    """Names of the unit tests in one folder of src/ or src/ops/ and those below it."""
    sources = [source for place in (f'src/{folder}', f'src/ops/{folder}')
               for source in glob.glob(f'{tree.folder}/{place}/**/*_test.c', recursive=True)]
    return sorted(f'{folder}_{os.path.basename(source)[:-2]}' for source in sources)


def unit_check(tree, name, tests, build='fast'):
    program = 'library_tests' if tests[0].startswith('library_') else 'core_tests'
    return Check(name, build, [program], [f'{tree.build(build)}/tests/{program}', *tests])


def unit_checks(tree, folders, own):
    """The test of the file itself, then those of each folder."""
    checks = []
    for folder in folders:
        tests = unit_tests(tree, folder)
        if own in tests:
            checks.append(unit_check(tree, own, [own]))
            tests.remove(own)
        if tests:
            checks.append(unit_check(tree, f'tests of {folder}', tests))
    return checks


def ops_of(path):
    """Names of the ops that a file of src/ops/ defines: in its table, as the argument of a macro that writes a row, or in the
    rows that it includes."""
    text = open(os.path.join(ROOT, path)).read()
    known = re.findall(r'^\| \\?(\w+) \|', open(f'{ROOT}/docs/compat.md').read(), re.M)
    names = set(re.findall(r'(?:\.name = [^\n]*?|\b[A-Z][A-Z0-9_]*\()"(\w+)"', text))
    for rows in set(re.findall(r'#include "(\S+_ops\.inc)"', text)):
        names |= set(re.findall(r'^[A-Z]+\((\w+),', open(f'{ROOT}/src/{rows}').read(), re.M))
    return sorted(set(known) & names)


@functools.lru_cache(None)
def headers_of(path):
    """What a file of src/ includes, at whatever distance."""
    file = f'{ROOT}/src/{path}'
    direct = re.findall(r'#include "([^"]+)"', open(file).read()) if os.path.exists(file) else []
    return frozenset(direct).union(*map(headers_of, direct))


def ops_with(path):
    """Some of the ops whose files include the header of |path|; if none does, any header of its folder; or of all."""
    users = [os.path.relpath(f, f'{ROOT}/src') for f in sorted(glob.glob(f'{ROOT}/src/ops/*/*.c'))]
    folder = os.path.dirname(path)[4:] + '/'
    for is_wanted in (lambda h: h == path[4:-2] + '.h', lambda h: h.startswith(folder), lambda h: True):
        found = [f for f in users if any(map(is_wanted, headers_of(f)))]
        if found:
            break
    ops = sorted({op for f in found for own in [ops_of('src/' + f)] for op in own[::1 + len(own) // 20]})
    return ops[::1 + len(ops) // 400]


def ops_tried(path):
    """Those whose cases should notice a fault in |path|."""
    if path.startswith(('src/cluster/', 'src/rpc/')):
        return []
    return path.startswith('src/ops/') and ops_of(path) or ops_with(path)


def checks_for(tree, path, records):
    """In the order in which they run: the cheap ones first, those that start TensorFlow or servers last."""
    parts = path.split('/')
    folder, stem = parts[1], os.path.basename(path)[:-2]
    folders = [parts[2]] if folder == 'ops' else [folder] + NEIGHBOURS[folder]
    checks = unit_checks(tree, folders, f'{folders[0]}_{stem}_test')
    python, fast, oracle = records.python, tree.build('fast'), tree.folder + '/tests/oracle/'
    library, probe = fast + '/libweir.so', fast + '/tests/oracle/libweir_probe.so'
    record = records.oracle(ops_tried(path))
    if record:
        checks.append(Check('oracle', 'fast', ['weir_probe'], [python, oracle + 'oracle.py', '--strict', '--replay', record, '--probe', probe]))
    bad = records.bad_inputs(ops_tried(path)) if folder in ('ops', 'kernel') else None
    if bad:
        checks.append(Check('bad inputs', 'fast', ['weir_probe'], [python, oracle + 'oracle.py', '--replay', bad, '--probe', probe]))
    if record and folder in ('device', 'exec', 'op', 'runtime', 'tensor'):
        checks.append(Check('oracle on a guard', 'fast', ['weir_probe'], checks[-1].command + ['--devices', 'cpu,guard']))
    ops = ops_of(path) if folder == 'ops' else []
    programs = Check('programs', 'fast', ['weir', 'weir_probe'],
                     [python, oracle + 'programs.py', '--replay', records.programs(ops), '--lib', library, '--probe', probe])
    if ops and records.programs(ops):
        checks.append(programs)
    if path.startswith('src/ops/data/'):
        checks.append(Check('random pipelines', 'fast', ['weir'], [python, oracle + 'random_pipelines.py', '--lib', library, '--seed', '1000',
                                                                   '--count', '150', '--jobs', '1']))
    tests = [test for each in folders for test in unit_tests(tree, each) if not test.startswith('library_') or each == folder]
    if tests:  # what memory shows
        checks.append(unit_check(tree, 'asan', tests, 'asan'))
    if ops and '_shape(' in open(os.path.join(tree.folder, path)).read():
        checks.append(Check('shapes', 'fast', ['weir'], [python, '-m', 'pytest', '-q', '-x', 'tests/shapes_test.py']))
    if ops and re.search(r'"[^"\n]*: resource', open(os.path.join(tree.folder, path)).read()):
        checks.append(Check('handles_test.py', 'fast', ['weir', 'weir_probe'], [python, '-m', 'pytest', '-q', '-x', 'tests/handles_test.py']))
    if ops and re.search('build_grad|weir_grad_ctx_t', open(os.path.join(tree.folder, path)).read()):  # a macro may write the row
        checks.append(Check('gradients', 'fast', ['weir'], [python, oracle + 'gradients.py', '--lib', library, *ops]))
        if parts[2] in ('control', 'list', 'state'):
            checks.append(Check('gradients_test.py', 'fast', ['weir'], [python, '-m', 'pytest', '-q', '-x', 'tests/gradients_test.py']))
    if folder in ('device', 'exec', 'op', 'pass', 'runtime', 'session') or \
            any(f'"{op}"' in open(f'{ROOT}/tests/out_of_memory_test.c').read() for op in ops):
        checks.append(unit_check(tree, 'tests_out_of_memory_test', ['tests_out_of_memory_test']))
    if not ops and folder not in ('cluster', 'rpc', 'image', 'library'):
        checks.append(programs)
    if folder in ('device', 'exec', 'session', 'pass', 'graph', 'op', 'runtime'):
        checks.append(Check('random programs', 'fast', ['weir'],
                            [python, oracle + 'random_programs.py', '--lib', library, '--count', '20', '--shrink', '0']))
    if folder in ('pass', 'runtime'):
        checks.append(Check('random programs on devices', 'fast', ['weir'],
                            [python, oracle + 'random_programs.py', '--lib', library, '--count', '100', '--shrink', '0', '--devices', 'cpu:2']))
        checks.append(Check('cli_test.py', 'fast', ['weir', 'weir_cli'], [python, '-m', 'pytest', '-q', '-x', '-k', 'plac', 'tests/cli_test.py']))
    names = records.program_names(ops) if ops else []
    if 0 < len(names) <= PROGRAMS:  # all their cases, of which the record has some
        checks.append(Check('programs in full', 'fast', ['weir'], [python, oracle + 'programs.py', '--lib', library, '--jobs', '1', *names]))
    if stem == 'gate' and 'library_snapshot_test' in unit_tests(tree, 'library'):
        checks.append(unit_check(tree, 'library_snapshot_test', ['library_snapshot_test']))
    about = [test for word, test in ABOUT.items() if word in stem and folder in ('cluster', 'rpc')]
    if folder == 'pass' and stem.startswith('partition'):
        about = ['cluster/mixed_test.py']  # what tasks of TensorFlow make of a part
    for test in about + OUTSIDE.get(folder, []):
        programs_of_it = ['program_loops'] if 'mixed' in test else []
        checks.append(Check(test, 'fast', ['weir', 'weir_probe', 'weir_cli', *programs_of_it],
                            [python, '-m', 'pytest', '-q', '-x', f'tests/{test}']))
    return checks


class Records:
    """What TensorFlow makes of cases and programs, recorded once for all faults, so that a judgement needs no TensorFlow. Each file gets
    the part of it that should notice."""

    def __init__(self, folder, python):
        self.folder, self.python = folder, python
        self.cases = self.bad = self.steps = None  # where the records are

    def prepare(self, tree, paths):
        """Records the ops of |paths|, and the programs, with the library of |tree|."""
        tree.must(['ninja', '-C', tree.build('fast'), 'weir', 'weir_probe'])
        ops = sorted({op for path in paths for op in ops_tried(path)} & self.ops_with_cases())
        if ops:
            probe = ['--probe', tree.build('fast') + '/tests/oracle/libweir_probe.so']
            self.cases = self.make(tree, 'oracle', [*probe, *ops])
            self.bad = self.make(tree, 'bad_inputs', [*probe, '--count', str(BAD), *ops], may_be_none=True)
        self.steps = self.make(tree, 'programs', ['--lib', tree.build('fast') + '/libweir.so', '--times', str(TIMES)])

    def ops_with_cases(self):
        return set(subprocess.check_output([self.python, f'{ROOT}/tests/oracle/oracle.py', '--list'], text=True).split())

    def make(self, tree, program, more, may_be_none=False):
        cases = [open(source, 'rb').read() for source in sorted(glob.glob(f'{ROOT}/tests/oracle/*.py'))]
        path = self.path(program, cases, more)
        if not os.path.exists(path):
            command = [self.python, f'{ROOT}/tests/oracle/{program}.py', '--record', path + '.new', *more]
            tree.run(command, 3600)  # a case that fails is recorded as well, and its check then fails without a fault
            is_empty = not os.path.exists(path + '.new') or not read_record(path + '.new')[0]['cases']
            if is_empty and may_be_none:
                return None
            if is_empty:
                sys.exit(f'nothing was recorded: {" ".join(command)}\n{tree.tail(3000)}')
            os.rename(path + '.new', path)
        return path

    def path(self, *what):
        return os.path.join(self.folder, f'{what[0]}_{hashlib.sha1(repr(what).encode()).hexdigest()[:12]}.xz')

    def oracle(self, ops):
        """A record of the cases of |ops|; None if they have none."""
        return self.cases and self.part(self.cases, ops, lambda case, blobs: case['op'] in ops)

    def bad_inputs(self, ops):
        """A record of the cases with a fault of |ops|; None if they have none."""
        return self.bad and self.part(self.bad, ops, lambda case, blobs: case['op'] in ops)

    def programs(self, ops):
        """A record of the programs in whose graphs any of |ops| is, or, without, of some of all; None if there are none."""
        if not ops:
            return self.part(self.steps, [], lambda case, blobs: int(case['name'].split('[')[1][:-1]) % round(TIMES / 0.1) == 0)
        return self.part(self.steps, ops, lambda case, blobs: has_node(blobs[case['graph']], ops))

    def program_names(self, ops):
        """Of the programs in whose graphs any of |ops| is."""
        head, blobs = read_record(self.steps)
        return sorted({case['name'].split('[')[0] for case in head['cases'] if has_node(blobs[case['graph']], ops)})

    def part(self, record, ops, is_wanted):
        path = self.path('part', record, ops)
        if not os.path.exists(path):
            head, blobs = read_record(record)
            head['cases'] = [case for case in head['cases'] if is_wanted(case, blobs)]
            write_record(f'{path}.{os.getpid()}', head, blobs)
            os.rename(f'{path}.{os.getpid()}', path)
        return path if os.path.getsize(path) > 0 else None


def has_node(graph, ops):
    return any(b'\x12' + bytes([len(op)]) + op.encode() in graph for op in ops)  # NodeDef.op


def read_record(path):
    """(head, blobs), as tests/oracle/record.py writes them."""
    with lzma.open(path) as f:
        head = json.loads(f.readline())
        return head, [f.read(size) for size in head['blobs']]


def write_record(path, head, blobs):
    """An empty file if there are no cases. Blobs keep their numbers; those that no case names are left empty."""
    with open(path, 'wb') as out:
        if not head['cases']:
            return
        named = numbers_in(head['cases'])
        blobs = [data if number in named else b'' for number, data in enumerate(blobs)]
        head['blobs'] = [len(data) for data in blobs]
        with lzma.open(out, 'wb', preset=0) as f:
            f.write(json.dumps(head).encode() + b'\n' + b''.join(blobs))


def numbers_in(value):
    """All integers in a case: the numbers of its blobs among them."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return set().union(*map(numbers_in, value))
    return {value} if isinstance(value, int) else set()


# ---- one fault ----

def passes_without(tree, fault, text, check):
    """Whether |check| passes without the fault: else it says nothing. The seconds it took, or None."""
    start = time.monotonic()
    tree.write(fault.path, text)
    if tree.ninja(check.build, check.targets) != 0:
        sys.exit(f'does not build without a fault:\n{tree.tail(3000)}')
    built = time.monotonic()
    status = tree.run(check.command, LIMIT)
    if status != 0:
        print(f'left out, as it fails without a fault: {" ".join(check.command)}\n{tree.tail(1500)}', flush=True)
    tree.learning += time.monotonic() - start
    return time.monotonic() - built if status == 0 else None


def judge(tree, fault, text, checks, limits):
    """(outcome, names of the checks that were run, end of the output of the last): the outcome is 'caught by X', 'hangs in X',
    'survived', 'same code' or 'does not build'. |limits| is shared by all trees: of a check that has passed, the seconds after which
    a fault hangs, far more than it takes; None of one that fails without a fault."""
    tree.ninja('fast', [tree.object_of(fault.path)])
    before = tree.object_hash(fault.path)
    ran = []
    try:
        tree.write(fault.path, fault.apply(text))
        if tree.ninja('fast', [tree.object_of(fault.path)]) != 0:
            return 'does not build', ran, ''
        if tree.object_hash(fault.path) == before:
            return 'same code', ran, ''
        for check in checks:
            key = check.key(tree)
            if limits.get(key, 0) is None:
                continue
            ran.append(check.name)
            if tree.ninja(check.build, check.targets) != 0:
                return 'caught by the build', ran, tree.tail(600)  # programs of the build run the library, too
            start = time.monotonic()
            status, shown = tree.run(check.command, limits.get(key, LIMIT)), tree.tail(600)
            seconds = time.monotonic() - start
            if status != 0 and key not in limits:
                seconds = passes_without(tree, fault, text, check)
                tree.write(fault.path, fault.apply(text))
            if key not in limits:
                limits[key] = seconds and 30 + 5 * seconds
            if limits[key] is None:
                ran.pop()
            elif status != 0:
                return f'{"hangs in" if status is None else "caught by"} {check.name}', ran, shown
        return 'survived', ran, ''
    finally:
        tree.write(fault.path, text)
