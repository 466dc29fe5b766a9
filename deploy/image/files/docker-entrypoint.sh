#!/bin/bash
# The entry point of debezium/kafka:
#   start | create-topic [-p N] [-r N] [-c POLICY] NAME | list-topics | watch-topic [-a] [-k] NAME
. /usr/lib/klamm/steps

# The broker of a one-off command: a link or a service called `kafka`, as in the tutorials.
broker=${KAFKA_BROKER:-}
[ -n "$broker" ] || broker=kafka:9092

case ${1:-start} in
  start)
    file=/opt/kafka/config/server.properties
    klamm_configure debezium "$file" || exit 1
    klamm_format debezium "$file" || exit 1
    klamm create-topics --dialect=debezium &
    level=${LOG_LEVEL:-INFO}
    KAFKA_LOG4J_ROOT_LOGLEVEL=$level exec kafka-server-start.sh "$file"
    ;;
  create-topic)
    shift
    partitions=1 replicas=1 policy=delete
    while getopts :p:r:c: option; do
      case $option in
        p) partitions=$OPTARG ;;
        r) replicas=$OPTARG ;;
        c) policy=$OPTARG ;;
        *) echo "create-topic [-p PARTITIONS] [-r REPLICAS] [-c POLICY] NAME" >&2; exit 1 ;;
      esac
    done
    shift $((OPTIND - 1))
    exec kafka-topics.sh --create --bootstrap-server "$broker" --topic "$1" \
      --partitions "$partitions" --replication-factor "$replicas" --config cleanup.policy="$policy"
    ;;
  list-topics) exec kafka-topics.sh --list --bootstrap-server "$broker" ;;
  watch-topic)
    shift
    options=()
    while getopts :akm: option; do
      case $option in
        a) options+=(--from-beginning) ;;
        k) options+=(--property print.key=true) ;;
        m) options+=(--max-messages "$OPTARG") ;;
        *) echo "watch-topic [-a] [-k] [-m COUNT] NAME" >&2; exit 1 ;;
      esac
    done
    shift $((OPTIND - 1))
    exec kafka-console-consumer.sh --bootstrap-server "$broker" --topic "$1" "${options[@]}"
    ;;
  *) exec "$@" ;;
esac
