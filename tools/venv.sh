#!/usr/bin/env bash
# Make or adopt a virtual environment and install Tilewright into it, editable.
#   tools/venv.sh DIRECTORY base|dev
# base: what `make demo` needs. dev: also the tools, NVRTC (it compiles without a GPU) and, if it is to be had, CPU PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1 kind=$2
python=${PYTHON:-python3}
torch="torch==2.13.0+cpu" # the local version keeps pip away from the CUDA build, which is gigabytes

die() {
  echo "set-up: $*" >&2
  exit 1
}

have_a_gpu() { [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; }

make_venv() {
  command -v "$python" >/dev/null || die "there is no $python; install Python 3.11 or later, or say: make PYTHON=/path/to/python3"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$("$python" --version) is too old; Tilewright needs 3.11 or later: make PYTHON=/path/to/python3.11"
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian splits ensurepip from python3.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      echo "set-up: installing python3-venv"
      apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null ||
        die "apt-get could not install python3-venv"
    else
      die "this Python cannot make virtual environments; as root: apt-get install python3-venv"
    fi
  fi
  echo "set-up: making $venv"
  "$python" -m venv "$venv"
}

# Without bytecode: Python makes that of the modules that are imported, which are the fewest.
install() { "$venv/bin/python" -m pip install -qq --no-compile --no-warn-conflicts --disable-pip-version-check "$@"; }

torch_is_there() { "$venv/bin/python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; }

install_cpu_torch() {
  echo "set-up: CPU PyTorch (optional: the tests that exchange tensors with it)"
  install "$torch" 2>/dev/null ||
    install --timeout 20 --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu "$torch" 2>/dev/null ||
    echo "set-up: no CPU PyTorch to be had here; its tests will be skipped"
}

[ -x "$venv/bin/python" ] || make_venv
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || die "$venv has no pip; remove it and try again"

case $kind in
base)
  extras=viz
  if have_a_gpu; then extras=viz,cuda; fi
  echo "set-up: installing tilewright[$extras]"
  install -e ".[$extras]"
  ;;
dev)
  install --upgrade pip 2>/dev/null || true # pip 23, which Python 3.11 brings, takes a third longer to choose a hundred packages
  echo "set-up: installing tilewright[dev,docs,viz,cuda]"
  # PyTorch's own files, most of what is unpacked, at the same time; then what it needs. A PyTorch that is there stays.
  torch_is_there || { install --no-deps "$torch" >/dev/null 2>&1 & early=$!; }
  "$venv/bin/python" -m compileall -q tilewright & # before two processes of tests do it, each for itself
  install -e ".[dev,docs,viz,cuda]"
  if [ -n "${early:-}" ]; then
    wait "$early" || true
    install_cpu_torch
  fi
  ;;
*) die "unknown kind '$kind'" ;;
esac
