#!/bin/sh
# Usage: durable.sh PORT FOLDER. As run.sh, with the objects' files in FOLDER.
set -eu
folder=$(realpath "$2")
cd "$(dirname "$0")"
exec node_modules/@cloudflare/workerd-*/bin/workerd serve durable.capnp \
    --socket-addr "http=127.0.0.1:$1" --directory-path "objects=$folder"
