#!/bin/sh
# local.sh — A cluster of processes on this machine: N parameter servers and M workers, until Ctrl-C.
#
#   examples/cluster/local.sh [PS [WORKERS [FIRST_PORT]]]      (default 1 2 2222)
#
# WEIR names the command (default: weir). Prints the targets for clients: tf.compat.v1.Session("grpc://127.0.0.1:2223").
set -eu
ps_count=${1:-1}
worker_count=${2:-2}
port=${3:-2222}
weir=${WEIR:-weir}

# addresses JOB COUNT: "JOB|127.0.0.1:p;127.0.0.1:p+1;…"
addresses() {
  list=""
  i=0
  while [ "$i" -lt "$2" ]; do
    list="$list${list:+;}127.0.0.1:$port"
    port=$((port + 1))
    i=$((i + 1))
  done
  tasks="$1|$list"
}

addresses ps "$ps_count"
cluster=$tasks
addresses worker "$worker_count"
cluster="$cluster,$tasks"

pids=""
stop() {
  trap - INT TERM EXIT
  # shellcheck disable=SC2086
  kill $pids 2>/dev/null || true
  wait
}
trap stop INT TERM EXIT

start() {
  i=0
  while [ "$i" -lt "$2" ]; do
    "$weir" server --cluster="$cluster" --job="$1" --task="$i" &
    pids="$pids $!"
    i=$((i + 1))
  done
}
start ps "$ps_count"
start worker "$worker_count"
echo "cluster: $cluster"
wait
