"""Ops of many families, as random programs have them: quantised, images, text, sparse, ragged, transforms, matrices, speech."""
from random_actions import T, action, barrier
from random_graph import BOOL, DOUBLE, FLOAT, INT32, INT64, STRING, VARIANT, bool_, float_, int_, text, texts, type_

QUINT8, QINT32, UINT8, COMPLEX64 = 12, 13, 4, 8


def step(b, op, inputs, attrs, *outs):
    """A node between two others, whose values nobody else takes."""
    return b.add(op, [v.ref for v in inputs], attrs, outs, b.reads(*inputs))


def may_fail(b, op, inputs, attrs, *outs):
    touches = barrier(b) + [t for t in b.reads(*inputs) if t[0] not in b.ctx.variables]
    made = b.add(op, [v.ref for v in inputs], attrs, outs, touches)
    b.ctx.values.append(made[0])


def matrix(b, dtypes=(FLOAT, DOUBLE)):
    return b.find(dtypes, (2, 2)) or b.want(b.pick(*dtypes), (2, 2))


@action(1)
def fake_quantized(b):
    x = b.want(FLOAT, b.draw_dims())
    attrs = {'num_bits': int_(b.pick(2, 4, 8)), 'narrow_range': bool_(b.chance(0.5))}
    if b.chance(0.5):
        b.compute('FakeQuantWithMinMaxArgs', [x], {**attrs, 'min': float_(-4), 'max': float_(3.5)}, FLOAT, x.dims)
    else:
        may_fail(b, 'FakeQuantWithMinMaxVars', [x, b.const(FLOAT, value=-2), b.want(FLOAT, ())], attrs, (FLOAT, x.dims))


@action(1)
def quantized(b):
    """To 8 bits and back, a product between them."""
    sides = []
    for _ in range(2):
        ends = [b.const(FLOAT, value=end) for end in (-8, 8)]
        attrs = T(QUINT8, mode=text('MIN_COMBINED'), round_mode=text('HALF_AWAY_FROM_ZERO'))
        sides.append(step(b, 'QuantizeV2', [b.want(FLOAT, (2, 2)), *ends], attrs, (QUINT8, (2, 2)), (FLOAT, ()), (FLOAT, ())))
    x, y = sides
    attrs = {'T1': type_(QUINT8), 'T2': type_(QUINT8), 'Toutput': type_(QINT32), 'Tactivation': type_(QUINT8),
             'transpose_a': bool_(b.chance(0.5)), 'transpose_b': bool_(False)}
    z = step(b, 'QuantizedMatMul', [x[0], y[0], *x[1:], *y[1:]], attrs, (QINT32, (2, 2)), (FLOAT, ()), (FLOAT, ()))
    b.compute('Dequantize', z, {'T': type_(QINT32), 'mode': text('MIN_COMBINED'), 'dtype': type_(FLOAT)}, FLOAT, (2, 2))


@action(1)
def image(b):
    x = matrix(b)
    picture = step(b, 'Reshape', [x, b.const(INT32, value=[1, 2, 2, 1])], T(x.dtype, Tshape=type_(INT32)), (x.dtype, (1, 2, 2, 1)))[0]
    size = b.const(INT32, value=[b.pick(1, 2, 3), 2])
    op = b.pick('ResizeBilinear', 'ResizeNearestNeighbor', 'ResizeArea')
    dtype = x.dtype if op == 'ResizeNearestNeighbor' else FLOAT
    attrs = T(x.dtype, align_corners=bool_(b.chance(0.3)))
    y = step(b, op, [picture, size], attrs, (dtype, (1, None, 2, 1)))[0]
    b.compute('Sum', [y, b.const(INT32, value=[0, 1, 3])], T(dtype, Tidx=type_(INT32), keep_dims=bool_(False)), dtype, (2,))


@action(1)
def coded_image(b):
    """Numbers outside a pixel's range become any others of it, here and in TensorFlow: they are cut first."""
    x = matrix(b, (INT32,))
    cut = step(b, 'Maximum', [step(b, 'Minimum', [x, b.const(INT32, value=255)], T(INT32), (INT32, (2, 2)))[0], b.const(INT32, value=0)],
               T(INT32), (INT32, (2, 2)))[0]
    pixels = step(b, 'Cast', [cut], {'SrcT': type_(INT32), 'DstT': type_(UINT8)}, (UINT8, (2, 2)))[0]
    pixels = step(b, 'ExpandDims', [pixels, b.const(INT32, value=2)], T(UINT8, Tdim=type_(INT32)), (UINT8, (2, 2, 1)))[0]
    file = step(b, 'EncodePng', [pixels], T(UINT8, compression=int_(1)), (STRING, ()))[0]
    again = step(b, 'DecodePng', [file], {'dtype': type_(UINT8), 'channels': int_(1)}, (UINT8, (2, 2, 1)))[0]
    wide = step(b, 'Cast', [again], {'SrcT': type_(UINT8), 'DstT': type_(INT32)}, (INT32, (2, 2, 1)))[0]
    b.compute('Reshape', [wide, b.const(INT32, value=[2, 2])], T(INT32, Tshape=type_(INT32)), INT32, (2, 2))


@action(2)
def text_ops(b):
    x = b.want(STRING, b.draw_dims())
    kind = b.below(7)
    if kind == 0:
        attrs = {'pattern': text('a(.)'), 'rewrite': text('\\1x'), 'replace_global': bool_(b.chance(0.5))}
        b.compute('StaticRegexReplace', [x], attrs, STRING, x.dims)
    elif kind == 1:
        b.compute(b.pick('StringUpper', 'StringLower'), [x], {'encoding': text(b.pick('', 'utf-8'))}, STRING, x.dims)
    elif kind == 2:
        b.compute('StringToHashBucketFast', [x], {'num_buckets': int_(7)}, INT64, x.dims)
    elif kind == 3:
        b.compute('StringLength', [x], {'unit': text('BYTE')}, INT32, x.dims)
    elif kind == 4:
        b.compute('RegexFullMatch', [x, b.const(STRING, value=b'a.*')], {}, BOOL, x.dims)
    elif kind == 5:
        may_fail(b, 'Substr', [x, b.want(INT32, ()), b.const(INT32, value=2)], T(INT32, unit=text('BYTE')), (STRING, x.dims))
    else:
        may_fail(b, 'StringToNumber', [x], {'out_type': type_(FLOAT)}, (FLOAT, x.dims))


@action(1)
def looked_at(b):
    """UnicodeDecode of one text gives rows of unknown length: their splits are known."""
    x = b.want(STRING, (2,))
    attrs = {'input_encoding': text('UTF-8'), 'errors': text('replace'), 'replacement_char': int_(65), 'Tsplits': type_(INT64),
             'replace_control_characters': bool_(False)}
    splits = step(b, 'UnicodeDecode', [x], attrs, (INT64, (3,)), (INT32, (None,)))[0]
    b.ctx.values.append(splits)


@action(2)
def sparse(b):
    """Two elements of a matrix, one of which may be outside of it."""
    dtype = b.pick(FLOAT, DOUBLE)
    indices = b.const(INT64, value=[[0, 1], [b.pick(1, 1, 1, 2), 0]])
    values, size = b.want(dtype, (2,)), b.const(INT64, value=[2, 2])
    kind = b.below(4)
    if kind == 0:
        attrs = T(dtype, Tindices=type_(INT64), adjoint_a=bool_(False), adjoint_b=bool_(b.chance(0.3)))
        may_fail(b, 'SparseTensorDenseMatMul', [indices, values, size, matrix(b, (dtype,))], attrs, (dtype, (2, 2)))
    elif kind == 1:
        attrs = T(dtype, Tindices=type_(INT64), validate_indices=bool_(True))
        may_fail(b, 'SparseToDense', [indices, size, values, b.want(dtype, ())], attrs, (dtype, (2, 2)))
    elif kind == 2:
        good = b.const(INT64, value=[[0, 1], [1, 0]])
        b.compute('SparseReduceSum', [good, values, size, b.const(INT32, value=[1])], T(dtype, keep_dims=bool_(False)), dtype, (2,))
    else:
        good = b.const(INT64, value=[[0, 0], [0, 1]])
        b.compute('SparseSoftmax', [good, values, size], T(dtype), dtype, (2,))


@action(1)
def ragged(b):
    """Rows of two values; splits that go back fail. Of more values than there are TensorFlow reads beyond its memory."""
    dtype = b.pick(FLOAT, INT32)
    splits = b.const(INT64, value=b.pick([0, 1, 2], [0, 2, 2], [0, 0, 2], [0, 3, 2]))
    attrs = T(dtype, Tindex=type_(INT64), Tshape=type_(INT64), num_row_partition_tensors=int_(1),
              row_partition_types=texts('ROW_SPLITS'))
    inputs = [b.const(INT64, value=[2, 2]), b.want(dtype, (2,)), b.want(dtype, ()), splits]
    may_fail(b, 'RaggedTensorToTensor', inputs, attrs, (dtype, (2, 2)))


@action(1)
def transform(b):
    x = b.want(FLOAT, (2, 2))
    attrs = {'Treal': type_(FLOAT), 'Tcomplex': type_(COMPLEX64)}
    spectrum = step(b, 'RFFT', [x, b.const(INT32, value=[4])], attrs, (COMPLEX64, (2, 3)))[0]
    b.compute('IRFFT', [spectrum, b.const(INT32, value=[2])], attrs, FLOAT, (2, 2))


@action(1)
def solution(b):
    """Of whole numbers; matrices that cannot be inverted fail."""
    x = matrix(b, (DOUBLE,))
    if b.chance(0.4):
        b.compute('MatrixDeterminant', [x], T(DOUBLE), DOUBLE, ())
    else:
        may_fail(b, 'MatrixInverse', [b.const(DOUBLE, (2, 2))], T(DOUBLE, adjoint=bool_(b.chance(0.3))), (DOUBLE, (2, 2)))


@action(1)
def speech(b):
    """Three classes, the last a blank; a negative label fails. Of one that is no label TensorFlow writes beyond its memory."""
    logits = b.const(FLOAT, (3, 1, 3))
    inputs = [logits, b.const(INT64, value=[[0, 0]]), b.const(INT32, value=[b.pick(0, 1, 1, -1)]), b.const(INT32, value=[3])]
    attrs = T(FLOAT, preprocess_collapse_repeated=bool_(False), ctc_merge_repeated=bool_(True),
              ignore_longer_outputs_than_inputs=bool_(False))
    may_fail(b, 'CTCLoss', inputs, attrs, (FLOAT, (1,)), (FLOAT, (3, 1, 3)))


@action(1)
def kept_in_a_map(b):
    x = b.want(b.pick(FLOAT, STRING), b.draw_dims())
    key = b.const(INT32, value=1)
    m = step(b, 'EmptyTensorMap', [], {}, (VARIANT, ()))[0]
    attrs = {'key_dtype': type_(INT32), 'value_dtype': type_(x.dtype)}
    m = step(b, 'TensorMapInsert', [m, key, fresh_of(b, x)], attrs, (VARIANT, ()))[0]
    may_fail(b, 'TensorMapLookup', [m, b.const(INT32, value=b.pick(1, 1, 2))], attrs, (x.dtype, x.dims))


def fresh_of(b, x):
    """A map keeps the buffer: no alias of a variable."""
    return x if not x.alias else b.const(x.dtype, x.dims)
