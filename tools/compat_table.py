#!/usr/bin/env python3
"""Writes docs/compat.md from what the weir command says of its ops.

usage: compat_table.py [WEIR] > docs/compat.md     (WEIR: the command, by default build/dev/cli/weir)
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Sets of types that many kernels take, largest first.
SETS = [
    ('real', 'bfloat16 half float double int8 int16 int32 int64 uint8 uint16 uint32 uint64'),
    ('integer', 'int8 int16 int32 int64 uint8 uint16 uint32 uint64'),
    ('floating', 'bfloat16 half float double'),
    ('complex', 'complex64 complex128'),
    ('index', 'int32 int64'),
    ('quantised', 'qint8 quint8 qint16 quint16 qint32'),
]
HEADER = '''# Compatibility

Written by `tools/compat_table.py` from `weir ops --json`; do not edit.

Weir has {count} ops. But for some that plans add by themselves, whose names begin with `_`, they are TensorFlow's, with its
definitions: the same arguments, attributes, defaults and types. A graph may hold any other op, too: it is kept, written back as it
was, and fails only when a step needs it. For what is listed, results, error codes and random numbers for the same seeds are
TensorFlow's, up to rounding; `tests/oracle/` checks that.

Known differences, seen by running TensorFlow's own Python tests against a server, and random programs in both:

- An op that is not listed is refused by name when a step needs it: NOT_FOUND "Op type not registered".
- An accumulator under the name of one of another kind, type or shape is refused; TensorFlow takes one for the other, and may end at its first
  gradient.
- WebP is read by DecodeWebP and DecodeImage, where libwebp is installed; DecodeJpeg, DecodePng and DecodeBmp refuse it. JPEG XL is read where
  libjxl is.
- Collectives go between Weir's servers, not between those and TensorFlow's; `collective_group_leader` is not read. Members that do not agree
  on what to do with their tensors get an error, where TensorFlow computes something.
- NcclReduce and NcclBroadcast are run as they are, where TensorFlow makes sends and receives of them: one reads its inputs on their GPUs, the
  other's readers copy, each GPU once. Between GPUs of one process collectives go by NCCL unless `communication_hint` is 'ring', between
  GPUs of several tasks through their hosts.
- SobolSample has 1111 dimensions. DecodeProtoV2 with `local://` knows the messages that Weir itself reads.
- The state of an iterator is written in a form of Weir's own. Windows and other datasets that are held as elements do not go into checkpoints.
- Regular expressions fold the cases of Latin, Greek and Cyrillic letters alone under `(?i)`. East Asian encodings but Shift JIS are decoded by the C library, in some characters not as by ICU (private use, unassigned ones). PyFunc runs in the Python process alone, and not on a server.
- SegmentMin and its like keep NaN; TensorFlow's do in whole vectors, and not in what is left of a row.
- FusedPadConv2D and FusedResizeAndPadConv2D compute each image of a batch; TensorFlow's give every image the first one's result.
- DecodeJpeg with `try_recover_truncated` takes the image to be over where the file is; TensorFlow first decodes the last bytes once more.
  A JPEG of more than 500 scans, or one of several scans and a billion samples at full size, is refused.
- The old ops of stacks put out names that are unique within a step, not within a process.
- A function's body is checked whole: types that no op takes are an error also where nothing needs the node, which TensorFlow
  drops unseen.
- Functions are called, not inlined: a trace shows the call, also of a function without `_noinline`. Conditionals and loops are
  lowered where they ask for it, as in TensorFlow.
- InplaceAdd, InplaceSub and InplaceUpdate write to a copy of what others still read; TensorFlow's change it under their eyes, even a
  constant.
- What is only waited for, and read by nobody, is not computed, and so does not fail, unless it has a side effect or is a check. Nor is a value
  of which only the shape is asked, where that is known without it.
- An optimizer's op takes its rates and gradients as they are when it begins, also where one of them is a variable that it writes.
- A resource variable copies what it is given of a reference variable, and does not change with it.
- A tensor may be fed and fetched in one step. What is fed must have the shape that is known of the tensor: TensorFlow's Python client
  asks for that, its C library does not.
- A float that no integer holds becomes the nearest one, and NaN 0, on every processor, as in TensorFlow on aarch64. On x86-64 TensorFlow gives
  the least number for int32 and int64, and for narrower types what the place in the tensor decides.
- Requantize and QuantizeDownAndShrinkRange to quint8 count in 65,536ths of a level. TensorFlow's on x86-64 round on the way, and come to the
  next level where a value is within one or two such parts of the middle between both.
- MapDefun without rows fails if the shape of any output is not fully declared, TensorFlow's only if such an output is read.
- Xlogy of half and bfloat16 rounds once, TensorFlow's after the logarithm and again after the product.
- A reference variable of one CPU that is read on another CPU of the process is read when its reader runs. TensorFlow hands the memory over
  as soon as the step begins: its reader sees what is written there, too, but not the variable's first value or its new size, if it gets
  one in the same step. What crosses to a device with memory of its own, or to another task, is a copy in both: made once all else
  that the reader waits for has come if the reader has the reference itself, and else as soon as the value is there.
- A Barrier looks at an element's shape when it is inserted, TensorFlow's when its last component is.
- {bare} ops, those without a device, are known to graphs and shape functions, and have no kernel: QuantizedConcatV2 and fused convolutions
  and products of quantised tensors, which TensorFlow computes by oneDNN alone (without, its kernels are stand-ins that compute nothing), and
  MaxPoolGradGradWithArgmax and QuantizedReluX, which it has none for on CPUs.

The table lists, for each op, the values of its type attributes for which there is a kernel, the devices, whether it has a gradient and
whether it is stateful. Sets of types: {sets}. "all" is every type.

| op | types | devices | gradient | stateful |
|---|---|---|---|---|
'''


def describe(types, everything):
    """The types as names of sets and what is left over."""
    rest = set(types)
    if rest == everything:
        return 'all'
    words = []
    for name, members in SETS:
        members = set(members.split())
        if members <= rest:
            words.append(name)
            rest -= members
    return ', '.join(words + [t for t in types if t in rest]) or '–'


def table(lines):
    ops = [json.loads(line) for line in lines if line.strip()]
    everything = set(max((t for op in ops for t in op['types'].values()), key=len, default=[]))
    sets = '; '.join(f'*{name}* ({members.replace(" ", ", ")})' for name, members in SETS)
    out = HEADER.format(count=len(ops), bare=sum(not op['devices'] for op in ops), sets=sets)
    for op in sorted(ops, key=lambda op: op['name']):
        types = '; '.join(f'{attr}: {describe(t, everything)}' for attr, t in op['types'].items())
        out += '| {} | {} | {} | {} | {} |\n'.format(op['name'].replace('_', '\\_'), types, ', '.join(op['devices']) or '–',
                                                   'yes' if op['gradient'] else '', 'yes' if op['stateful'] else '')
    return out


def main():
    weir = sys.argv[1] if len(sys.argv) > 1 else ROOT / 'build' / 'dev' / 'cli' / 'weir'
    lines = subprocess.run([weir, 'ops', '--json'], check=True, capture_output=True, text=True).stdout.splitlines()
    sys.stdout.write(table(lines))


if __name__ == '__main__':
    main()
