#!/bin/bash
# The entry point of bitnami/kafka: sets up before run.sh, and runs any other command as it is.
if [[ "$*" == *"run.sh"* ]]; then
  echo "** Starting Kafka setup **"
  /opt/bitnami/scripts/kafka/setup.sh || exit 1
  echo "** Kafka setup finished! **"
  export KLAMM_IS_SET_UP=yes
fi
exec "$@"
