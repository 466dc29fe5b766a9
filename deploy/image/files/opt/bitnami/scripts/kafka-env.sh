#!/bin/bash
# Where things are, under the names of Bitnami's images; NAME_FILE is read for the names that have it.
export BITNAMI_ROOT_DIR=/opt/bitnami
export BITNAMI_VOLUME_DIR=/bitnami
export MODULE=${MODULE:-kafka}
export BITNAMI_DEBUG=${BITNAMI_DEBUG:-false}
export KAFKA_BASE_DIR=/opt/bitnami/kafka
export KAFKA_HOME=/opt/bitnami/kafka
export KAFKA_VOLUME_DIR=/bitnami/kafka
export KAFKA_DATA_DIR=/bitnami/kafka/data
export KAFKA_CONF_DIR=/opt/bitnami/kafka/config
export KAFKA_CONF_FILE=${KAFKA_CONF_FILE:-$KAFKA_CONF_DIR/server.properties}
export KAFKA_MOUNTED_CONF_DIR=${KAFKA_MOUNTED_CONF_DIR:-/bitnami/kafka/config}
export KAFKA_CERTS_DIR=$KAFKA_CONF_DIR/certs
export KAFKA_LOG_DIR=/opt/bitnami/kafka/logs
export KAFKA_INITSCRIPTS_DIR=/docker-entrypoint-initdb.d
export KAFKA_DAEMON_USER=kafka
export KAFKA_DAEMON_GROUP=kafka
export PATH=/opt/bitnami/kafka/bin:$PATH

for kafka_variable in KAFKA_INTER_BROKER_USER KAFKA_INTER_BROKER_PASSWORD KAFKA_CONTROLLER_USER \
  KAFKA_CONTROLLER_PASSWORD KAFKA_CERTIFICATE_PASSWORD KAFKA_CLIENT_USERS KAFKA_CLIENT_PASSWORDS \
  KAFKA_KRAFT_CLUSTER_ID KAFKA_OPTS KAFKA_HEAP_OPTS; do
  kafka_file=${kafka_variable}_FILE
  if [[ -r ${!kafka_file:-} ]]; then
    export "$kafka_variable=$(< "${!kafka_file}")"
    unset "$kafka_file"
  fi
done
unset kafka_variable kafka_file
