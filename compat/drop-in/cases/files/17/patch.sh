# As people patched cp-kafka 7.0 to 7.3 for KRaft: checks taken out, a format step appended.
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
sed -i 's/cub zk-ready/echo not waiting for/' /etc/confluent/docker/ensure
echo 'kafka-storage format --ignore-formatted -t "$(cat /tmp/clusterID)" -c /etc/kafka/kafka.properties' >> /etc/confluent/docker/ensure
