"""Toy speech recognition: tones as words, their spectra, an LSTM over frames, and CTC to train and to decode it."""
import numpy as np
import pytest

from clusters import tf, tf1
from compare import falls, train, variables

pytestmark = pytest.mark.parametrize('check', ['functions', 'tasks'], indirect=True)  # older and newer loops
RATE, UNITS, CLASSES = 4000, 16, 4  # the last class is the blank


def tones():
    """Each utterance is some tones in a row, each its label."""
    labels = [[0, 1], [2], [1, 0, 2]]
    sounds = np.zeros([3, 2000], np.float32)
    for row, words in zip(sounds, labels):
        for i, word in enumerate(words):
            t = np.arange(600) / RATE
            row[i * 640:i * 640 + 600] = np.sin(2 * np.pi * (300 + 500 * word) * t)
    indices = [[i, j] for i, words in enumerate(labels) for j in range(len(words))]
    return sounds, np.int64(indices), np.int32([w for words in labels for w in words])


def mel_features(sounds):
    spectra = tf.abs(tf.signal.stft(sounds, 256, 128))
    mel = tf.signal.linear_to_mel_weight_matrix(12, 129, RATE, 100., 1800.)
    return tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.tensordot(spectra, mel, 1) + 1e-3))


def old_features(sounds):
    """By the ops of TensorFlow 1: one channel is one utterance."""
    spectra = tf.raw_ops.AudioSpectrogram(input=tf.transpose(sounds), window_size=256, stride=128, magnitude_squared=True)
    return tf.raw_ops.Mfcc(spectrogram=spectra, sample_rate=RATE, upper_frequency_limit=1800., lower_frequency_limit=100.,
                           filterbank_channel_count=20, dct_coefficient_count=12)


def lstm(x, weights, bias):
    """Batch-major features to hidden states, time first."""
    def step(state, x):
        h, c = state
        i, j, f, o = tf.split(tf.concat([x, h], 1) @ weights + bias, 4, 1)
        c = tf.sigmoid(f + 1.) * c + tf.sigmoid(i) * tf.tanh(j)
        return tf.sigmoid(o) * tf.tanh(c), c
    zero = tf.zeros([tf.shape(x)[0], UNITS])
    return tf.scan(step, tf.transpose(x, [1, 0, 2]), (zero, zero))[0]


def network(form, features):
    sounds, indices, words = tones()
    v = variables(w=[12 + UNITS, 4 * UNITS], b=[4 * UNITS], out=[UNITS, CLASSES])

    def logits(sounds, w, b, out):
        hidden = lstm(features(sounds) * 0.2, w, b)
        return tf.reshape(tf.reshape(hidden, [-1, UNITS]) @ out, [-1, 3, CLASSES])
    made = form.function(logits)(tf.constant(sounds), *[v[n].read_value() for n in ('w', 'b', 'out')])
    lengths = tf.fill([3], tf.shape(made)[0])
    labels = tf.SparseTensor(indices, words, [3, 3])
    return made, lengths, labels


def dense(decoded):
    return [tf.sparse.to_dense(d, default_value=-1) for d in decoded]


def test_ctc(check):
    def program(s, form):
        logits, lengths, labels = network(form, mel_features)
        loss = tf.reduce_mean(tf1.nn.ctc_loss(labels, logits, lengths))
        losses = train(s, loss, 12, optimizer=tf1.train.AdamOptimizer(0.05))
        greedy, greedy_score = tf.nn.ctc_greedy_decoder(logits, lengths)
        beams, scores = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width=8, top_paths=2)
        distance = tf.edit_distance(tf.cast(greedy[0], tf.int32), labels)
        return {'losses': falls(losses, 0.7), 'greedy': s.run([*dense(greedy), greedy_score, distance]),
                'beams': s.run([*dense(beams), scores])}
    # A recurrence of 14 frames, trained: rounding of each step comes back in the next.
    check(program, rtol=1e-3, atol=1e-4)


def test_ctc_of_later_versions(check):
    """ctc_loss_v2 with dense labels, on features of the older ops."""
    def program(s, form):
        logits, lengths, labels = network(form, lambda sounds: tf.stop_gradient(old_features(sounds)))
        loss = tf.nn.ctc_loss(tf.sparse.to_dense(labels), logits, [2, 1, 3], lengths, blank_index=3)
        losses = train(s, tf.reduce_mean(loss), 5, optimizer=tf1.train.AdamOptimizer(0.05))
        return {'losses': falls(losses, 1), 'each': s.run(loss), 'slopes': s.run(tf.gradients(loss, logits))}
    check(program, rtol=1e-3, atol=1e-4)
