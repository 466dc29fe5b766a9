#!/bin/bash
# The start script of wurstmeister/kafka.
. /usr/lib/klamm/steps
if [ -n "${CUSTOM_INIT_SCRIPT:-}" ]; then eval "$CUSTOM_INIT_SCRIPT"; fi
file=/opt/kafka/config/server.properties
klamm_configure wurstmeister "$file" || exit 1
klamm_format wurstmeister "$file" || exit 1
create-topics.sh &
exec kafka-server-start.sh "$file"
