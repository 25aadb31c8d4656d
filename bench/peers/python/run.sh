#!/bin/sh
# Usage: run.sh PORT. One process, as one worker holds every id; no access log.
set -eu
cd "$(dirname "$0")"
# A worker without a pinboard is dev mode, which these would forbid.
unset PINBOARD_URL NODE_ENV ENVIRONMENT APP_ENV
exec .venv/bin/python -m uvicorn app:app --host 127.0.0.1 --port "$1" \
    --loop uvloop --http httptools --no-access-log --log-level warning
