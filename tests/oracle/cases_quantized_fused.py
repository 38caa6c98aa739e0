"""Cases of the quantised nodes that oneDNN's graphs are rewritten to: definitions. Kernels there are with oneDNN alone. What
their shape functions refuse would end TensorFlow's process in its kernels: see tests/shapes_test.py."""
import numpy as np

from cases_quantized import any_quantized

LOW, HIGH = np.float32(-1), np.float32(1)
HOST = [np.float32] * 4


def cases(check, rng):
    x, kernel = any_quantized(rng, 'quint8', (1, 5, 5, 2)), any_quantized(rng, 'qint8', (2, 2, 2, 3))
    types = {'Tinput': 'quint8', 'Tfilter': 'qint8', 'Tbias': 'float32', 'Tsummand': 'qint32', 'out_type': 'qint32',
             'Tdevice_inputs': ['quint8', 'qint8'], 'Thost_inputs': HOST, 'Tdevice_outputs': ['qint32'],
             'Thost_outputs': [np.float32] * 2, 'strides': [1, 2, 2, 1], 'padding': 'SAME'}
    for op in ('_FusedQuantizedConv2D', '_FusedQuantizedDepthwiseConv2D'):
        check(op, [x, kernel, LOW, HIGH, LOW, HIGH], types, weir_only_fails=True)
