#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sweep as a Slurm array: each task plays its share of the runs into a file of its own, and what is there already
# is not played again, so a task that was killed or requeued goes on where it was.
#
#   job=$(sbatch --parsable --array=1-16 tools/slurm/sweep.sh OUT --evictors coop,dtr-eq data/programs/*.gz)
#   sbatch --dependency=afterok:$job --wrap 'coop merge OUT/shard-*.db -o OUT/all.db'
#
# OUT is a folder that all nodes see. The rest are `coop sweep`'s own options and programs. COOP names the program
# where it is not on PATH. The array must begin at 1; give the same number of tasks again to go on.
#SBATCH --job-name=coop-sweep
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=02:00:00
#SBATCH --requeue
set -eu
if [ $# -lt 2 ] || [ -z "${SLURM_ARRAY_TASK_ID:-}" ] || [ "${SLURM_ARRAY_TASK_MIN:-1}" != 1 ]; then
  echo "usage: sbatch --array=1-N sweep.sh OUT [coop sweep's options] FILE..." >&2
  exit 2
fi
out=$1
shift
mkdir -p "$out"
exec "${COOP:-coop}" sweep -q -j "${SLURM_CPUS_PER_TASK:-1}" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" -o "$out/shard-$SLURM_ARRAY_TASK_ID.db" "$@"
