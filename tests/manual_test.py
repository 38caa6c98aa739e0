"""The manual page and the completion know every verb and option that the command's help prints."""
import re
import subprocess

import pytest

import conftest

OPTION = r'(--[a-z][a-z0-9-]*)'


def printed(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def of_weir(*args):
    return printed(conftest.BUILD / 'cli' / 'weir', *args)


VERBS = re.findall(r'^  (\w+) ', of_weir('--help'), re.M)


def options(text):
    """Those of a help text: in lines on usage, where they are explained, in brackets. A text may name others', too."""
    found = set()
    for line in text.splitlines():
        if re.match(r'usage: |       weir ', line):
            found |= set(re.findall(rf'(?<![\w-]){OPTION}', line))
        elif line.startswith('  --'):
            found |= set(re.findall(rf'(?:^|\s|\[){OPTION}', re.split(r'(?<=\S)  ', line)[0]))
        else:
            found |= set(re.findall(rf'\[{OPTION}', line))
    return found


@pytest.fixture(scope='module')
def manual():
    """The sections of the page by their names, as plain text."""
    text = re.sub('.\b', '', printed('mandoc', '-T', 'ascii', conftest.ROOT / 'docs' / 'weir.1'))
    parts = re.split(r'^ {0,3}(\w.*)\n', text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture(scope='module')
def completed():
    """What bash completes: words by verb."""
    script = of_weir('completion', 'bash')
    rows = re.findall(r'^    (\w+)\) words="(.*?)"', script, re.M)
    return {verb: {word.rstrip('=') for word in words.split()} for verb, words in rows}


def test_help_is_understood():
    assert {'show', 'serve', 'server', 'completion'} <= set(VERBS)
    assert options(of_weir('show', '--help')) == {'--json', '--nodes', '--text'}
    assert {'--model', '--tls-mutual', '--max-body-size'} <= options(of_weir('serve', '--help'))


@pytest.mark.parametrize('verb', VERBS)
def test_options(manual, completed, verb):
    known = manual[verb] + manual['DESCRIPTION']
    missing = {option for option in options(of_weir(verb, '--help')) if not re.search(rf'(?<![\w-]){option}(?![\w-])', known)}
    assert not missing, 'of docs/weir.1'
    assert not options(of_weir(verb, '--help')) - completed[verb], 'of weir completion'


def test_verbs(manual, completed):
    assert set(completed) == set(VERBS)
    for verb in VERBS:
        assert re.search(rf'^\s+weir {verb}\b', manual['SYNOPSIS'], re.M), verb
