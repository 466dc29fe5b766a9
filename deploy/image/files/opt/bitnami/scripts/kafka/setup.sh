#!/bin/bash
. /usr/lib/klamm/steps
. /opt/bitnami/scripts/libkafka.sh
klamm_configure bitnami "$KAFKA_CONF_FILE" || exit 1
klamm_format bitnami "$KAFKA_CONF_FILE" || exit 1
kafka_custom_init_scripts || exit 1
exit 0
