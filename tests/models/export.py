"""Writes training graphs of models.py as binary GraphDefs, MODEL-OPTIMIZER.pb, and prints the nodes of each.

usage: export.py [--layers=DEVICES] FOLDER [MODEL-OPTIMIZER ...]

With --layers the layers of a model are on these devices in turn, separated by commas, in MODEL-OPTIMIZER-layers.pb, and
MODEL-OPTIMIZER.pb is the same without devices: TensorFlow's client adds up gradients device by device, so it is another graph.
"""
import argparse
import pathlib

import models

NAMES = [f'{model}-{optimizer}' for model in models.MODELS for optimizer in models.OPTIMIZERS]

if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--layers')
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or NAMES:
        graph = models.build(*name.split('-'), devices=options.layers and options.layers.split(','))
        if options.layers:
            (options.folder / f'{name}-layers.pb').write_bytes(graph.SerializeToString(deterministic=True))
            for node in graph.node:
                node.device = ''
        (options.folder / f'{name}.pb').write_bytes(graph.SerializeToString(deterministic=True))
        print(name, len(graph.node), len(graph.library.function))
