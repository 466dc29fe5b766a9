#!/bin/sh
# Waits for the broker and makes the topics of KAFKA_CREATE_TOPICS.
exec klamm create-topics --dialect=wurstmeister
