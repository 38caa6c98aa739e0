"""Writes training graphs of models.py as binary GraphDefs, MODEL-OPTIMIZER.pb, and prints the nodes of each.

usage: export.py FOLDER [MODEL-OPTIMIZER ...]
"""
import pathlib
import sys

import models

NAMES = [f'{model}-{optimizer}' for model in models.MODELS for optimizer in models.OPTIMIZERS]

if __name__ == '__main__':
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NAMES:
        graph = models.build(*name.split('-'))
        (folder / f'{name}.pb').write_bytes(graph.SerializeToString(deterministic=True))
        print(name, len(graph.node), len(graph.library.function))
