"""Builds the wheel: the package, what is generated of Weir's headers and ops, libweir.so, and the libraries that it needs.

Usage: weir_wheel.py --build build/release --out dist. It is also the build backend of pyproject.toml, so that `pip wheel python`
works; WEIR_BUILD then names the build folder. Needs Python 3.11 and its standard library.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GLIBC = re.compile(r'(libc|libm|libdl|libpthread|librt|ld-linux[\w-]*)\.so')


def libraries(library):
    """{soname: path} of what |library| needs beside the C library, by ldd."""
    lines = subprocess.run(['ldd', library], check=True, capture_output=True, text=True).stdout.splitlines()
    found = (re.match(r'\s*(\S+) => (/\S+)', line) for line in lines)
    return {m[1]: pathlib.Path(m[2]) for m in found if m and not GLIBC.match(m[1])}


def glibc(paths):
    """The newest version of the C library that any of |paths| asks for."""
    versions = [m for p in paths for m in re.findall(rb'GLIBC_2\.(\d+)\b', p.read_bytes())]
    return max(map(int, versions))


def stage(folder, build):
    """The package's folder as it is in the wheel; returns what is in it."""
    package = folder / 'weir'
    (package / 'lib').mkdir(parents=True)
    for path in sorted((HERE.parent / 'weir').iterdir()):
        if path.is_file():
            (package / path.name).write_bytes(path.read_bytes())
    library = (build / 'libweir.so').resolve()
    (package / 'lib' / 'libweir.so.0').write_bytes(library.read_bytes())
    for name, path in libraries(library).items():
        (package / 'lib' / name).write_bytes(path.read_bytes())
    subprocess.run([sys.executable, HERE / 'generate.py', ROOT / 'include' / 'weir', package], check=True)
    environment = {**os.environ, 'PYTHONPATH': str(folder), 'WEIR_LIBRARY': str(library), 'PYTHONDONTWRITEBYTECODE': '1'}
    subprocess.run([sys.executable, HERE / 'stubs.py', package / 'ops.pyi'], check=True, env=environment)
    return sorted(p for p in package.rglob('*') if p.is_file() and '__pycache__' not in p.parts)


def metadata(version):
    with open(HERE.parent / 'pyproject.toml', 'rb') as file:
        project = tomllib.load(file)['project']
    lines = ['Metadata-Version: 2.1', f'Name: {project["name"]}', f'Version: {version}', f'Summary: {project["description"]}',
             f'Requires-Python: {project["requires-python"]}', *(f'Requires-Dist: {d}' for d in project['dependencies']),
             'Description-Content-Type: text/markdown', '', (HERE.parent / 'README.md').read_text()]
    return '\n'.join(lines)


def record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    return f'{name},sha256={digest},{len(data)}\n'


def build(build_folder, out, level=6):
    """Writes the wheel into |out|; returns its name."""
    version = re.search(r'project\(weir VERSION ([\d.]+)', (ROOT / 'CMakeLists.txt').read_text())[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = stage(pathlib.Path(folder), pathlib.Path(build_folder))
        machine = platform.machine()
        tag = f'py3-none-manylinux_2_{glibc([p for p in paths if p.parent.name == "lib"])}_{machine}'
        info = f'weir-{version}.dist-info'
        files = {str(p.relative_to(folder)): p.read_bytes() for p in paths}
        files[f'{info}/METADATA'] = metadata(version).encode()
        files[f'{info}/WHEEL'] = f'Wheel-Version: 1.0\nGenerator: weir_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode()
        files[f'{info}/LICENSE'] = (ROOT / 'LICENSE').read_bytes()
        lines = ''.join(record(name, data) for name, data in files.items())
        files[f'{info}/RECORD'] = (lines + f'{info}/RECORD,,\n').encode()
        out = pathlib.Path(out)
        out.mkdir(parents=True, exist_ok=True)
        name = f'weir-{version}-{tag}.whl'
        with zipfile.ZipFile(out / name, 'w', zipfile.ZIP_DEFLATED, compresslevel=level) as wheel:
            for path, data in files.items():
                wheel.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, level)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    """What pip calls."""
    return build(os.environ.get('WEIR_BUILD', ROOT / 'build' / 'release'), wheel_directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=ROOT / 'build' / 'release', type=pathlib.Path)
    parser.add_argument('--out', default=ROOT / 'dist', type=pathlib.Path)
    parser.add_argument('--level', default=6, type=int, help='of compression')
    args = parser.parse_args()
    print(args.out / build(args.build, args.out, args.level))


if __name__ == '__main__':
    main()
