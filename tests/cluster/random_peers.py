"""Two tasks live among peers that do as they like: right and wrong, by rule and by seed. Whatever they do, the tasks live, answer honest
clients, keep their memory to themselves, end what was cancelled, and leave nothing behind.

    tests/cluster/random_peers.py --seed 1 --seconds 600
    tests/cluster/random_peers.py --scene 17/flood:3,step:8      one scene again

A scene is a world and some actions at the same time, each with a seed of its own (peer_actions.py); what is judged is in
peer_world.py. One that fails is replayed with fewer actions, and the fewest that still fail are printed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]
os.environ.setdefault('GRPC_VERBOSITY', 'NONE')

import grpc  # noqa: E402

import peer_actions  # noqa: E402
import peer_lies  # noqa: E402
import peer_world  # noqa: E402

ACTIONS_A_SCENE = 6


class Action:
    """One of a peer, on a thread of its own. |result|: what it has to do is done; |stayed|: it has left."""

    def __init__(self, world, name):
        self.name, self.notes = name, []
        self.result, self.stayed = concurrent.futures.Future(), concurrent.futures.Future()
        self.world = world
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        kind = self.name.split(':')[0]
        chance = peer_lies.seeded(self.name)
        try:
            time.sleep(chance.choice([0, 0, 0.3]))
            parts = peer_actions.ACTIONS[kind](self.world, chance, self.notes.append)
            next(parts, None)
            self.result.set_result(None)
            self.world.leave.wait()
            next(parts, None)
        except Exception as e:  # pylint: disable=broad-except
            if not self.world.leave.is_set():
                self.world.fail(f'{self.name}: {type(e).__name__} {e}')
            if not self.result.done():
                self.result.set_result(None)
        self.stayed.set_result(None)


def play(scene):
    """Runs a scene. Returns (why it failed or None, what its actions say)."""
    world_seed, names = scene
    world = peer_world.World(world_seed)
    actions = []
    try:
        actions = [Action(world, name) for name in names]
        world.end(actions)
        failure = None
    except peer_world.Failure as e:
        failure = str(e)
    except (OSError, grpc.RpcError) as e:  # of a task that is gone, or does not answer at all
        time.sleep(0.3)  # the watcher knows better
        failure = world.failures[0] if world.failures else repr(e)
    finally:
        world.close()
    return failure, {action.name: action.notes for action in actions}


def draw(seed, kinds, count=ACTIONS_A_SCENE):
    chance = peer_lies.seeded('scene', seed)
    weights = [peer_actions.WEIGHTS.get(kind, 1) for kind in kinds]
    return seed, [f'{kind}:{chance.randrange(10 ** 6)}' for kind in chance.choices(kinds, weights, k=count)]


def shrink(scene, tries=12):
    """The shortest list of actions that still fails: one alone if there is one, else those that none can be left out of."""
    world_seed, names = scene
    for name in names if len(names) > 1 else []:
        tries -= 1
        if play((world_seed, [name]))[0]:
            return world_seed, [name]
    for name in list(names):
        rest = [other for other in names if other != name]
        if tries > 0 and rest:
            tries -= 1
            names = rest if play((world_seed, rest))[0] else names
    return world_seed, names


def text_of(scene):
    return f'{scene[0]}/{",".join(scene[1])}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--only', help='kinds of actions, separated by commas')
    parser.add_argument('--scene', help='one scene, as printed')
    parser.add_argument('--no-shrink', action='store_true')
    parser.add_argument('--verbose', action='store_true')
    args = parser.parse_args()
    kinds = args.only.split(',') if args.only else list(peer_actions.ACTIONS)
    began, count = time.monotonic(), 0
    while True:
        if args.scene:
            world_seed, names = args.scene.split('/')
            scene = int(world_seed), names.split(',')
        else:
            scene = draw(args.seed + count, kinds)
        start = time.monotonic()
        if args.verbose:
            print(text_of(scene), flush=True)
        failure, notes = play(scene)
        count += 1
        if args.verbose or args.scene:
            print(f'{time.monotonic() - start:6.1f} s  {text_of(scene)}', *(f'\n    {k}: {v}' for k, v in notes.items()), flush=True)
        if failure:
            print(f'after {time.monotonic() - began:.1f} s, scene {count}: {failure}', flush=True)
            if not args.no_shrink:
                scene = shrink(scene)
                failure, notes = play(scene)
                print(*(f'    {k}: {v}\n' for k, v in notes.items()), failure or '(not again)')
            print(f'random_peers.py --scene {text_of(scene)}')
            return 1
        if args.scene or time.monotonic() - began > args.seconds:
            print(f'{count} scenes in {time.monotonic() - began:.0f} s, no findings')
            return 0


if __name__ == '__main__':
    sys.exit(main())
