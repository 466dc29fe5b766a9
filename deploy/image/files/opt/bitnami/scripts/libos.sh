#!/bin/bash
# Users, processes, and trying again.
. /opt/bitnami/scripts/liblog.sh
. /opt/bitnami/scripts/libvalidations.sh

am_i_root() { [[ $(id -u) = 0 ]]; }
user_exists() { id "${1:?}" > /dev/null 2>&1; }
group_exists() { grep -q "^${1:?}:" /etc/group; }
# The users of this image are fixed: one that is missing is no reason to stop.
ensure_user_exists() { user_exists "$1" || warn "there is no user $1"; }
ensure_group_exists() { group_exists "$1" || warn "there is no group $1"; }
get_total_memory() { awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo; }
get_os_metadata() { sed -n "s/^${1#--}=//Ip" /etc/os-release | tr -d '"'; }

# retry_while COMMAND [TIMES] [SECONDS]: runs it until it ends with 0.
retry_while() {
  local command=${1:?} left=${2:-12} pause=${3:-5}
  until eval "$command"; do
    left=$((left - 1))
    ((left > 0)) || return 1
    sleep "$pause"
  done
}

debug_execute() {
  if is_boolean_yes "${BITNAMI_DEBUG:-}"; then "$@"; else "$@" > /dev/null 2>&1; fi
}

# run_as_user USER COMMAND...: as root it gives the rights up.
run_as_user() {
  local user=${1:?}
  shift
  if am_i_root; then su -s /bin/bash "$user" -c "$(printf '%q ' "$@")"; else "$@"; fi
}
exec_as_user() { run_as_user "$@"; exit; }

# generate_random_string [-t ascii|alphanumeric|numeric|alphabetic] [-c COUNT]
generate_random_string() {
  local kind=ascii count=32
  while (($# > 1)); do
    case $1 in -t | --type) kind=$2 ;; -c | --count) count=$2 ;; esac
    shift 2
  done
  case $kind in
    numeric) kind=0-9 ;;
    alphabetic) kind=a-zA-Z ;;
    *) kind=a-zA-Z0-9 ;;
  esac
  LC_ALL=C tr -dc "$kind" < /dev/urandom | head -c "$count"
  echo
}

# generate_sha_hash TEXT [sha1|sha256|sha512]
generate_sha_hash() { printf '%s' "$1" | "${2:-sha1}sum" | awk '{ print $1 }'; }
