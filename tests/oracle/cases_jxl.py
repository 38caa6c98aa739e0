"""Cases of DecodeJxl. libjxl wrote the files; without it Weir refuses them."""
import base64
import ctypes

import numpy as np

# Of 5 by 6 pixels with 1 to 4 channels of 8 bits, 3 of 16, three frames, turned, and in a container.
FILES = {
    'c1': '/wooAAiAoLgRCAIBAJAASxiLFVJMr97sqENxNPurGjWZ/lEhymfip80oetKkVV4voDsA',
    'c2': '/wooAAiARXEjCAgQAPQASxiLFVJc4m2MiqIZTK1RvWWa/tMKqZiQ3Kr4oMzMuDvzk84fFb0GTRtOBZcuEQOQRpRJsFz7LzxoOcjtDA==',
    'c3': '/wooAAiASAgCAQBgAUsYixVSXGU9pgpDle70841WHWBPAhah7UqZexmSperLqdRJJYsitwv8amstRlYZIjhmMMA8brES7GL00H8IpJJ0OKVLg+'
    '4eNEyEyksQ9x0kuLGZx+bXKAQ=',
    'c4': '/wooAAiAlQgIEACoAUsYixXE6IoDiOunyA39IzBmJvTGz6ua41hNsc4po2rFkTb88aKHDMphtD5MQqmEqNKDh+Si1tT1ro8YA6TTWTjXW8Xc8x'
    'cyE51CXcwaA8jKfhi53aHePmuCuiH+7rGlXJ0TFqvwDYM+qAE=',
    'w16': 'AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAAC/anhsY/8KKAAI4AcSCAIBAKQCSxiLFcI5aBcC7K9JdgAkfWZw9Z'
    'I+YwIOJnKwCp8HLHxpqBKpT6fw5Q/YR7TNCGK1w+3+WDCSulglP5AujAydmZtw16uNzAlFPc5FOvBW4JsPGniiGgYm8InUwbCjT/TypV4fddAP'
    'U4cz9jJMfe2Lwg9JDA8Ol3R9Zm3Yx6sVNXjEfRFGdKue83sUJv4HAG8GKz2c+WTf6WneIAPTqvQ7bmdGShEH8nWYTA==',
    'anim': '/wooAAgImgBATAgCAAAAVAFLGIsVUlxjPYYbLZHOt+MpdQBqlLyNGewTIU/bMKhCsZgDUAQzZT+1DHeF76Sz2Pj54RQ0K9z46icq9DHBmbKm+x'
    'Bdq11J4Q3rCXVrKbM9jvoRAiIACAIAAABgAUsYixVSXGY9pkUkA/pVV6HqAByslXED9DTC8TQrDxrErYijMfYFQKIHNPTruxcOnlzChizJu+RP'
    'y5aU4A01/FmRWOkvLWrH1MkNL6OKZFDj9hDJbFmgNAQIAgQAXAFLGIsVwgFsunYFOwCyKuL0hVJSvAhKzKLDlboAXohICAbUEoBcAa7yTSHwr3'
    'Dm8m7BAIsEL50ItENQLDikoAJNtKavZqgke4olBDLFPcMsXqRakbWcGgc=',
    'orient': '/wooAAhYICYIAgEAWAFLGIsVUlxjPUY6l1XiOFFWB1Apa5KOrnnEbNyilT7pQ7ZmUSKIThiBR3UCHHh7GdwKNcUHrfH/4q05g5YpYqC3ZqLy1m'
    'uNJcZGhvLLjwvCsAePzn5MEQ==',
    'cont': 'AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAABranhsY/8KKAAIgEgIAgEAWAFLGIsVUlxjPUY6l1XiOFFWB1Apa5KOrnnEbNyilT'
    '7pQ7ZmUSKIThiBR3UCHHh7GdwKNcUHrfH/4q05g5YpYqC3ZqLy1muNJcZGhvLLjwvCsAePzn5MEQ==',
}
VERSIONS = ('0.11', '0.10', '0.9', '0.8', '0.7')


def has_library():
    for version in VERSIONS:
        try:
            ctypes.CDLL('libjxl.so.' + version)
            return True
        except OSError:
            pass
    return False


def cases(check, rng):
    files = {name: base64.b64decode(text) for name, text in FILES.items()}
    options = {} if has_library() else {'weir_only_fails': True}
    channels = {'c1': 1, 'c2': 2, 'c4': 4}
    for name, data in files.items():
        for wanted in (0, 1, 3, 4):
            fits = wanted in (0, channels.get(name, 3))
            if fits:
                # Versions of the library round 16 bits to eight in different ways.
                check('DecodeJxl', [data], {'channels': wanted}, shapes_only=name == 'w16', **options)
            elif options == {}:
                check('DecodeJxl', [data], {'channels': wanted})
    for op in ('DecodeImage', 'DecodePng', 'DecodeJpeg', 'DecodeBmp'):
        check(op, [files['c3']], **options)
    check('DecodeAndCropJpeg', [files['c3'], np.int32([0, 0, 1, 1])], weir_only_fails=True)  # there it does not crop
    check('DecodeGif', [files['c3']], weir_only_fails=True)  # of three dimensions, where it said four
    check('DecodeWebP', [files['c3']], weir_only_fails=True)
    check('DecodeImage', [files['c3']], {'dtype': np.float32})
    check('DecodeJxl', [files['c3']], {'channels': 2})
    check('DecodeJxl', [files['c3']], {'channels': -1})
    check('DecodeJxl', [np.array([files['c3']], object)])
    check('DecodeJxl', [b''])
    check('DecodeJxl', [b'abc'])
    if options == {}:
        check('DecodeJxl', [files['c3'] + b'junk'])
        for size in (2, 5, 10, 30, len(files['c3']) - 1):
            check('DecodeJxl', [files['c3'][:size]])
        for _ in range(20):
            data = bytearray(files['c3'])
            data[int(rng.integers(2, len(data)))] ^= 1 << int(rng.integers(8))
            check('DecodeJxl', [bytes(data)], shapes_only=True, name='damaged')
