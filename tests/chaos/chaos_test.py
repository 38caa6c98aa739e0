"""A short run of chaos.py: the same rounds each time, with each kind of fault in one of them."""
import subprocess
import sys
import time

import pytest

import chaos
import disk
import faults
from world import World

ROUNDS = {1: ('kill_ps', 'stop_worker', 'kill_program'), 2: ('kill_worker', 'end_program', 'kill_ps'), 3: ('stop_ps', 'kill_all', 'end_chief'),
          4: ('kill_chief', 'kill_host', 'stop_program'), 5: ('lose_chief', 'stop_program', 'kill_ps'), 6: ('cut_ps', 'slow_ps', 'cut_worker'), 7: ('hold_ps', 'hold_worker', 'kill_chief'),
          8: ('damage_checkpoint', 'skew_ps', 'skew_worker'), 9: ('fill_disk', 'damage_checkpoint', 'fill_disk')}
assert {kind for kinds in ROUNDS.values() for kind in kinds} == set(faults.KINDS)


@pytest.mark.parametrize('seed', ROUNDS)
def test_training_among_faults(seed):
    drawn = chaos.Round(seed, list(faults.KINDS), 3)
    drawn.meet([fault._replace(kind=kind, seconds=min(fault.seconds, 0.1)) for fault, kind in zip(drawn.faults, ROUNDS[seed])])
    if drawn.has_disk and not disk.can_be_full():
        pytest.skip('nobody but root may mount a file system')
    result = chaos.play(drawn)
    assert not result.failure, f'{drawn}: {result.failure}'


@pytest.mark.parametrize('wrong_by', [faults.SKEW, -faults.SKEW])
def test_clocks_are_wrong(tmp_path, wrong_by):
    world = World(tmp_path, ps=1, workers=1, steps=1, is_sync=False, clocks=tmp_path)
    world.set_clock('ps', 0, wrong_by)
    told = subprocess.run([sys.executable, '-c', 'import time; print(time.time())'], env=world.environment('ps', 0), capture_output=True,
                          check=True).stdout
    assert abs(float(told) - time.time() - wrong_by) < 60
