#!/bin/bash
# Folders and their owners.
. /opt/bitnami/scripts/libos.sh

# owned_by PATH USER [GROUP]: as another user than root it has nothing to say.
owned_by() {
  am_i_root || return 0
  chown "${2:?}${3:+:$3}" "${1:?}"
}

ensure_dir_exists() {
  mkdir -p "${1:?}"
  [[ -z ${2:-} ]] || owned_by "$1" "$2" "${3:-}"
}

is_dir_empty() { [[ ! -e ${1:?} || -z $(ls -A "$1" 2> /dev/null) ]]; }
is_mounted_dir_empty() { is_dir_empty "$1" || [[ $(ls -A "$1") = lost+found ]]; }
is_file_writable() { [[ -w ${1:?} || (! -e $1 && -w $(dirname "$1")) ]]; }

# configure_permissions_ownership "PATH..." [-u USER] [-g GROUP] [-d MODE] [-f MODE]
configure_permissions_ownership() {
  local paths=${1:?} path user='' group='' dirs='' files=''
  shift
  while (($# > 1)); do
    case $1 in -u | --user) user=$2 ;; -g | --group) group=$2 ;; -d) dirs=$2 ;; -f) files=$2 ;; esac
    shift 2
  done
  for path in $paths; do
    [[ -e $path ]] || continue
    [[ -z $dirs ]] || find "$path" -type d -exec chmod "$dirs" {} + 2> /dev/null
    [[ -z $files ]] || find "$path" -type f -exec chmod "$files" {} + 2> /dev/null
    [[ -z $user$group ]] || ! am_i_root || chown -R "$user${group:+:$group}" "$path"
  done
}
