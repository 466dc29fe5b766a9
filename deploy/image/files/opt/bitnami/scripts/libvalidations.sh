#!/bin/bash
# Questions about values; each answers by its exit code.
. /opt/bitnami/scripts/liblog.sh

is_int() { [[ ${1:-} =~ ^-?[0-9]+$ ]]; }
is_positive_int() { [[ ${1:-} =~ ^\+?[0-9]+$ ]]; }
is_boolean_yes() { [[ ${1:-} = 1 || ${1,,} = yes || ${1,,} = true ]]; }
is_yes_no_value() { [[ ${1,,} =~ ^(yes|no)$ ]]; }
is_true_false_value() { [[ ${1,,} =~ ^(true|false)$ ]]; }
is_1_0_value() { [[ ${1:-} =~ ^[01]$ ]]; }
is_empty_value() { [[ -z ${1:-} ]]; }

# validate_port [-unprivileged] PORT: says what is wrong with it.
validate_port() {
  local low=0
  if [[ ${1:-} = -unprivileged ]]; then low=1024 && shift; fi
  if ! is_int "${1:-}"; then echo "$1 is no number" && return 1; fi
  if (($1 < low || $1 > 65535)); then echo "$1 is no port from $low to 65535" && return 1; fi
}

validate_ipv4() {
  local part
  [[ ${1:-} =~ ^([0-9]{1,3}\.){3}[0-9]{1,3}$ ]] || return 1
  for part in ${1//./ }; do ((part <= 255)) || return 1; done
}

# validate_string TEXT [-min-length N] [-max-length N]
validate_string() {
  local text=$1
  shift
  while (($# > 1)); do
    case $1 in
      -min-length) ((${#text} >= $2)) || { echo "shorter than $2 characters" && return 1; } ;;
      -max-length) ((${#text} <= $2)) || { echo "longer than $2 characters" && return 1; } ;;
      *) return 1 ;;
    esac
    shift 2
  done
}
