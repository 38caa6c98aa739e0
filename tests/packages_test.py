"""Debian packages are made of the build, unpacked beside the system, and programs are built with what is in them."""
import os
import pathlib
import re
import subprocess

import pytest

import conftest

VERSION = re.search(r'project\(weir VERSION (\S+)', (conftest.ROOT / 'CMakeLists.txt').read_text())[1]
PROGRAM = re.search(r'```c\n(#include <stdio.h>.*?)```', (conftest.ROOT / 'README.md').read_text(), re.S)[1]
PRINTS = 'y = 3.000 x + 2.000\n'


def out(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f'{command}: {done.stdout}{done.stderr}'
    return done.stdout


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    """The packages by their names."""
    place = tmp_path_factory.mktemp('packages')
    out('cpack', '--config', conftest.BUILD / 'CPackConfig.cmake', '-B', place)
    return {path.name.split('_')[0]: path for path in place.glob('*.deb')}


@pytest.fixture(scope='module')
def root(packages, tmp_path_factory):
    place = tmp_path_factory.mktemp('root')
    for path in packages.values():
        out('dpkg-deb', '-x', path, place)
    return place


@pytest.fixture(scope='module')
def libraries(root):
    """Where the library is, and an environment in which it is found there and nowhere else."""
    path, = root.glob('usr/lib/*/libweir.so.0')
    return path.parent, dict(os.environ, LD_LIBRARY_PATH=str(path.parent), PKG_CONFIG_LIBDIR=str(path.parent / 'pkgconfig'))


def field(path, name):
    return out('dpkg-deb', '-f', path, name).strip()


def test_what_the_packages_say(packages):
    assert {'weir', 'libweir0', 'libweir-dev'} <= set(packages)
    for path in packages.values():
        assert field(path, 'Version') == VERSION
    assert 'libtensorflow-weir' in packages or not list(conftest.BUILD.glob('libtensorflow.so*'))
    for name in {'libweir0', 'libtensorflow-weir'} & set(packages):
        assert 'libc6' in field(packages[name], 'Depends') and 'libssl' in field(packages[name], 'Depends')
        assert 'libweir0' not in field(packages[name], 'Depends')
        for library in ('libopenblas0', 'libwebp7', 'libjxl0.7', 'libsqlite3-0'):
            assert library in field(packages[name], 'Recommends')
    for name in {'weir', 'libweir-dev'}:
        assert f'libweir0 (= {VERSION})' in field(packages[name], 'Depends')
    # Nothing is missing here that they depend on: Weir was built with it.
    out('dpkg', '--no-act', '--install', *packages.values(), env=dict(os.environ, PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin"))


def test_what_is_in_them(packages, root):
    def files(name):
        found = [line.split()[5][1:] for line in out('dpkg-deb', '-c', packages[name]).splitlines()]
        return [re.sub(r'/lib/[^/]+/', '/lib/ARCH/', path) for path in found if not path.endswith('/')]
    assert files('weir') == ['/usr/bin/weir', '/usr/share/bash-completion/completions/weir', '/usr/share/doc/weir/copyright',
                             '/usr/share/man/man1/weir.1']
    assert files('libweir0') == ['/usr/lib/ARCH/libweir.so.0', f'/usr/lib/ARCH/libweir.so.{VERSION}', '/usr/share/doc/libweir0/copyright']
    development = files('libweir-dev')
    headers = {f'/usr/include/weir/{path.name}' for path in (conftest.ROOT / 'include' / 'weir').glob('*.h')} | {'/usr/include/weir/ops.h'}
    assert headers == {path for path in development if path.endswith('.h')}
    assert {'/usr/lib/ARCH/libweir.so', '/usr/lib/ARCH/pkgconfig/weir.pc', '/usr/lib/ARCH/cmake/weir/weirConfig.cmake',
            '/usr/share/man/man3/weir.3'} <= set(development)
    if 'libtensorflow-weir' in packages:
        assert {'/usr/lib/ARCH/libtensorflow.so.2', '/usr/lib/ARCH/libtensorflow_framework.so.2', '/usr/lib/ARCH/pkgconfig/tensorflow.pc',
                '/usr/lib/ARCH/libtensorflow.so', '/usr/include/tensorflow/c/c_api.h'} <= set(files('libtensorflow-weir'))
    for path in filter(pathlib.Path.is_file, root.rglob('*')):  # of no use to others
        assert str(conftest.ROOT).encode() not in path.read_bytes(), path


def test_the_command(root, libraries):
    environment = dict(libraries[1], PATH=f"{root / 'usr' / 'bin'}:{os.environ['PATH']}")
    assert out('weir', 'version', env=environment) == f'weir {VERSION}\n'
    script = f". {root}/usr/share/bash-completion/completions/weir; complete -p weir"
    assert out('bash', '-c', script, env=environment) == 'complete -o default -F _weir weir\n'


def test_manual_pages(root):
    for page in (root / 'usr' / 'share' / 'man').rglob('weir.?'):
        out('mandoc', '-T', 'lint', '-W', 'warning', page)
        assert '<h1' in out('mandoc', '-T', 'html', page)


@pytest.mark.parametrize('compiler', ['cc -std=c11', 'c++ -x c++ -std=c++20'])
def test_pkg_config(root, libraries, tmp_path, compiler):
    source = tmp_path / 'program.c'
    source.write_text(PROGRAM if compiler.startswith('cc') else '#include <weir/weir.h>\nint main() { return weir_version()[0] != \'0\'; }\n')
    flags = out('pkg-config', '--cflags', '--libs', 'weir', env=libraries[1]).split()
    out(*compiler.split(), '-o', tmp_path / 'program', source, *flags)
    assert out(tmp_path / 'program', env=libraries[1]) == (PRINTS if compiler.startswith('cc') else '')
    assert out('pkg-config', '--modversion', 'weir', env=libraries[1]).strip() == VERSION


def test_pkg_config_of_tensorflow(packages, libraries, tmp_path):
    if 'libtensorflow-weir' not in packages:
        pytest.skip('built without it')
    (tmp_path / 'program.c').write_text('#include <stdio.h>\n#include <tensorflow/c/c_api.h>\nint main(void) { return puts(TF_Version()) < 0; }\n')
    flags = out('pkg-config', '--cflags', '--libs', 'tensorflow', env=libraries[1]).split()
    out('cc', '-Wl,--no-as-needed', '-o', tmp_path / 'program', tmp_path / 'program.c', *flags)
    assert out(tmp_path / 'program', env=libraries[1]).startswith('2.')


def test_find_package(root, tmp_path):
    (tmp_path / 'program.c').write_text(PROGRAM)
    (tmp_path / 'CMakeLists.txt').write_text(f'''cmake_minimum_required(VERSION 3.22)
project(program C)
find_package(weir {VERSION.rsplit('.', 1)[0]} REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE weir::weir)
''')
    out('cmake', '-S', tmp_path, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={root}/usr')
    out('cmake', '--build', tmp_path / 'build')
    assert out(tmp_path / 'build' / 'program') == PRINTS
