#!/usr/bin/env bash
# One node of Slurm, for a test: a munged, a slurmctld and a slurmd of this user, with a configuration of their own in
# FOLDER, whose path has no blank. Needs neither systemd nor control groups. Prints nothing when the node is there.
# Usage: one_node_slurm.sh start FOLDER [CORES], then SLURM_CONF=FOLDER/slurm.conf sbatch ...; one_node_slurm.sh stop FOLDER
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
action=$1 folder=$2 cores=${3:-2}
if [ "$action" = stop ]; then
    for name in slurmd slurmctld munged; do
        [ -s "$folder/$name.pid" ] || continue
        pid=$(cat "$folder/$name.pid")
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 50); do
            # Where nobody collects the dead, one stays as a zombie.
            if [ ! -r "/proc/$pid/stat" ] || grep -q ') Z ' "/proc/$pid/stat"; then break; fi
            sleep 0.1
        done
    done
    exit 0
fi
mkdir -p "$folder/state" "$folder/spool"
chmod 755 "$folder"
user=$(id -un)
host=$(hostname -s)
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,default_queue_depth=200
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MinJobAge=10
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$folder/slurm.conf
slurmctld
slurmd
for _ in $(seq 100); do
    if [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; then exit 0; fi
    sleep 0.2
done
echo "no node came up: $(sinfo 2>&1); $(tail -3 "$folder"/*.log)" >&2
exit 1
