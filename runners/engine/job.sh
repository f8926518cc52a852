#!/bin/bash -l
# What sbatch runs in a campaign's folder: job.sh PYTHON [MODULE...]
# A login shell, because that is where module systems define `module`. Nothing is filled in here: all data are arguments.

# A site or a user may have sbatch clear the environment; srun must not do so in turn.
export SLURM_EXPORT_ENV=ALL

python=$1
shift
if [ $# -gt 0 ]; then
  module load "$@" || { echo "falloff: cannot load the modules $*" >&2; exit 1; }
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || {
  echo "falloff: no Python 3.9 by the name of $python on $(hostname): set python in the testbed's description" >&2
  exit 1
}
# In place of this shell: its signals are the program's, and its exit code is the job's.
PYTHONPATH=$PWD/code exec "$python" -m runners.engine.job .
