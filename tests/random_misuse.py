#!/usr/bin/env python3
"""Random sequences of calls of the C API, some of them wrong: each is refused in words that say what is wrong, or aborts with a
message that names it; none crashes, none is silent, and the right ones give the right numbers before and after.

    random_misuse.py [--seed N] [--count N] [--minutes N] [--calls N] [--lib FILE]
    random_misuse.py --script FILE         makes a printed sequence again

Each sequence runs in a process of its own. One that fails is made small and printed.
"""
import argparse
import ctypes
import faulthandler
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'oracle')]

from conftest import BUILD
from misuse_draw import Draw
from misuse_model import Model
from misuse_world import WORDS, Problem
from values import read_fields

HANG_S = 20
SANITIZER = 'AddressSanitizer'


def read_ops(library):
    """Names of attributes by op."""
    library.weir_op_list.restype = ctypes.c_void_p
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert not library.weir_op_list(ctypes.byref(data), ctypes.byref(size))
    ops = [list(read_fields(op)) for _, op in read_fields(ctypes.string_at(data.value, size.value))]
    return {dict(op)[1].decode(): [dict(read_fields(value))[1].decode() for field, value in op if field == 4] for op in ops}


class Child:
    """A process that makes calls and tells of each before it makes it."""

    def __init__(self, library, ops, calls):
        """|calls|(model) gives them one by one."""
        self.calls, self.problem, self.may_abort = [], None, False
        reader, writer = os.pipe()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            self.pid = os.fork()
            if self.pid == 0:
                os.close(reader)
                self.main(library, ops, calls, writer, folder, errors)
            os.close(writer)
            with os.fdopen(reader) as pipe:
                for line in pipe:
                    self.take(line)
            self.status = os.waitpid(self.pid, 0)[1]
            errors.seek(0)
            self.errors = errors.read().decode(errors='replace')
        if os.WIFSIGNALED(self.status) or os.WEXITSTATUS(self.status):
            self.problem = self.death()

    def main(self, library, ops, calls, writer, folder, errors):
        try:
            os.chdir(folder)
            os.dup2(errors.fileno(), 2)
            faulthandler.disable()
            signal.alarm(HANG_S)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            model = Model(library, ops)
            for call in calls(model):
                os.write(writer, f'{call!r}\n'.encode())
                os.write(writer, b'? may abort\n' if model.may_abort(call) else b'? must answer\n')
                model.make(call)
        except Problem as problem:
            os.write(writer, f'! {problem}\n'.encode())
        except BaseException:  # pylint: disable=broad-except
            os.write(writer, f'! {traceback.format_exc()!r}\n'.encode())
        finally:
            os._exit(0)

    def take(self, line):
        if line.startswith('! '):
            self.problem = line[2:].strip()
        elif line.startswith('? '):
            self.may_abort = line == '? may abort\n'
        else:
            self.calls.append(eval(line, dict(WORDS)))  # pylint: disable=eval-used

    def death(self):
        """None where the last call aborted with a message that names it."""
        name = self.calls[-1].name if self.calls else 'nothing'
        what = signal.Signals(os.WTERMSIG(self.status)).name if os.WIFSIGNALED(self.status) else f'exit {self.status >> 8}'
        message = [line for line in self.errors.splitlines() if '[0x' not in line]  # the rest is where it was called
        if what == 'SIGABRT' and self.may_abort and any(name in line for line in message) and SANITIZER not in self.errors:
            return None
        return f'{what}: {" ".join(message)[-600:].strip()}'

    def kind(self):
        """What failed how: a shorter sequence shall do the same."""
        return (self.calls[-1].name, self.problem.split(' ')[0]) if self.problem else None


def drawn(seed, count):
    """A function that draws the calls of |seed|."""
    def calls(model):
        draw = Draw(random.Random(seed), model)
        yield from draw.start()
        for _ in range(count):
            yield draw.next()
        yield from draw.end()
    return calls


def shrink(library, ops, child, seconds):
    """The fewest calls that fail like those of |child|."""
    end, kind, calls = time.monotonic() + seconds, child.kind(), child.calls
    size = max(1, len(calls) // 2)
    while size and time.monotonic() < end:
        at = len(calls) - 1 - size
        while at >= 0 and time.monotonic() < end:
            fewer = calls[:at] + calls[at + size:]
            again = Child(library, ops, lambda model, fewer=fewer: iter(fewer))
            if again.kind() == kind:
                calls, child = again.calls, again
            at -= size
        size //= 2
    return child


def show(seed, child):
    return '\n'.join([f'---- seed {seed}: {child.calls[-1].name if child.calls else "start"} {child.problem}', *map(repr, child.calls)])


def run_script(library, ops, path):
    with open(path) as f:
        calls = [eval(line, dict(WORDS)) for line in f if line.startswith('Call(')]  # pylint: disable=eval-used
    child = Child(library, ops, lambda model: iter(calls))
    print(child.problem or 'no problem')
    return int(child.problem is not None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--lib', default=str(BUILD / 'libweir.so'))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=1000, help='sequences')
    parser.add_argument('--calls', type=int, default=40, help='in a sequence')
    parser.add_argument('--minutes', type=float, help='stops after that')
    parser.add_argument('--shrink', type=float, default=10, help='seconds for each failure')
    parser.add_argument('--max-failures', type=int, default=2, help='printed of a function that fails in one way')
    parser.add_argument('--first', action='store_true', help='stops at the first failure')
    parser.add_argument('--script', metavar='FILE')
    options = parser.parse_args()
    library = ctypes.CDLL(os.path.abspath(options.lib))
    ops = read_ops(library)
    if options.script:
        return run_script(library, ops, options.script)
    start, calls, failed, shown, aborted = time.monotonic(), 0, 0, {}, 0
    done = 0
    for seed in range(options.seed, options.seed + options.count):
        if options.minutes and time.monotonic() - start > options.minutes * 60:
            break
        child = Child(library, ops, drawn(seed, options.calls))
        calls, done = calls + len(child.calls), done + 1
        aborted += os.WIFSIGNALED(child.status)
        if child.problem is None:
            continue
        failed += 1
        shown[child.kind()] = shown.get(child.kind(), 0) + 1
        if shown[child.kind()] <= options.max_failures:
            print(show(seed, shrink(library, ops, child, options.shrink)), flush=True)
        if options.first:
            break
    seconds = time.monotonic() - start
    print(f'{done} sequences of {calls} calls in {seconds:.0f} s; {failed} fail, {aborted} end by a signal')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
