"""A short run of random_peers.py: the same scenes each time."""
import pytest

import random_peers
from peer_actions import ACTIONS


@pytest.mark.parametrize('seed', range(1, 7))
def test_servers_among_peers_that_do_as_they_like(seed):
    scene = random_peers.draw(seed, list(ACTIONS))
    failure, notes = random_peers.play(scene)
    assert not failure, f'{failure}\n{notes}\nrandom_peers.py --scene {random_peers.text_of(scene)}'
