# SPDX-License-Identifier: Apache-2.0
# build.sh: sourced by check.sh and demo.sh, with `top` set.

# Runs setup.sh. Sets `pythons`, the interpreters with PyTorch (path, tab, version a line), and
# `python`, the first of them.
coop_setup () {
  pythons=$(sh "$top/tools/setup.sh")
  python=$(printf '%s\n' "$pythons" | sed -n '1s/\t.*//p')
}

# coop_build FOLDER [OPTION...]: configures where needed, then compiles.
coop_build () {
  coop_folder=$1
  shift
  others=$(printf '%s\n' "$pythons" | sed '1d; s/\t.*//' | paste -sd, -)
  set -- -Dtorch=enabled "-Dpython=$python" "-Dtorch_pythons=$others" "$@"
  if [ -f "$coop_folder/build.ninja" ]; then
    coop_configured=$(cat "$coop_folder/coop-options" 2>/dev/null || true)
    [ "$coop_configured" = "$*" ] || meson configure "$coop_folder" "$@"
  else
    rm -rf "$coop_folder"/meson-*
    meson setup "$coop_folder" "$top" "$@"
  fi
  printf '%s\n' "$*" >"$coop_folder/coop-options"
  meson compile -C "$coop_folder"
}
