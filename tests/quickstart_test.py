"""docs/quickstart.md does what it says: its files are written, its commands run in their order, what it shows is what they print."""
import os
import re
import subprocess

import pytest

import conftest
import ports

DOCUMENT = (conftest.ROOT / 'docs' / 'quickstart.md').read_text()
PARTS = re.split(r'^```(\w+)\n(.*?)^```\n', DOCUMENT, flags=re.M | re.S)
BLOCKS = list(zip(PARTS[0::3], PARTS[1::3], PARTS[2::3]))  # what stands before it, its language, what is in it
INSTALL = 'make install PREFIX=$HOME/weir\n'


def files():
    """The programs that the reader is told to save, by their names."""
    return {re.search(r'[Ss]ave (?:this|it) as `([\w.]+)`', before)[1]: text for before, language, text in BLOCKS if language in ('python', 'c')}


@pytest.fixture(scope='module')
def printed(tmp_path_factory):
    """What each block of commands printed, all of them run by one shell after `make install`."""
    home = tmp_path_factory.mktemp('home')
    subprocess.run(['cmake', '--install', conftest.BUILD, '--prefix', home / 'weir'], check=True, capture_output=True)
    (home / 'try').mkdir()
    for name, text in files().items():
        (home / 'try' / name).write_text(text)
    blocks = [text for _, language, text in BLOCKS if language == 'sh']
    assert blocks[0].startswith(INSTALL)
    script = 'cd try\nset -e\n' + 'echo; echo ----\n'.join(block.replace(INSTALL, '') for block in blocks)
    for port, free in zip(('8500', '8501'), ports.free_ports(2)):
        script = script.replace(port, str(free))
    done = subprocess.run(['bash', '-c', script], cwd=home, capture_output=True, text=True, check=False,
                          env={**os.environ, 'HOME': str(home), 'TF_CPP_MIN_LOG_LEVEL': '3', 'CUDA_VISIBLE_DEVICES': ''})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split('----\n')


NUMBER = re.compile(r'-?\d+\.?\d*(?:e-?\d+)?')


def same(word, other):
    """Numbers are those of a fit: known to two places."""
    if NUMBER.fullmatch(word) and NUMBER.fullmatch(other):
        return abs(float(word) - float(other)) < .01
    return word == other


def contains(text, part):
    text, part = (re.findall(r'[\[\](){}]|[^\s\[\](){}]+', words) for words in (text, part))
    return any(all(map(same, text[i:], part)) for i in range(len(text) - len(part) + 1))


def test_make_install_is_what_is_tested():
    done = subprocess.run(['make', '-n', 'install', 'PREFIX=/there'], cwd=conftest.ROOT, capture_output=True, text=True, check=True)
    assert 'cmake --install build/release --prefix /there\n' in done.stdout


def test_commands_print_what_the_document_shows(printed):
    number = -1
    for _, language, text in BLOCKS:
        number += language == 'sh'
        if language == 'text':
            assert contains(printed[number], text), printed[number]


def test_the_program_is_the_example():
    source = (conftest.ROOT / 'examples' / 'saved_model.c').read_text()
    assert files()['saved_model.c'] == source.split('\n', 1)[1]


def test_it_is_linked():
    assert '(docs/quickstart.md)' in (conftest.ROOT / 'README.md').read_text()
