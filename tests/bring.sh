#!/bin/sh
# Brings what tests need from the system and pip cannot give: PostgreSQL with ICU.
set -eu
if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
    exit 0
fi
echo "The tests need PostgreSQL with ICU: apt-get install postgresql" >&2
exit 1
