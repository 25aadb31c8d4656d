#!/bin/sh
# Usage: run.sh PORT. The platform's binary itself rather than its JavaScript launcher, so that it is the process measured.
set -eu
cd "$(dirname "$0")"
exec node_modules/@cloudflare/workerd-*/bin/workerd serve config.capnp --socket-addr "http=127.0.0.1:$1"
