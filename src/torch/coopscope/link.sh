#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# link.sh FOLDER BASE FILE...: puts links to the files under FOLDER, at their paths below BASE, so
# that the package is whole in the build tree and edits to it need no build.
set -eu
folder=$1 base=$2
shift 2
for file do
  name=${file#"$base"/}
  mkdir -p "$folder/$(dirname "$name")"
  ln -sfn "$file" "$folder/$name"
done
