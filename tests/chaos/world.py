"""Servers and training programs as processes, and what the programs say: `at 12` after a step, `lost a server, …` when they wait."""
import collections
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import disk
from network import Network
from ports import free_ports

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'dev'))
PROGRAM = BUILD / 'tests' / 'programs' / 'chaos'
WRONG_CLOCK = BUILD / 'tests' / 'programs' / 'wrong_clock.so'
PATIENCE = float(os.environ.get('WEIR_CHAOS_PATIENCE', 100))  # seconds; whoever needs longer hangs

UNSAVED = 'asked to end, but the state was not saved'
Line = collections.namedtuple('Line', 'time worker text')


class Failure(Exception):
    """What must hold does not."""


class World:
    def __init__(self, directory, ps, workers, steps, is_sync, is_leased=False, is_relayed=False, clocks=None, etcd=None,
                 members=None):
        self.directory, self.ps, self.workers, self.steps, self.is_sync = directory, ps, workers, steps, is_sync
        self.is_leased = is_leased or etcd is not None  # whoever has the lease is the chief, else worker 0
        self.etcd = etcd  # what keeps the lease, and for how many seconds; None: the global step's parameter server
        self.is_relayed = is_relayed  # what servers are told goes through a network that can fail
        self.clocks = clocks  # a directory of files that say how wrong the clock of each machine is; None: all are right
        self.damaged = {}  # checkpoints, and which version of them
        self.members = members  # an etcd that knows where parameter servers are, which nobody else does; None: all know it
        tasks = [('ps', i) for i in range(ps)] + [('worker', i) for i in range(workers)]
        self.network, self.ports = None, dict(zip(tasks, zip(free_ports(len(tasks)), free_ports(len(tasks)))))
        addresses = [f'127.0.0.1:{outer}' for outer, _ in self.ports.values()]
        self.targets = [f'grpc://{address}' for address in addresses[ps:]]
        of_ps = ['-'] * ps if members else addresses[:ps]
        self.spec = f'ps|{";".join(of_ps)},worker|{";".join(addresses[ps:])}'
        self.servers, self.programs, self.readers = {}, {}, {}
        self.lines, self.mu = [], threading.Lock()  # of all programs, in the order in which they came

    def __enter__(self):
        if self.is_relayed:
            self.network = Network(self.ports)
        for job, i in self.ports:
            if self.clocks:
                self.set_clock(job, i, 0)
            self.start_server(job, i)
        for i in range(self.workers):
            self.start_program(i)
        return self

    def __exit__(self, *_):
        for process in [*self.programs.values(), *self.servers.values()]:
            process.kill()
            process.wait()
        for reader in self.readers.values():
            reader.join()
        if self.network:
            self.network.stop()

    # ---- processes ----

    def environment(self, job, i):
        """Of processes on the machine of this task."""
        if not self.clocks:
            return dict(os.environ)
        return os.environ | {'LD_PRELOAD': str(WRONG_CLOCK), 'WEIR_WRONG_CLOCK': self.clock_of(job, i)}

    def clock_of(self, job, i):
        return str(pathlib.Path(self.clocks, f'{job}-{i}'))

    def set_clock(self, job, i, wrong_by):
        """Whole seconds, of the programs that run as well."""
        fd = os.open(self.clock_of(job, i), os.O_WRONLY | os.O_CREAT)
        os.write(fd, struct.pack('q', wrong_by))
        os.close(fd)

    def start_server(self, job, i):
        command = [BUILD / 'cli' / 'weir', 'server', f'--cluster={self.spec}', f'--job={job}', f'--task={i}', '--threads=1']
        command += [f'--port={self.ports[job, i][1]}'] * self.is_relayed
        command += [f'--etcd={self.members}', '--etcd-prefix=/weir/chaos'] if self.members else []
        environment = self.environment(job, i) | {'WEIR_SAME_HOST': '0' if self.is_relayed else '1'}
        self.servers[job, i] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)

    def command_of(self, i):
        """Of a program."""
        return [PROGRAM, 'train', self.targets[i], i, self.workers, self.ps, self.steps, self.directory,
                'sync' if self.is_sync else 'async', *(self.etcd or ['lease'] * self.is_leased)]

    def start_program(self, i):
        process = subprocess.Popen([*map(str, self.command_of(i))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=self.environment('worker', i))
        self.programs[i] = process
        if i in self.readers:
            self.readers[i].join()  # of the one before, which has ended
        self._note(i, 'started')
        reader = threading.Thread(target=self._read, args=(i, process.stdout))
        reader.start()
        self.readers[i] = reader

    def _read(self, i, pipe):
        with pipe:
            for text in pipe:
                if text.endswith('\n'):  # else its writer was killed in the middle of it
                    self._note(i, text[:-1])

    def _note(self, i, text):
        with self.mu:
            self.lines.append(Line(time.time(), i, text))
            return self.lines[-1].time

    def note_fault(self, kind):
        return self._note(None, f'{kind} {self.newest()}')

    def note_damage(self):
        self._note(None, f'damaged {self.newest()}')

    def lose(self, i):
        """Kills program |i|, and forgets it: nobody starts it again."""
        self.kill(self.programs.pop(i))

    def kill(self, process):
        process.kill()
        process.wait()

    # ---- what is seen of them ----

    def seen(self):
        with self.mu:
            return list(self.lines)

    def step(self):
        """The largest that was told of."""
        return max((int(line.text[3:]) for line in self.seen() if line.text.startswith('at ')), default=0)

    def wait_for_step(self, step):
        self.wait(lambda: self.step() >= step or self.is_over(), f'step {step}')

    def is_over(self):
        return all(program.poll() is not None for program in self.programs.values())

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Failure(f'{PATIENCE:g} s have passed without {what}')
            time.sleep(0.005)

    def chief(self):
        """Who said last that he is; where it may be any, one is waited for."""
        def found():
            return [line.worker for line in self.seen() if line.text.startswith('the chief now') and line.worker in self.programs]
        if not self.is_leased:
            return 0
        self.wait(lambda: found() or self.is_over(), 'a chief')
        return found()[-1] if found() else next(iter(self.programs))

    def life_of(self, i):
        """What program |i| said since it was started last."""
        lines = [line.text for line in self.seen() if line.worker == i]
        return lines[len(lines) - lines[::-1].index('started'):]

    def end_program(self, i):
        """Asks it to end, in order. Where servers are lost it may have to say that nothing could be saved."""
        program = self.programs[i]
        program.send_signal(signal.SIGTERM)
        self.wait(lambda: program.poll() is not None, f'the end of program {i} after SIGTERM')
        self.readers[i].join()
        said = self.life_of(i)
        is_excused = UNSAVED in '\n'.join(said) if said else program.returncode == -signal.SIGTERM  # before its loop it catches no signals
        if program.returncode != 0 and not is_excused:
            raise Failure(f'after SIGTERM program {i} ended with {program.returncode}')

    def tell(self, *args):
        """What the program prints that looks at variables: their smallest and largest elements."""
        done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise Failure(f'{" ".join(map(str, args))}: {done.stderr}')
        return {name: (int(least), int(most)) for name, least, most in map(str.split, done.stdout.splitlines())}

    def variables(self):
        return self.tell('show', self.targets[0], self.ps)

    def newest(self):
        """The step of the newest checkpoint that is whole, as the state file says; 0: there is none."""
        return next((step for step in disk.listed(self.directory) if not self.is_damaged(step)), 0)

    def is_damaged(self, step):
        return step in self.damaged and self.damaged[step] == disk.version(self.directory, step)

    def damage_newest(self, how):
        """If there is one before it: from none, nobody goes on."""
        step = self.newest()
        version = disk.version(self.directory, step)
        whole = [other for other in set(disk.listed(self.directory)) if not self.is_damaged(other)]
        if len(whole) > 1 and disk.damage(self.directory, step, how):
            self.damaged[step] = version

    def checkpoints(self):
        """All that are there: the step in the name, when it was written, what is in it."""
        for index in pathlib.Path(self.directory).glob('model.ckpt-*.index'):
            step = int(index.stem.rpartition('-')[2])
            if not self.is_damaged(step):
                yield step, index.stat().st_mtime, self.tell('read', index.with_suffix(''))
