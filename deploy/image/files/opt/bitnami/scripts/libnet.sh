#!/bin/bash
# Names and addresses.
. /opt/bitnami/scripts/libos.sh

get_machine_ip() { hostname -i | awk '{ print $1 }'; }
dns_lookup() { nslookup "${1:?}" 2> /dev/null | awk '/^Name:/ { n = 1 } n && /^Address/ { print $NF; exit }'; }
is_hostname_resolved() { [[ -n $(dns_lookup "$1") ]]; }
# wait_for_dns_lookup HOST [TIMES] [SECONDS]
wait_for_dns_lookup() { retry_while "is_hostname_resolved '${1:?}'" "${2:-10}" "${3:-1}" && dns_lookup "$1"; }
# wait_for_port HOST PORT [TIMES] [SECONDS]
wait_for_port() { retry_while "nc -z '${1:?}' '${2:?}'" "${3:-30}" "${4:-1}"; }
