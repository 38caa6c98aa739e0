"""docs/compat.md is what tools/compat_table.py writes for this build."""
import subprocess
import sys

from conftest import BUILD, ROOT


def test_compat_table_is_current():
    out = subprocess.run([sys.executable, ROOT / 'tools' / 'compat_table.py', BUILD / 'cli' / 'weir'],
                         check=True, capture_output=True, text=True).stdout
    current = (ROOT / 'docs' / 'compat.md').read_text()
    assert out == current, 'run: python3 tools/compat_table.py build/dev/cli/weir > docs/compat.md'
