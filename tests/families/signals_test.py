"""Numerics: filters by Fourier transforms, and a Gaussian process by Cholesky factors."""
import numpy as np
import pytest

from clusters import tf, tf1
from compare import falls, train

pytestmark = pytest.mark.parametrize('check', ['functions', 'tasks'], indirect=True)


def test_filter_recovers_a_signal(check):
    """A low pass keeps the slow wave and drops the noise; in the plane, and without and with an inverse."""
    def program(s, form):
        t = np.arange(256) / 256
        clean = np.float32(np.sin(2 * np.pi * 3 * t) + 0.5 * np.cos(2 * np.pi * 7 * t))
        noisy = clean + np.float32(0.8 * np.sin(2 * np.pi * 60 * t))
        x, image = tf1.placeholder(tf.float32, [None]), tf1.placeholder(tf.float32, [16, 16])

        def look(x, image):
            spectrum = tf.signal.rfft(x)
            low = tf.where(tf.range(tf.shape(spectrum)[0]) < 20, spectrum, tf.zeros_like(spectrum))
            filtered = tf.signal.irfft(low)
            plane = tf.signal.fft2d(tf.cast(image, tf.complex64))
            shifted = tf.signal.fftshift(plane)
            back = tf.math.real(tf.signal.ifft2d(tf.signal.ifftshift(shifted)))
            frames = tf.signal.frame(x, 64, 32)
            stft = tf.signal.stft(x, 64, 32)
            whole = tf.signal.inverse_stft(stft, 64, 32, window_fn=tf.signal.inverse_stft_window_fn(32))
            slope = tf.gradients(tf.reduce_sum(tf.abs(tf.signal.rfft(filtered))**2), x)[0]
            return filtered, back, tf.abs(plane), tf.signal.dct(x, norm='ortho'), frames, whole, slope, tf.signal.rfft2d(image), \
                tf.signal.irfft3d(tf.signal.rfft3d(tf.reshape(image, [4, 8, 8])))
        out = s.run(form.function(look)(x, image), {x: noisy, image: np.outer(np.hanning(16), np.arange(16)).astype(np.float32)})
        np.testing.assert_allclose(out[0], clean, atol=1e-4)
        return out
    # Sums of 256 terms; slopes are of the size of 100.
    check(program, rtol=1e-4, atol=2e-4)


def test_gaussian_process(check):
    def program(s, form):
        rng = np.random.default_rng(5)
        x = np.sort(rng.uniform(-3, 3, 15))
        y, grid = np.sin(2 * x) + 0.05 * rng.standard_normal(15), np.linspace(-3, 3, 7)
        parameters = tf1.get_variable('parameters', initializer=tf.constant([0.8, 0.0, -2.0], tf.float64), use_resource=True)

        def kernel(a, b, p):
            return tf.exp(2 * p[1] - (a[:, None] - b[None])**2 * tf.exp(-2 * p[0]) / 2)

        def likelihood(p):
            k = kernel(x, x, p) + tf.exp(2 * p[2]) * tf.eye(15, dtype=tf.float64)
            factor = tf.linalg.cholesky(k)
            z = tf.linalg.triangular_solve(factor, y[:, None])
            return tf.reduce_sum(z * z) / 2 + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor))), tf.linalg.logdet(k)

        def predict(p):
            factor = tf.linalg.cholesky(kernel(x, x, p) + tf.exp(2 * p[2]) * tf.eye(15, dtype=tf.float64))
            across = kernel(x, grid, p)
            mean = tf.transpose(across) @ tf.linalg.cholesky_solve(factor, y[:, None])
            v = tf.linalg.triangular_solve(factor, across)
            return mean[:, 0], tf.linalg.diag_part(kernel(grid, grid, p) - tf.transpose(v) @ v)
        loss, log_det = form.function(likelihood)(parameters.read_value())
        losses = train(s, loss, 25, optimizer=tf1.train.AdamOptimizer(0.1))
        bad = tf.linalg.cholesky(tf.constant([[1., 2.], [2., 1.]], tf.float64) + 0 * parameters[0])
        return {'losses': falls(losses), 'parameters': s.run([parameters, log_det]),
                'predictions': s.run(form.function(predict)(parameters.read_value())),
                'not positive': s.run(tf.linalg.band_part(bad, -1, 0))}
    check(program, rtol=1e-6, atol=1e-8)


def test_decompositions(check):
    """Signs of vectors are a convention: what is made of them is compared."""
    def program(s, form):
        x = tf1.placeholder(tf.float64, [None, None])

        def look(x):
            gram = tf.transpose(x) @ x
            values, vectors = tf.linalg.eigh(gram)
            q, r = tf.linalg.qr(x)
            singular, u, v = tf.linalg.svd(x)
            low, order = tf.linalg.lu(gram + tf.eye(4, dtype=tf.float64))
            solved = tf.linalg.solve(gram + tf.eye(4, dtype=tf.float64), tf.transpose(x))
            return {'values': values, 'rebuilt': vectors @ tf.linalg.diag(values) @ tf.transpose(vectors), 'qr': q @ r,
                    'svd': u @ tf.linalg.diag(singular) @ tf.transpose(v), 'singular': singular, 'lu': low, 'order': order,
                    'solved': solved, 'inverse': tf.linalg.inv(gram + tf.eye(4, dtype=tf.float64)), 'exp': tf.linalg.expm(gram / 10),
                    'least': tf.linalg.lstsq(x, tf.ones([6, 1], tf.float64), 0.1),
                    'sqrt': tf.linalg.sqrtm(gram + 4 * tf.eye(4, dtype=tf.float64)),
                    'slope': tf.gradients(tf.linalg.slogdet(gram)[1], x)[0],
                    'band': tf.linalg.band_part(gram, 1, 0), 'tridiagonal': tf.linalg.tridiagonal_solve(
                        tf.linalg.diag_part(gram + 9 * tf.eye(4, dtype=tf.float64), k=(-1, 1)), tf.ones([4, 1], tf.float64))}
        return s.run(form.function(look)(x), {x: np.random.default_rng(6).standard_normal([6, 4])})
    check(program, rtol=1e-7, atol=1e-8)
