#!/bin/bash
# The process of a service, by the number in its file.
. /opt/bitnami/scripts/libos.sh

get_pid_from_file() { [[ -f ${1:?} ]] && head -n 1 "$1"; }
is_service_running() { kill -0 "${1:?}" 2> /dev/null; }

# stop_service_using_pid FILE [SIGNAL]
stop_service_using_pid() {
  local pid
  pid=$(get_pid_from_file "$1")
  [[ -n $pid ]] && is_service_running "$pid" || return 0
  kill "-${2:-TERM}" "$pid"
  retry_while "! is_service_running $pid" 30 1
}
