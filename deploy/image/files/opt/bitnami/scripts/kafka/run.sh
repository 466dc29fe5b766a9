#!/bin/bash
# Called without the entry point it sets up by itself.
if [ -z "${KLAMM_IS_SET_UP:-}" ]; then
  /opt/bitnami/scripts/kafka/setup.sh || exit 1
fi
echo "** Starting Kafka **"
# shellcheck disable=SC2086
exec /opt/bitnami/kafka/bin/kafka-server-start.sh /opt/bitnami/kafka/config/server.properties \
  ${KAFKA_EXTRA_FLAGS:-} "$@"
