#!/bin/sh
# Installs what Weir needs: "packages" for building and testing C, "python" for tests against the real TensorFlow and a real Slurm.
set -eu
cd "$(dirname "$0")/.."

# clang-format and clang-tidy of the version that tools/check.sh asks for.
PACKAGES="clang-format-14 clang-tidy-14 dpkg-dev gcc g++ git libc6-dev make cmake ninja-build gzip libopenblas0-pthread libcmocka-dev libnghttp2-dev mandoc libssl-dev libjpeg-dev libpng-dev libwebp7 libjxl0.7 libsqlite3-0 pkg-config"

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

is_installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'
}

install_packages() {
  missing=""
  for package in "$@"; do
    is_installed "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  echo "installing:$missing"
  as_root apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

case "${1:-}" in
  packages)
    # shellcheck disable=SC2086
    install_packages $PACKAGES
    ;;
  python)
    # openssl makes the certificates of tests/cluster/tls_test.py; tests/slurm_test.py starts a Slurm of its own; the commands of
    # docs/quickstart.md, which tests/quickstart_test.py runs, ask a server by curl; spin checks the models of tests/chaos,
    # whose etcd_test.py starts etcd;
    # tests/static_test.py builds with musl, and for the other of the two processors; tests/tensorboard_test.py looks at pages in
    # Chromium, which is a package on Debian alone; libucx0 is for tests/cluster/ucx_test.py.
    case "$(uname -m)" in
      x86_64) cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
      *) cross="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;;
    esac
    browser=""
    if grep -q "^ID=debian" /etc/os-release; then browser=chromium; fi
    # shellcheck disable=SC2086
    install_packages python3 python3-venv curl openssl slurm-wlm munge libucx0 spin etcd-server musl-tools qemu-user-static $cross $browser
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt
    ;;
  *)
    echo "usage: tools/setup.sh packages|python" >&2
    exit 2
    ;;
esac
