#!/bin/bash
# What init scripts and charts do to the broker's properties before it starts.
. /opt/bitnami/scripts/libfile.sh
. /opt/bitnami/scripts/libfs.sh
. /opt/bitnami/scripts/libnet.sh
. /opt/bitnami/scripts/libservice.sh
. /opt/bitnami/scripts/kafka-env.sh

# kafka_common_conf_set FILE NAME VALUE...: several values become a list. In place of the line that
# has the name, also of one that is commented out; else at the end.
kafka_common_conf_set() {
  local file=${1:?} name=${2:?} value
  shift 2
  value=$(IFS=, && echo "$*")
  touch "$file" 2> /dev/null
  KEY=$name VALUE=$value awk '
    BEGIN { key = ENVIRON["KEY"]; line = key "=" ENVIRON["VALUE"] }
    {
      text = $0
      sub(/^[#[:space:]]*/, "", text)
      rest = substr(text, length(key) + 1)
      if (index(text, key) == 1 && rest ~ /^[[:space:]]*=/) {
        if (!done) print line
        done = 1
        next
      }
      print
    }
    END { if (!done) print line }' "$file" > /tmp/conf.$$ && cat /tmp/conf.$$ > "$file"
  rm -f /tmp/conf.$$
}

kafka_server_conf_set() { kafka_common_conf_set "$KAFKA_CONF_FILE" "$@"; }
kafka_producer_conf_set() { kafka_common_conf_set "$KAFKA_CONF_DIR/producer.properties" "$@"; }
kafka_consumer_conf_set() { kafka_common_conf_set "$KAFKA_CONF_DIR/consumer.properties" "$@"; }
kafka_producer_consumer_conf_set() { kafka_producer_conf_set "$@" && kafka_consumer_conf_set "$@"; }
# kafka_server_unify_conf and kafka_validate: `klamm config` has done it.
kafka_server_unify_conf() { :; }
kafka_validate() { :; }

# KAFKA_CFG_A_B is a.b. A name with a dot in it is in no shell variable.
kafka_configure_from_environment_variables() {
  local pair name
  while IFS= read -r -d '' pair; do
    name=${pair%%=*}
    case $name in KAFKA_CFG_*) ;; *) continue ;; esac
    name=${name#KAFKA_CFG_}
    name=${name,,}
    name=${name//_/.}
    name=${name/sasl.ssl/sasl_ssl}
    name=${name/sasl.plaintext/sasl_plaintext}
    kafka_server_conf_set "$name" "${pair#*=}"
  done < <(env -0)
}

kafka_initialize() {
  klamm config --dialect bitnami --write "$KAFKA_CONF_FILE"
}

# Scripts of /docker-entrypoint-initdb.d, once for a volume.
kafka_custom_init_scripts() {
  local script marker=$KAFKA_VOLUME_DIR/.user_scripts_initialized
  [[ -f $marker ]] && return 0
  for script in "$KAFKA_INITSCRIPTS_DIR"/*.sh; do
    [[ -f $script ]] || continue
    echo "** Running $script **"
    if [[ -x $script ]]; then "$script" || return 1; else . "$script"; fi
  done
  touch "$marker" 2> /dev/null || true
}

is_kafka_running() { pidof klamm kafka-server-start.sh kafka-server-start > /dev/null; }
is_kafka_not_running() { ! is_kafka_running; }
stop_kafka() { ! is_kafka_running || kafka-server-stop.sh; }
