"""NVRTC without a device: compiles CUDA sources that no op asks for where there is no cuDNN.

    nvrtc.py [--library FILE]

prints what does not compile, for each architecture; the exit status is 1 then.
"""
import argparse
import ctypes
import glob
import itertools
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHITECTURES = ('sm_80', 'sm_90', 'sm_100')
# Sources, and words that are defined for them: of each kind that kernel/conv/cuda_by_filter.c makes one.
WORDS = ('TAPS_Y', 'TAPS_X', 'TILE_C', 'TILE_K', 'LANE', 'ROWS', 'SPLIT')
SOURCES = [('kernel/conv/by_filter.cu', dict(zip(WORDS, values)))
           for values in ((3, 3, 32, 64, 19, 1, 2), (3, 3, 32, 32, 7, 2, 4), (4, 4, 16, 64, 15, 2, 2), (2, 3, 16, 32, 7, 2, 4))]


def find_library():
    """NVRTC of PyPI; None: there is none there."""
    for folder in sys.path:
        for path in glob.glob(os.path.join(folder, 'nvidia', '*', 'lib', 'libnvrtc.so.1[0-9]')):
            return path
    return None


def source_of(name, words):
    """As kernel/cuda/source.c puts it together."""
    def text(path):
        return open(os.path.join(ROOT, 'src', path)).read()
    return '\n'.join([text('kernel/cuda/prelude.cu'), *(f'#define {word} {value}' for word, value in words.items()), text(name)])


def compile_source(library, text, architecture):
    """None, or what is wrong."""
    program = ctypes.c_void_p()
    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b'source.cu', 0, None, None):
        return 'no program'
    options = (ctypes.c_char_p * 1)(f'--gpu-architecture={architecture}'.encode())
    result, size = library.nvrtcCompileProgram(program, 1, options), ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if result else None


def failures(path):
    """Lines, one for each that does not compile; and how many were tried."""
    library, found, count = ctypes.CDLL(path), [], 0
    for (name, words), architecture in itertools.product(SOURCES, ARCHITECTURES):
        problem = compile_source(library, source_of(name, words), architecture)
        count += 1
        if problem:
            found.append(f'FAIL {name} {words} for {architecture}\n    {problem}')
    return found, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--library', default=find_library() or 'libnvrtc.so.13')
    found, count = failures(parser.parse_args().library)
    print('\n'.join([*found, f'{count} compiled, {len(found)} failures']))
    return int(bool(found))


if __name__ == '__main__':
    sys.exit(main())
