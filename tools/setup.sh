#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh: installs what Coopscope needs to be built and tested, where it is missing (Debian 12 or
# later), and finds Python interpreters that have PyTorch. Prints them on standard output, one a
# line: path, a tab, version. All else goes to standard error.
#
#   COOP_PYTHON=PATH     an interpreter with PyTorch to be used first
#   COOP_TORCH=newest    also the newest PyTorch of PyPI, kept in ~/.cache/coopscope/torch-newest
#                        (5 GB, some minutes the first time; remove the folder for a newer one)
set -eu

say () { printf '%s\n' "$*" >&2; }
die () { say "setup: $*"; exit 1; }

packages='gcc g++ libc6-dev pkg-config meson ninja-build gettext
  libglib2.0-dev libsqlite3-dev libcairo2-dev libgtk-4-dev libadwaita-1-dev
  python3 python3-dev python3-numpy python3-torch libopenblas0-pthread
  xvfb dbus-daemon at-spi2-core libglib2.0-bin adwaita-icon-theme librsvg2-common
  fonts-dejavu-core desktop-file-utils appstream shared-mime-info sqlite3'
[ "${COOP_TORCH:-}" = newest ] && packages="$packages python3-venv"

# Those of the arguments that dpkg does not have installed.
missing_packages () {
  for package do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' \
      || printf '%s ' "$package"
  done
}

install_packages () {
  missing=$(missing_packages $packages)
  [ -n "$missing" ] || return 0
  root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing, and there is no sudo; as root:
  apt-get install $missing"
    root=sudo
  fi
  say "setup: installing: $missing"
  apt="$root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -q -y
    -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold"
  $apt update >&2 || say "setup: apt-get update failed; going on with the lists that are there"
  $apt install --no-install-recommends $missing >&2 </dev/null \
    || die "apt-get could not install: $missing"
}

# Where there is no apt, nothing is installed: names everything that is missing, at once.
need_without_apt () {
  lacking=
  for tool in cc pkg-config meson ninja msgfmt glib-compile-resources; do
    command -v "$tool" >/dev/null || lacking="$lacking
  the program $tool"
  done
  if command -v pkg-config >/dev/null; then
    for module in 'glib-2.0 >= 2.74' 'sqlite3 >= 3.37' cairo 'gtk4 >= 4.8' 'libadwaita-1 >= 1.2'; do
      pkg-config --exists "$module" || lacking="$lacking
  the development files of $module"
    done
  fi
  for tool in Xvfb dbus-run-session gdbus; do
    command -v "$tool" >/dev/null || say "setup: $tool is missing: runs without a display will fail"
  done
  [ -z "$lacking" ] || die "there is no apt-get here, so please install:$lacking"
}

torch_of () {
  [ -x "$1" ] && "$1" -c 'import torch; print(torch.__version__)' 2>/dev/null
}

newest_torch () {
  venv=${XDG_CACHE_HOME:-${HOME:?}/.cache}/coopscope/torch-newest
  if ! torch_of "$venv/bin/python" >/dev/null; then
    say "setup: the newest PyTorch goes to $venv"
    mkdir -p "${venv%/*}"
    /usr/bin/python3 -m venv "$venv" >&2 || die "python3 -m venv failed"
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
      --retries 5 torch numpy >&2 || die "pip could not install torch"
  fi
  # What tests of `coop export` read its files with; they run where these are.
  if ! "$venv/bin/python" -c 'import perfetto, pyarrow, duckdb' 2>/dev/null; then
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
      --retries 5 perfetto pyarrow duckdb >&2 || say "setup: pip could not install perfetto, pyarrow and duckdb"
  fi
  printf '%s\n' "$venv/bin/python"
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  install_packages
else
  need_without_apt
fi

candidates="${COOP_PYTHON:-}
/usr/bin/python3
$(command -v python3 || true)"
if [ "${COOP_TORCH:-}" = newest ]; then
  newest=$(newest_torch)
  candidates="$candidates
$newest"
fi

found=
seen=:
IFS='
'
for python in $candidates; do
  case $seen in *":$python:"*) continue ;; esac
  seen="$seen$python:"
  version=$(torch_of "$python") || continue
  found=yes
  printf '%s\t%s\n' "$python" "$version"
done
[ -n "$found" ] || die "no Python with PyTorch was found; give one as COOP_PYTHON=/path/to/python"
