#!/bin/bash
. /usr/lib/klamm/steps
file=/opt/bitnami/kafka/config/server.properties
klamm_configure bitnami "$file" || exit 1
klamm_format bitnami "$file" || exit 1
marker=/bitnami/kafka/.user_scripts_initialized
if [ ! -f "$marker" ]; then
  for script in /docker-entrypoint-initdb.d/*.sh; do
    [ -f "$script" ] || continue
    echo "** Running $script **"
    if [ -x "$script" ]; then "$script"; else . "$script"; fi
  done
  touch "$marker" 2> /dev/null
fi
exit 0
