#!/bin/sh
echo "$(hostname):9092"
