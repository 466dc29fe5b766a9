#!/bin/bash
# Changing lines of a file in place, also where the file is mounted and cannot be replaced.
. /opt/bitnami/scripts/libos.sh

# replace_in_file FILE PATTERN TEXT [POSIX]: extended expressions, as sed -E has them.
replace_in_file() {
  local file=${1:?} text del=$'\001'
  text=$(sed -E "s${del}${2:?}${del}${3-}${del}g" "$file") && printf '%s\n' "$text" > "$file"
}

replace_in_file_multiline() { replace_in_file "$@"; }

# remove_in_file FILE PATTERN: lines that match.
remove_in_file() {
  local text
  text=$(sed -E "/${2:?}/d" "${1:?}") && printf '%s\n' "$text" > "$1"
}

# append_file_after_last_match FILE PATTERN TEXT
append_file_after_last_match() {
  local line
  line=$(grep -nE "${2:?}" "${1:?}" | tail -n 1 | cut -d: -f1)
  if [[ -z $line ]]; then printf '%s\n' "${3:?}" >> "$1" && return; fi
  { head -n "$line" "$1" && printf '%s\n' "${3:?}" && tail -n "+$((line + 1))" "$1"; } > /tmp/append.$$
  cat /tmp/append.$$ > "$1" && rm -f /tmp/append.$$
}

# wait_for_log_entry TEXT FILE [TIMES] [SECONDS]
wait_for_log_entry() { retry_while "grep -qE '${1:?}' '${2:?}'" "${3:-30}" "${4:-1}"; }
