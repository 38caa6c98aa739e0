"""Text: ragged words looked up in tables and embedded; normalised, matched, cut into n-grams, decoded and encoded."""
import numpy as np

from clusters import tf, tf1, unique
from compare import error_of, falls, train, variables

SENTENCES = np.array([b'the cat sat on the mat', b'a dog', b'', b'the dog saw a zebra on  the mat', b'mat cat'], object)
LABELS = np.float32([1, 0, 0, 1, 1])
WORDS = ['the', 'cat', 'dog', 'mat', 'on', 'a', 'sat']


def test_ragged_embedding(check):
    def program(s, form):
        text = tf1.placeholder(tf.string, [None])
        start = tf.lookup.KeyValueTensorInitializer(WORDS, np.arange(len(WORDS), dtype=np.int64))
        table = tf.lookup.StaticVocabularyTable(start, 3)
        v = variables(embedding=[len(WORDS) + 3, 6], out=[6, 1])
        words = tf.strings.split(text)
        ids = words.with_flat_values(table.lookup(words.flat_values))

        def classify(flat, splits, embedding, out):
            ids = tf.RaggedTensor.from_row_splits(flat, splits)
            rows = ids.with_flat_values(tf.gather(embedding, ids.flat_values))
            summed = tf.reduce_sum(rows, 1)
            best = tf.reduce_max(rows, 1)
            return (tf.tanh(summed) @ out)[:, 0], best, ids.to_tensor(-1), rows.to_tensor(), ids.row_lengths()
        logits, *seen = form.function(classify)(ids.flat_values, ids.row_splits, v['embedding'].read_value(), v['out'].read_value())
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=LABELS, logits=logits))
        losses = train(s, loss, 6, {text: SENTENCES}, tf1.train.GradientDescentOptimizer(0.5))
        return {'losses': falls(losses), 'seen': s.run([*seen, words.to_tensor(), table.size()], {text: SENTENCES})}
    check(program)


def test_mutable_vocabulary(check):
    """A vocabulary that grows while it is counted."""
    def program(s, _):
        counts = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, 0, '', '#', name=unique())
        back = tf.lookup.experimental.MutableHashTable(tf.int64, tf.string, '?', name=unique())
        text = tf1.placeholder(tf.string, [None])
        words, _, times = tf.unique_with_counts(tf.strings.split(text).flat_values, tf.int64)
        add = counts.insert(words, counts.lookup(words) + times)
        with tf.control_dependencies([add]):
            name = back.insert(counts.lookup(words), words)
        keys, values = (tf.reshape(t, [-1]) for t in counts.export())
        used = tf.where(tf.not_equal(keys, ''))[:, 0]
        keys, values = tf.gather(keys, used), tf.gather(values, used)
        for _ in range(2):
            s.run(name, {text: SENTENCES})
        found = dict(zip(*s.run([keys, values])))
        return {'keys': sorted(found), 'values': [found[k] for k in sorted(found)], 'sizes': s.run([counts.size(), back.size()]),
                'zebra': s.run(counts.lookup(tf.constant(['zebra', 'yak']))),
                'after': s.run([counts.erase(tf.constant(['the'])), back.lookup(tf.constant([99], tf.int64))])[1]}
    check(program)


def test_strings(check):
    """Lower case, regular expressions, n-grams, numbers, hashes: all are equal byte by byte."""
    def program(s, form):
        text = tf1.placeholder(tf.string, [None])

        def look(text):
            clean = tf.strings.regex_replace(tf.strings.lower(tf.strings.strip(text)), r'[^a-z\s]+|\bthe\b', ' ')
            words = tf.strings.split(tf.strings.regex_replace(clean, r'(\w)(\w*)', r'\2\1'))
            grams = tf.strings.ngrams(words, [1, 2], separator='_')
            sizes = tf.strings.length(text)
            letters = tf.strings.bytes_split(text)
            return {'clean': clean, 'matches': tf.strings.regex_full_match(text, '.*(cat|dog).*'), 'grams': grams.flat_values,
                    'splits': grams.row_splits, 'letters': tf.strings.reduce_join(letters, 1, separator='|'),
                    'pieces': tf.strings.substr(text, tf.zeros_like(sizes), tf.minimum(3, sizes)),
                    'hashes': tf.strings.to_hash_bucket_fast(words.flat_values, 1000),
                    'strong': tf.strings.to_hash_bucket_strong(words.flat_values, 1000, [7, 9]),
                    'joined': tf.strings.reduce_join(text, separator=';'), 'base64': tf.io.decode_base64(tf.io.encode_base64(text)),
                    'numbers': tf.strings.to_number(tf.strings.as_string(tf.constant([1.5, -2.25, 1e10]), precision=3)),
                    'format': tf.strings.format('{} of {}', (tf.constant([1, 2]), tf.constant('x'))),
                    'padded': tf.strings.ngrams(words, 3, pad_values=('<', '>')).to_tensor()}
        sentences = np.array([b'  The CAT, and the Dog!', b'cat', b'', b'1.5 the \xc3\xa9t\xc3\xa9'], object)
        return s.run(form.function(look)(text), {text: sentences})
    check(program)


def test_unicode(check):
    def program(s, form):
        text = tf1.placeholder(tf.string, [None])

        def look(text):
            points = tf.strings.unicode_decode(text, 'UTF-8')
            upper = points.with_flat_values(tf.where(points.flat_values < 128, points.flat_values & ~32, points.flat_values))
            characters, offsets = tf.strings.unicode_split_with_offsets(text, 'UTF-8')
            return {'points': points.to_tensor(), 'upper': tf.strings.unicode_encode(upper, 'UTF-8'), 'characters': characters.to_tensor(),
                    'offsets': offsets.to_tensor(), 'scripts': tf.strings.unicode_script(points.flat_values),
                    'lengths': tf.strings.length(text, unit='UTF8_CHAR'), 'pieces': tf.strings.substr(text, 1, 1, unit='UTF8_CHAR'),
                    'wide': tf.strings.unicode_transcode(text, 'UTF-8', 'UTF-16-BE'),
                    'back': tf.strings.unicode_transcode(tf.strings.unicode_transcode(text, 'UTF-8', 'UTF-32-BE'), 'UTF-32-BE', 'UTF-8'),
                    'low': tf.strings.lower(text, encoding='utf-8')}
        strict = tf.strings.unicode_decode(text, 'UTF-8', errors='strict').flat_values
        words = np.array(['Grüße'.encode(), 'привет'.encode(), '日本語'.encode(), b'ab', '😀!'.encode()], object)
        bad = np.array([b'a\xff\xc3', b'\xed\xa0\x80', b'ok'], object)
        made = form.function(look)(text)
        points = {k: made[k] for k in ('points', 'wide', 'back')}
        broken = form.function(lambda t: tf.strings.unicode_decode(t, 'UTF-8').to_tensor())(text)
        return {'good': s.run(made, {text: words}), 'points': s.run(points, {text: words}), 'bad': s.run(broken, {text: bad}),
                'error': error_of(s.run, strict, {text: bad}), 'strict': s.run(strict, {text: words})}
    check(program)
