"""Sound: WAV files, spectrograms, mel-frequency cepstral coefficients."""
import struct

import numpy as np


def wav(audio, rate=8000):
    data = np.int16(np.clip(np.asarray(audio) * 32768, -32768, 32767)).tobytes()
    channels = np.shape(audio)[1]
    return (b'RIFF' + struct.pack('<I', 36 + len(data)) + b'WAVEfmt ' + struct.pack('<IHHIIHH', 16, 1, channels, rate, rate * channels * 2, channels * 2, 16)
            + b'data' + struct.pack('<I', len(data)) + data)


def chunk(name, data):
    return name + struct.pack('<I', len(data)) + data


def decode(check, rng):
    for frames, channels in ((6, 2), (1, 1), (0, 3), (100, 5)):
        file = wav(rng.uniform(-1.1, 1.1, (frames, channels)), int(rng.integers(1, 100000)))
        for attrs in ({}, {'desired_channels': 1}, {'desired_channels': 4}, {'desired_samples': 3}, {'desired_samples': 9, 'desired_channels': 3},
                      {'desired_samples': 0}, {'desired_channels': 0}):
            check('DecodeWav', [file], attrs, exact=True)
    file = wav([[0, 1], [0.5, -0.5], [-1, 0.25]])
    for attrs in ({'desired_channels': -2}, {'desired_samples': -2}):
        check('DecodeWav', [file], attrs)
    check('DecodeWav', [np.array([file], object)])
    for size in (0, 3, 10, 20, 30, 43, 44, 45, 50):
        check('DecodeWav', [file[:size]])

    def changed(at, kind, value):
        out = bytearray(file)
        struct.pack_into('<' + kind, out, at, value)
        return bytes(out)
    for at, kind, value in ((4, 'I', 5), (16, 'I', 17), (16, 'I', 18), (16, 'I', 4), (20, 'H', 3), (22, 'H', 0), (24, 'I', 2**31 + 5), (24, 'I', 0), (28, 'I', 9),
                            (32, 'H', 3), (34, 'H', 8), (34, 'H', 24), (40, 'I', 400), (40, 'I', 11), (40, 'I', 2**32 - 1), (40, 'I', 0), (40, 'I', 8)):
        check('DecodeWav', [changed(at, kind, value)])
    more = chunk(b'LIST', b'hello')
    for odd in (b'RIFX' + file[4:], file[:8] + b'WAVX' + file[12:], file[:12] + b'fmx ' + file[16:], file[:36] + b'LIST' + file[40:], file + b'xyz', file + more,
                file[:36] + more + file[36:], file[:36] + more + b'\0' + file[36:], file + file[36:], file[:12] + chunk(b'JUNK', b'abc') + file[12:],
                file[:12] + chunk(b'bext', b'') + chunk(b'axml', b'x' * 30) + file[12:], file[:12] + chunk(b'JUNK', b'')[:6] + b'\xff\xff',
                file[:16] + struct.pack('<I', 18) + file[20:36] + b'\0\0' + file[36:], file[:16] + struct.pack('<I', 18) + file[20:36] + b'\0',
                changed(24, 'I', 2**31 + 5)[:28] + struct.pack('<I', 20) + file[32:]):
        check('DecodeWav', [odd])


def encode(check, rng):
    specials = np.float32([[0, 1], [0.5, -0.5], [-1, 2], [-3, 3.0518e-5], [1 / 65536, 1e-6], [np.inf, -np.inf], [-1 / 65536, -3 / 65536]])
    rate = np.int32(44100)
    check('EncodeWav', [specials, rate])
    for shape in ((0, 2), (1, 1), (100, 3), (1, 256), (1, 40000), (3, 0), (5,), (1, 2, 3), (1, 65535), (1, 65536)):
        check('EncodeWav', [rng.uniform(-1.1, 1.1, shape).astype(np.float32), rate])
    for bad in (0, -5, [1], [1, 2], 2**31 - 1):
        check('EncodeWav', [specials, np.int32(bad)])


def spectra(check, rng):
    op = 'AudioSpectrogram'
    near = {'rtol': 1e-5, 'atol': 1e-6}
    for samples, channels, window, stride in ((6, 2, 4, 2), (6, 2, 3, 1), (10, 2, 10, 3), (5, 1, 5, 3), (10, 2, 2, 5), (10, 2, 11, 1), (0, 2, 4, 2), (10, 0, 4, 2),
                                              (800, 2, 480, 160), (3000, 1, 256, 100), (10, 2, 1 << 20, 3)):
        for squared in (False, True):
            check(op, [rng.standard_normal((samples, channels)).astype(np.float32)], {'window_size': window, 'stride': stride, 'magnitude_squared': squared}, **near)
    x = rng.standard_normal((10, 2)).astype(np.float32)
    check(op, [x], {'window_size': 1, 'stride': 2})
    check(op, [x], {'window_size': 4, 'stride': 0})
    check(op, [x[0]], {'window_size': 4, 'stride': 2})
    check(op, [x[None]], {'window_size': 4, 'stride': 2})


def coefficients(check, rng):
    op = 'Mfcc'
    near = {'rtol': 1e-5, 'atol': 1e-5}
    rate = np.int32(8000)
    for shape in ((1, 2, 9), (2, 3, 257), (1, 0, 9), (1, 2, 2), (0, 2, 9)):
        x = (rng.standard_normal(shape) ** 2).astype(np.float32)
        for attrs in ({}, {'filterbank_channel_count': 5, 'dct_coefficient_count': 3}, {'dct_coefficient_count': 40}, {'lower_frequency_limit': 0.0},
                      {'lower_frequency_limit': 1500.0, 'upper_frequency_limit': 2000.0}):
            for hertz in (8000, 16000, 48000):
                check(op, [x, np.int32(hertz)], attrs, **near)
    x = (rng.standard_normal((1, 2, 9)) ** 2).astype(np.float32)
    check(op, [-x, rate])
    check(op, [x * 0, rate], **near)
    for attrs in ({'upper_frequency_limit': 40000.0}, {'upper_frequency_limit': 1e30}, {'upper_frequency_limit': 10.0}, {'lower_frequency_limit': -1.0}, {'filterbank_channel_count': 0},
                  {'filterbank_channel_count': -3}, {'dct_coefficient_count': 0}, {'dct_coefficient_count': 50}):
        check(op, [x, rate], attrs)
    for bad in ([x[0], rate], [x, np.int32([8000])], [x, np.int32(0)], [x, np.int32(-1)], [x[:, :, :0], rate], [x[:, :, :1], rate]):
        check(op, bad)


def cases(check, rng):
    decode(check, rng)
    encode(check, rng)
    spectra(check, rng)
    coefficients(check, rng)
