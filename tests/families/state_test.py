"""State of every kind in one program that trains: staging areas, critical sections, session handles, tables, maps, generators."""
import threading

from tensorflow.python.ops import data_flow_ops

from clusters import tf, tf1, unique
from compare import error_of, falls, variables


def generator():
    made = tf.random.Generator.from_seed(3, alg='philox')
    return made, made.state.initializer


def batch_of(draws):
    """Inputs of a known line; the generator moves on with each step."""
    x = draws.normal([8, 2])
    with tf.control_dependencies([x]):
        noise = draws.uniform([8], -0.01, 0.01)
    return x, x[:, 0] * 2. - x[:, 1] + noise


def test_pipeline_of_stages(check):
    """A batch is drawn and staged in the step in which the one before it is trained on."""
    def program(s, form):
        draws, start = generator()
        x, y = batch_of(draws)
        with tf.device(form.device):
            area = data_flow_ops.StagingArea([tf.float32, tf.float32], [[8, 2], [8]], capacity=2, shared_name=unique())
            put, (staged_x, staged_y), waiting, clear = area.put([x, y]), area.get(), area.size(), area.clear()
        w = variables(w=[2, 1])['w']
        seen = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1., -1, -2, name=unique(), initial_num_buckets=8)
        step = tf1.train.get_or_create_global_step()
        loss = form.function(lambda x, y, w: tf.reduce_mean((tf.reshape(x @ w, [-1]) - y)**2))(staged_x, staged_y, w.read_value())
        section = tf.CriticalSection(shared_name=unique())
        best = tf1.get_variable('best', initializer=1e9, use_resource=True)
        with tf.control_dependencies([loss]):
            least = section.execute(lambda: best.assign(tf.minimum(best.read_value(), loss), read_value=True))
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        with tf.control_dependencies([train]):
            note = seen.insert(step.read_value(), loss)
        s.run([tf1.global_variables_initializer(), start])
        s.run(put)
        losses = [s.run([loss, least, note, put])[0] for _ in range(8)]
        out = {'losses': falls(losses), 'best': s.run(best), 'table': s.run(seen.lookup(tf.range(10, dtype=tf.int64))),
               'waiting': s.run(waiting), 'state': s.run(draws.state)}
        s.run(clear)
        out['empty'] = s.run(waiting)
        return out
    check(program)


def test_maps_and_handles(check):
    """Staged under keys, taken out of order; tensors that stay with the session; TensorMaps in a loop."""
    def program(s, form):
        key = tf1.placeholder(tf.int64, [])
        pair = tf.cast(tf.stack([key, key * key]), tf.float32)
        with tf.device(form.device):
            area = data_flow_ops.MapStagingArea([tf.float32], [[2]], ordered=True, shared_name=unique())
            put, peeked, taken, first, size = area.put(key, [pair], [0]), area.peek(key), area.get(key), area.get(), area.size()
        for k in (5, 3, 9):
            s.run(put, {key: k})
        out = {'peeked': s.run(peeked, {key: 9}), 'taken': s.run(taken, {key: 5}), 'first': s.run(first), 'size': s.run(size)}

        kept = s.run(tf1.get_session_handle(tf.constant([1., 2.]) * 3.))
        holder, value = tf1.get_session_tensor(kept.handle, tf.float32)
        again = tf1.get_session_handle(value + 1.)
        for _ in range(3):
            kept = s.run(again, {holder: kept.handle})
        out['kept'] = s.run(value, {holder: kept.handle})
        holder_of_end, end = tf1.delete_session_tensor(kept.handle)
        s.run(end, {holder_of_end: kept.handle})
        out['deleted'] = error_of(s.run, value, {holder: kept.handle})
        kept._auto_gc_enabled = False

        def count(words):
            raw = tf.raw_ops
            def body(i, m):
                word = words[i]
                known = raw.TensorMapHasKey(input_handle=m, key=word)
                had = tf.cond(known, lambda: raw.TensorMapLookup(input_handle=m, key=word, value_dtype=tf.int32), lambda: 0)
                return i + 1, raw.TensorMapInsert(input_handle=m, key=word, value=had + 1)
            _, m = tf.while_loop(lambda i, m: i < tf.size(words), body, [tf.constant(0), raw.EmptyTensorMap()])
            erased = raw.TensorMapErase(input_handle=m, key=words[0], value_dtype=tf.int32)
            return (raw.TensorMapSize(input_handle=m), raw.TensorMapSize(input_handle=erased),
                    raw.TensorMapLookup(input_handle=m, key=words[1], value_dtype=tf.int32))
        out['counts'] = s.run(form.function(count)(tf.constant(['a', 'b', 'a', 'b', 'b', 'c'])))
        return out
    check(program)


def test_mutex(check):
    """Many steps at once add one, each after a look that takes its time: none is lost."""
    def program(s, form):
        total = tf1.get_variable('total', initializer=0, use_resource=True)
        with tf.device(form.device):
            lock = tf.raw_ops.MutexLock(mutex=tf.raw_ops.MutexV2(shared_name=unique()))
        with tf.control_dependencies([lock]):
            seen = total.read_value()
        with tf.control_dependencies([seen]):
            sorted_draws = tf.sort(tf.random.uniform([3000]))
        with tf.control_dependencies([total.assign(seen + 1 + tf.cast(sorted_draws[0], tf.int32))]), tf.device(form.device):
            add = tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)
        s.run(total.initializer)
        threads = [threading.Thread(target=lambda: [s.run(add) for _ in range(5)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return s.run(total)
    check(program)


def test_generators(check):
    """Stateful and stateless draws are the same numbers; a generator skips, splits, and is set back."""
    def program(s, form):
        draws, start = generator()
        s.run(start)
        takes = {'uniform': draws.uniform([3, 5]), 'normal': draws.normal([7]), 'truncated': draws.truncated_normal([4]),
                 'whole': draws.uniform([6], 0, 100, tf.int32), 'full': draws.uniform_full_int([3], tf.int64),
                 'binomial': draws.binomial([5], 20., 0.3)}
        out = {name: [s.run(t) for _ in range(2)] for name, t in takes.items()}
        s.run(start)
        out['again'] = s.run(takes['normal'])
        s.run(tf.raw_ops.RngSkip(resource=draws.state.handle, algorithm=tf.constant(1, tf.int64), delta=tf.constant(100, tf.int64)))
        out['skipped'] = s.run(takes['normal'])
        out['keys'] = s.run(draws.make_seeds(2))
        seed = tf.constant([1, 2])
        out['stateless'] = s.run(form.function(lambda: (
            tf.random.stateless_normal([5], seed), tf.random.stateless_categorical([[0.1, 0.9, 0.3]], 9, seed),
            tf.random.experimental.stateless_shuffle(tf.range(20), seed), tf.random.stateless_gamma([4], seed, 0.7),
            tf.random.stateless_poisson([4], seed, 3., tf.int32), tf.random.split(seed, 3), tf.random.fold_in(seed, 9)))())
        return out
    check(program)
