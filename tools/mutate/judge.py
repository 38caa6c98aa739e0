"""Judges faults: a tree of its own, an incremental build, and the tests that should notice, the cheap ones first."""
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
    'api': ['library', 'session'], 'base': ['tensor', 'op', 'exec'], 'cluster': ['rpc'], 'exec': ['session', 'control'], 'file': ['library'],
    'graph': ['pass', 'session', 'api'], 'image': [], 'kernel': [], 'library': [], 'op': ['queue', 'exec', 'session'],
    'pass': ['session', 'exec'], 'rpc': ['cluster'], 'session': ['exec', 'api'], 'tensor': ['op', 'session'], 'wire': ['tensor', 'graph', 'file'],
}
# And which of the tests that drive it from outside.
OUTSIDE = {'cluster': ['cluster/steps_test.py', 'cluster/errors_test.py', 'cluster/sessions_test.py', 'cluster/between_tasks_test.py'],
           'file': ['files_test.py', 'v1_checkpoint_test.py'], 'api': ['compat_test.py']}
OUTSIDE['rpc'] = OUTSIDE['cluster'] + ['cluster/connections_test.py']


class Check:
    """A command that fails where a fault is noticed, and what must be built for it."""

    def __init__(self, name, build, targets, command):
        self.name, self.build, self.targets, self.command = name, build, targets, command
        self.key = tuple(command)


class Tree:
    """A copy of the working tree, in which faults are made; the working tree itself is only read."""

    def __init__(self, folder, log):
        self.folder, self.log = folder, log
        self.learning = 0.0  # seconds spent on checks without a fault
        self.env = dict(os.environ, WEIR_BUILD=self.build('fast'), CCACHE_BASEDIR=folder, CMAKE_GENERATOR='Ninja',
                        ASAN_OPTIONS='abort_on_error=0', WEIR_LOG='')
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
        common = ['cmake', '-S', '.', '-DCMAKE_BUILD_TYPE=RelWithDebInfo']
        flags = {'fast': ['-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -Werror=incompatible-pointer-types -Werror=int-conversion'],
                 'asan': ['-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 -g1', '-DWEIR_SANITIZE=address,undefined']}
        for name, more in flags.items():
            if not os.path.exists(self.build(name) + '/build.ninja'):
                self.must(common + ['-B', self.build(name)] + more)

    def must(self, command, limit=3600):
        if self.run(command, limit) != 0:
            sys.exit(f'{" ".join(command)}\n{open(self.log).read()[-3000:]}')

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


def unit_check(tree, name, tests):
    programs = ' && '.join(f'{tree.build("fast")}/tests/{test}' for test in tests)
    return Check(name, 'fast', tests, ['sh', '-c', programs])


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
    """Names of the ops that a file of src/ops/ defines: in its table, or as the argument of a macro that writes a row."""
    text = open(os.path.join(ROOT, path)).read()
    known = re.findall(r'^\| \\?(\w+) \|', open(f'{ROOT}/docs/compat.md').read(), re.M)
    return sorted(set(known) & set(re.findall(r'(?:\.name = [^\n]*?|\b[A-Z][A-Z0-9_]*\()"(\w+)"', text)))


def ops_with(path):
    """Some of the ops whose files include the header of |path|."""
    header = re.sub(r'^src/(.*)\.c$', r'#include "\1.h"', path)
    users = [f for f in sorted(glob.glob(f'{ROOT}/src/ops/*/*.c')) if header in open(f).read()]
    ops = sorted({op for f in users for own in [ops_of(f)] for op in own[::1 + len(own) // 5]})
    return ops[::1 + len(ops) // 40]


def checks_for(tree, path, python, records):
    """In the order in which they run."""
    parts = path.split('/')
    folder, stem = parts[1], os.path.basename(path)[:-2]
    folders = [parts[2]] if folder == 'ops' else [folder] + NEIGHBOURS[folder]
    checks = unit_checks(tree, folders, f'{folders[0]}_{stem}_test')
    if folder in ('exec', 'op', 'pass', 'session'):
        checks.append(unit_check(tree, 'tests_out_of_memory_test', ['tests_out_of_memory_test']))
    fast = tree.build('fast')
    oracle = tree.folder + '/tests/oracle/'
    library, probe = fast + '/libweir.so', fast + '/tests/oracle/libweir_probe.so'
    ops = ops_of(path) if folder == 'ops' else []
    tried = ops or ops_with(path)
    if tried:
        checks.append(Check('oracle', 'fast', ['weir_probe'],
                            [python, oracle + 'oracle.py', '--strict', '--replay', records.oracle(tried), '--probe', probe, *tried]))
    if ops and re.search('build_grad|weir_grad_ctx_t', open(os.path.join(tree.folder, path)).read()):  # a macro may write the row
        checks.append(Check('gradients', 'fast', ['weir'], [python, oracle + 'gradients.py', '--lib', library, *ops]))
    if folder not in ('cluster', 'rpc', 'image', 'kernel', 'library'):
        names = records.programs_with(ops) if ops else []
        if names or not ops:
            checks.append(Check('programs', 'fast', ['weir'],
                                [python, oracle + 'programs.py', '--replay', records.programs(), '--lib', library, *names]))
    random_programs = oracle + 'random_programs.py'
    if folder in ('exec', 'session', 'pass', 'graph', 'op') and os.path.exists(random_programs):
        checks.append(Check('random programs', 'fast', ['weir'], [python, random_programs, '--lib', library, '--count', '20', '--shrink', '0']))
    if ops and '_shape(' in open(os.path.join(tree.folder, path)).read():
        checks.append(Check('shapes', 'fast', ['weir'], [python, '-m', 'pytest', '-q', '-x', 'tests/shapes_test.py']))
    for test in OUTSIDE.get(folder, []):
        checks.append(Check(test, 'fast', ['weir', 'weir_probe', 'weir_cli'], [python, '-m', 'pytest', '-q', '-x', f'tests/{test}']))
    # What memory shows, last: it takes long to link.
    program = 'library_tests' if folder == 'library' else 'core_tests'
    tests = unit_tests(tree, folders[0])
    if tests:
        checks.append(Check('asan', 'asan', [program], [f'{tree.build("asan")}/tests/{program}', *tests]))
    return checks


class Records:
    """What TensorFlow makes of cases and programs, recorded once, so that a judgement needs no TensorFlow."""

    def __init__(self, folder, python):
        self.folder, self.python = folder, python
        self.graphs = None

    def oracle(self, ops):
        return self.make('oracle', 'cases_*.py', '--probe', 'tests/oracle/libweir_probe.so', ops)

    def programs(self):
        return self.make('programs', 'programs_*.py', '--lib', 'libweir.so', ['--times', '0.1'])

    def make(self, program, sources, option, library, more):
        cases = [open(source, 'rb').read() for source in sorted(glob.glob(f'{ROOT}/tests/oracle/{sources}'))]
        path = os.path.join(self.folder, f'{program}_{hashlib.sha1(repr((cases, more)).encode()).hexdigest()[:12]}.xz')
        if not os.path.exists(path):
            new = f'{path}.{os.getpid()}'
            command = [self.python, f'{ROOT}/tests/oracle/{program}.py', option, f'{ROOT}/build/dev/{library}', '--record', new, *more]
            subprocess.run(command, stdout=subprocess.DEVNULL)  # a case that fails is recorded as well
            os.rename(new, path)
        return path

    def programs_with(self, ops):
        """Names of the programs in whose graphs any of |ops| is."""
        if self.graphs is None:
            with lzma.open(self.programs()) as f:  # as tests/oracle/record.py writes it
                head = json.loads(f.readline())
                blobs = [f.read(size) for size in head['blobs']]
            self.graphs = [(case['name'].split('[')[0], blobs[case['graph']]) for case in head['cases']]
        return sorted({name for name, graph in self.graphs if any(op.encode() in graph for op in ops)})


# ---- one fault ----

def learn_limit(tree, check):
    """Seconds after which a fault hangs: far more than the check takes without. None when it fails without: it says nothing."""
    start = time.monotonic()
    if tree.ninja(check.build, check.targets) != 0:
        sys.exit(f'does not build without a fault:\n{open(tree.log).read()[-3000:]}')
    built = time.monotonic()
    status = tree.run(check.command, 600)
    if status != 0:
        print(f'left out, as it fails without a fault: {" ".join(check.command)}\n{open(tree.log).read()[-1500:]}', flush=True)
    tree.learning += time.monotonic() - start
    return 20 + 5 * (time.monotonic() - built) if status == 0 else None


def judge(tree, fault, text, checks, limits):
    """'caught by X', 'hangs in X', 'survived', 'same code' or 'does not build'. |limits| of checks are learnt as they are needed."""
    tree.ninja('fast', [tree.object_of(fault.path)])
    before = tree.object_hash(fault.path)
    try:
        tree.write(fault.path, fault.apply(text))
        if tree.ninja('fast', [tree.object_of(fault.path)]) != 0:
            return 'does not build'
        if tree.object_hash(fault.path) == before:
            return 'same code'
        for check in checks:
            if check.key not in limits:
                tree.write(fault.path, text)
                limits[check.key] = learn_limit(tree, check)
                tree.write(fault.path, fault.apply(text))
            if limits[check.key] is None:
                continue
            if tree.ninja(check.build, check.targets) != 0:
                return 'caught by the build'  # programs of the build run the library, too
            status = tree.run(check.command, limits[check.key])
            if status != 0:
                return f'{"hangs in" if status is None else "caught by"} {check.name}'
        return 'survived'
    finally:
        tree.write(fault.path, text)
