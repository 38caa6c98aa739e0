"""The directory of checkpoints as a disk of its own, which can be full, and checkpoints that are damaged where they lie."""
import contextlib
import os
import pathlib
import re
import subprocess
import tempfile

SIZE = '8m'  # the checkpoints that are kept at one time need a tenth of it
BALLAST = 'ballast'


class Disk:
    """A file system in memory over |directory|, as long as it is used."""

    def __init__(self, directory):
        self.directory = directory

    def __enter__(self):
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={SIZE}', 'weir_chaos', self.directory], check=True, capture_output=True)
        return self

    def __exit__(self, *_):
        subprocess.run(['umount', '-l', self.directory], check=True)


def can_be_full():
    """Only who may mount file systems has one."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            with Disk(directory):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def fill(directory):
    """Takes all that is left, and what others free while this goes on."""
    with open(pathlib.Path(directory, BALLAST), 'ab', buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def free(directory):
    pathlib.Path(directory, BALLAST).unlink()


# ---- checkpoints ----

def listed(directory):
    """The steps of the checkpoints that the state file names, newest first."""
    state = pathlib.Path(directory, 'checkpoint')
    text = state.read_text() if state.exists() else ''
    latest = re.findall(r'^model_checkpoint_path: ".*-([0-9]+)"$', text, re.M)
    return [int(step) for step in latest + re.findall(r'^all_model_checkpoint_paths: ".*-([0-9]+)"$', text, re.M)[::-1]]


def index_of(directory, step):
    return pathlib.Path(directory, f'model.ckpt-{step}.index')


def version(directory, step):
    """Tells a checkpoint from one that was written later under its name; None: there is none."""
    try:
        return index_of(directory, step).stat().st_ino
    except FileNotFoundError:
        return None


def damage(directory, step, how):
    """Cuts, changes or removes what there is of a checkpoint; whether there was anything."""
    parts = sorted(pathlib.Path(directory).glob(f'model.ckpt-{step}.data-*'))
    index = index_of(directory, step)
    try:
        part = parts[how % len(parts)] if parts else index
        size = part.stat().st_size
        if how % 4 == 0:
            os.truncate(part, size // 2)
        elif how % 4 == 1:
            with open(part, 'r+b') as file:
                file.seek(size // 2)
                byte = file.read(1)
                file.seek(size // 2)
                file.write(bytes([byte[0] ^ 0x40]))
        elif how % 4 == 2:
            os.truncate(index, index.stat().st_size // 2)
        else:
            part.unlink()
    except FileNotFoundError:  # the chief has removed it meanwhile
        return False
    return True
