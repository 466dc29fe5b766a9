#!/bin/bash
# Lines for the log, with the names that init scripts for Bitnami's images call.
# BITNAMI_DEBUG=true shows those of `debug`; BITNAMI_QUIET=1 hides all.

stderr_print() {
  case ${BITNAMI_QUIET:-} in 1 | true | yes) ;; *) printf '%b\n' "$*" >&2 ;; esac
}

log() { stderr_print "${MODULE:-kafka} $(date +%T) ==> $*"; }
info() { log "INFO  $*"; }
warn() { log "WARN  $*"; }
error() { log "ERROR $*"; }
debug() {
  case ${BITNAMI_DEBUG:-} in 1 | true | yes) log "DEBUG $*" ;; esac
}

# indent TEXT [COUNT]
indent() {
  local line
  while IFS= read -r line; do printf '%*s%s\n' "${2:-4}" '' "$line"; done <<< "$1"
}
