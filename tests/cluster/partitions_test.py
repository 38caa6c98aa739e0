"""Variables in parts on two parameter servers: rows, or logits, cross, and the losses are those of one process."""
import numpy as np
import pytest

import clusters
from partitions_test import same_checkpoints, weir


@pytest.mark.parametrize('loss', ['sampled_softmax', 'nce_on_parts', 'softmax'])
def test_parameter_servers(cluster, tmp_path, loss):
    """Each server writes its slices; TensorFlow reads them as the whole, and a process reads them in other parts."""
    want = weir(3, 'div', loss, 'adagrad', save=tmp_path / 'want')
    got = weir(3, 'div', loss, 'adagrad', save=tmp_path / 'got', target=cluster.target)
    np.testing.assert_allclose(got, want, 1e-5)
    same_checkpoints(tmp_path / 'got', tmp_path / 'want')
    assert len(list(tmp_path.glob('got.data-*'))) == 2
    after = [weir(parts, 'div', loss, 'adagrad', load=tmp_path / start) for parts, start in ((2, 'got'), (3, 'want'))]
    np.testing.assert_allclose(*after, 1e-5)


def test_in_files(cluster, tmp_path):
    """Each server maps the files of its parts, and writes its updates there."""
    (tmp_path / 'here').mkdir(), (tmp_path / 'there').mkdir()
    want = weir(f'files:{tmp_path}/here/table', 'mod', 'sampled_softmax_on_parts', 'momentum')
    got = weir(f'files:{tmp_path}/there/table', 'mod', 'sampled_softmax_on_parts', 'momentum', target=cluster.target)
    np.testing.assert_allclose(got, want, 1e-5)
    files = sorted(path.name for path in (tmp_path / 'here').iterdir())
    assert files == [f'table.part_{i}{slot}' for i in range(3) for slot in ('', '.Momentum')]
    for name in files:
        a, b = (np.fromfile(tmp_path / folder / name, np.float32) for folder in ('here', 'there'))
        assert a.any()
        np.testing.assert_allclose(a, b, 1e-5, 1e-7)


def test_files_below_the_roots(tmp_path):
    """A server that may use one folder maps no file of another, and makes none."""
    (tmp_path / 'mine').mkdir(), (tmp_path / 'other').mkdir()
    cluster = clusters.Cluster({'ps': 2, 'worker': 1}, f'--file-roots={tmp_path}/mine')
    try:
        with pytest.raises(AssertionError, match='PERMISSION_DENIED'):
            weir(f'files:{tmp_path}/other/table', 'div', 'nce', 'sgd', target=cluster.target)
        assert not list((tmp_path / 'other').iterdir())
        weir(f'files:{tmp_path}/mine/table', 'div', 'nce', 'sgd', target=cluster.target)
        assert len(list((tmp_path / 'mine').iterdir())) == 3
    finally:
        cluster.stop()
