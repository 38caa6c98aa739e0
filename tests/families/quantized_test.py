"""A small MobileNet: trained with fake quantisation, then run with the ops of 8 bits."""
import numpy as np

from clusters import tf, tf1
from compare import falls, train, variables


def images():
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 1, [8, 12, 12, 3]).astype(np.float32)
    x[4:, 3:9, 3:9] += 0.7
    return x.clip(0, 1.5), np.arange(8) // 4


def fake_quantized(w, bits=8):
    return tf.quantization.fake_quant_with_min_max_args(w, -1.5, 1.5, bits)


def separable(x, depthwise, pointwise, low, high, stride):
    """A depthwise and a pointwise convolution, all of it as with 8 bits."""
    x = tf.nn.depthwise_conv2d(x, fake_quantized(depthwise), [1, stride, stride, 1], 'SAME')
    x = tf.nn.relu6(tf.nn.conv2d(x, fake_quantized(pointwise), 1, 'SAME'))
    return tf.quantization.fake_quant_with_min_max_vars(x, low, high)


def test_training(check):
    def program(s, form):
        x, labels = images()
        shapes = {'first': [3, 3, 3, 4], 'depth1': [3, 3, 4, 1], 'point1': [1, 1, 4, 6], 'depth2': [3, 3, 6, 1], 'point2': [1, 1, 6, 8],
                  'out': [8, 2]}
        v = variables(**shapes)
        ranges = tf1.get_variable('ranges', initializer=tf.constant([[-0.1, 3.], [-0.1, 4.]]), use_resource=True)

        def logits(x, r, w):
            x = tf.nn.relu6(tf.nn.conv2d(x, fake_quantized(w['first']), 2, 'SAME'))
            x = separable(x, w['depth1'], w['point1'], r[0, 0], r[0, 1], 1)
            x = separable(x, w['depth2'], w['point2'], r[1, 0], r[1, 1], 2)
            channels = tf.quantization.fake_quant_with_min_max_vars_per_channel(w['out'], [-1., -2.], [1., 2.])
            return tf.reduce_mean(x, [1, 2]) @ channels
        made = form.function(logits)(tf.constant(x), ranges.read_value(), {n: t.read_value() for n, t in v.items()})
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=made))
        losses = train(s, loss, 6, optimizer=tf1.train.AdamOptimizer(0.03))
        return {'losses': falls(losses, 0.98), 'ranges': s.run(ranges)}
    # A value on the border of two of 255 steps may fall to either side of it.
    check(program, rtol=5e-3, atol=5e-3)


def eight_bits(x, low, high):
    return tf.quantization.quantize(x, low, high, tf.quint8, mode='MIN_FIRST')


def test_inference(check):
    """QuantizedConv2D, a bias, a requantisation to 8 bits, QuantizedRelu, pooling, and a product, all in whole numbers."""
    def program(s, form):
        x, _ = images()
        rng = np.random.default_rng(9)
        kernel, weights, bias = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ([3, 3, 3, 4], [36, 5], [4]))

        def look(x):
            q, filters = eight_bits(x, 0., 1.5), eight_bits(tf.constant(kernel), -1., 1.)
            raw = tf.raw_ops
            total = raw.QuantizedConv2D(input=q.output, filter=filters.output, min_input=q.output_min, max_input=q.output_max,
                                        min_filter=filters.output_min, max_filter=filters.output_max, strides=[1, 2, 2, 1], padding='SAME')
            low, high = raw.RequantizationRange(input=total.output, input_min=total.min_output, input_max=total.max_output)
            small = raw.Requantize(input=total.output, input_min=total.min_output, input_max=total.max_output, requested_output_min=low,
                                   requested_output_max=high, out_type=tf.quint8)
            b = eight_bits(tf.constant(bias), -1., 1.)
            sums = raw.QuantizedBiasAdd(input=small.output, bias=b.output, min_input=small.output_min, max_input=small.output_max,
                                        min_bias=b.output_min, max_bias=b.output_max, out_type=tf.qint32)
            again = raw.QuantizeDownAndShrinkRange(input=sums.output, input_min=sums.min_out, input_max=sums.max_out, out_type=tf.quint8)
            relu = raw.QuantizedRelu(features=again.output, min_features=again.output_min, max_features=again.output_max)
            pool = raw.QuantizedMaxPool(input=relu.activations, min_input=relu.min_activations, max_input=relu.max_activations,
                                        ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME')
            flat, flat_low, flat_high = raw.QuantizedReshape(tensor=pool.output, shape=[8, 36], input_min=pool.min_output,
                                                             input_max=pool.max_output)
            w = eight_bits(tf.constant(weights), -1., 1.)
            product = raw.QuantizedMatMul(a=flat, b=w.output, min_a=flat_low, max_a=flat_high, min_b=w.output_min, max_b=w.output_max)
            logits = raw.Dequantize(input=product.out, min_range=product.min_out, max_range=product.max_out)
            return {'q': tf.bitcast(q.output, tf.uint8), 'total': tf.bitcast(total.output, tf.int32), 'range': (low, high),
                    'relu': tf.bitcast(relu.activations, tf.uint8), 'product': tf.bitcast(product.out, tf.int32), 'logits': logits,
                    'ranges': (product.min_out, product.max_out, relu.min_activations)}
        return s.run(form.function(look)(tf.constant(x)))
    check(program)


def test_quantize_and_dequantize_in_training(check):
    def program(s, form):
        v = variables(w=[4, 3])

        def model(w, low, high):
            x = tf.constant(np.random.default_rng(10).standard_normal([6, 4]).astype(np.float32))
            w = tf.quantization.quantize_and_dequantize_v2(w, low, high, range_given=True, num_bits=6)
            columns = tf.quantization.quantize_and_dequantize_v2(x, [0.] * 4, [0.] * 4, range_given=False, axis=1)
            return tf.reduce_mean((tf.tanh(x @ w) - 0.3)**2), columns
        loss, seen = form.function(model)(v['w'].read_value(), tf.constant(-1.), tf.constant(1.))
        return {'losses': falls(train(s, loss, 10, optimizer=tf1.train.GradientDescentOptimizer(0.5))), 'seen': s.run(seen)}
    check(program)
