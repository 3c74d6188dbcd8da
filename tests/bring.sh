#!/bin/sh
# Brings what tests need from the system and pip cannot give: PostgreSQL with ICU, Chromium and
# npm, and with npm axe-core, which looks for what keeps people out of a page, and an OpenID provider.
set -eu
AXE=4.14.0
PROVIDER=8.8.1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

missing=""
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
if [ -n "$missing" ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "The tests need more of the system: apt-get install$missing" >&2
        exit 1
    fi
    apt-get update -qq
    # shellcheck disable=SC2086 # one word for each package
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

axe="$here/console/.axe"
if [ ! -f "$axe/axe-core-$AXE.tgz" ] || [ ! -f "$axe/package/axe.min.js" ]; then
    mkdir -p "$axe"
    (cd "$axe" && npm pack --silent "axe-core@$AXE" >/dev/null && tar -xzf "axe-core-$AXE.tgz")
fi

provider="$here/server/.provider"
if [ ! -f "$provider/oidc-provider-$PROVIDER" ]; then
    mkdir -p "$provider"
    npm install --silent --no-fund --no-audit --prefix "$provider" "oidc-provider@$PROVIDER"
    touch "$provider/oidc-provider-$PROVIDER"
fi
