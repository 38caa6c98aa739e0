"""weir simulate against what can be reckoned: sums of waits, full links, and order statistics drawn by NumPy."""
import json

import numpy as np
import pytest


@pytest.fixture
def simulate(weir):
    def call(**options):
        return json.loads(weir('simulate', *(f'--{name}={value}' for name, value in options.items()), '--json').stdout)
    return call


NETWORK = {'latency': 100, 'request': 30, 'bandwidth': 8}  # 8 Gbit/s are 1 GB/s


def test_one_worker_waits_for_each_part(simulate):
    row, = simulate(workers=1, compute=5, fetch='100M', push='50M', apply=0.1, **NETWORK)
    mega = (1 << 20) / 1e9 * 1e3  # ms that a link carries a MiB
    transfers = 2 * 100 * mega + 2 * 50 * mega  # through two links each
    wait = 5 * 0.1 + 2 * 0.03 + 50 * mega * 0.1  # the fifth latency is the word that the next step has come
    assert row['median_ms'] == pytest.approx(5 + transfers + wait, rel=1e-6)
    assert row['p10_ms'] == row['p90_ms'] == pytest.approx(row['median_ms'])
    assert row['steps_per_second'] == pytest.approx(1e3 / row['median_ms'])


def test_servers_share_the_work(simulate):
    """With many workers a server's link is full, in both directions at once: a step takes as long as it carries everybody's part, and
    a little longer for the first worker to begin and the last to end."""
    own = 64 * (1 << 20) / 1e9 * 1e3
    for servers in (4, 16):
        row, = simulate(workers=200, ps=servers, fetch='64M', push='64M', **NETWORK)
        full = 200 * 64 * (1 << 20) / servers / 1e9 * 1e3
        assert full < row['median_ms'] < full + 2.5 * own


def test_processors_of_servers_queue(simulate):
    row, = simulate(workers=50, bandwidth=0, latency=0, request=100)
    assert row['median_ms'] == pytest.approx(50 * 0.1 * 2, rel=0.02)


def test_cores_are_shared(simulate):
    """Eight computations on two cores take four times one's time."""
    row, = simulate(workers=8, cores=2, compute=100, latency=0, request=0, bandwidth=0)
    assert row['median_ms'] == pytest.approx(400, rel=1e-6)


def test_asynchronous_workers_do_not_wait(weir):
    options = ('--async', '--workers=1,8', '--compute=20', '--spread=0.3', '--latency=0', '--request=0', '--steps=4000', '--json')
    one, eight = json.loads(weir('simulate', *options).stdout)
    assert one['median_ms'] == pytest.approx(20, rel=0.03) and eight['median_ms'] == pytest.approx(20, rel=0.03)
    mean = 20 * np.exp(0.3 ** 2 / 2)
    assert one['steps_per_second'] == pytest.approx(1e3 / mean, rel=0.03)
    assert eight['steps_per_second'] == pytest.approx(8e3 / mean, rel=0.03)


@pytest.mark.parametrize('backups', [0, 3])
def test_backups_hide_the_slowest(simulate, backups):
    """All computations that a step begins anew are drawn together; it ends with the last that it takes. Who is late goes on with the
    newest step, so with backups a step begins a little before the model's."""
    row, = simulate(workers=20, backups=backups, compute=100, spread=0.2, slow='0.02:3', latency=0, request=0, bandwidth=0, steps=3000)
    rng = np.random.default_rng(1)
    times = 100 * np.exp(0.2 * rng.standard_normal((20000, 20 + backups))) * np.where(rng.random((20000, 20 + backups)) < 0.02, 3, 1)
    expected = np.sort(times, 1)[:, 19]
    if backups == 0:
        assert row['median_ms'] == pytest.approx(np.median(expected), rel=0.03)
        assert row['p90_ms'] == pytest.approx(np.quantile(expected, 0.9), rel=0.05) and row['dropped'] == 0
    else:
        assert row['median_ms'] == pytest.approx(np.median(expected), rel=0.1)
        assert 0 < row['dropped'] <= backups / (20 + backups) + 0.01


def test_a_seed_repeats(simulate):
    options = {'workers': '3,9', 'ps': 2, 'compute': 10, 'spread': 0.5, 'fetch': '1M', 'push': '1M'}
    assert simulate(**options) == simulate(**options) != simulate(**options, seed=2)


@pytest.mark.parametrize('option', ['--workers=0', '--workers=1,,2', '--workers=', '--workers=1e3', '--ps=0', '--fetch=-1', '--fetch=1Q',
                                    '--compute=nan', '--compute=-1', '--spread=6', '--slow=0.5', '--slow=2:1', '--latency=x',
                                    '--bandwidth=inf', '--steps=0', '--cores=-1', '--seed=-1', '--backups=-1'])
def test_wrong_options_are_named(weir, option):
    result = weir('simulate', option, check=False)
    assert result.returncode == 2 and option.split('=')[0] in result.stderr and 'not a valid value' in result.stderr


def test_what_does_not_go_together(weir):
    result = weir('simulate', '--async', '--backups=1', check=False)
    assert result.returncode == 2 and '--backups' in result.stderr
    result = weir('simulate', '--workers=100000', '--ps=100000', check=False)
    assert result.returncode == 2 and 'too many' in result.stderr
