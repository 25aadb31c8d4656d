#!/usr/bin/env bash
# Replaces the workers of a fleet one after another; clients see no error.
#
#   STOP='ssh "$1" systemctl stop worker' START='ssh "$1" systemctl start worker' \
#     rolling-deploy.sh http://10.0.0.7:8000 http://10.0.0.8:8000 http://10.0.0.9:8000
#
# The arguments are the ADVERTISE_URLs of the workers to replace. For each: cordon it, wait until nothing lives in it, stop it, start
# its replacement at the same URL, wait until that is ready, take the cordon back. Where the replacements have URLs of their own,
# start them first, and leave START away.
#
# Environment:
#   PINBOARD_URL, PINBOARD_OPERATOR_TOKEN   as for the commands of pinboard
#   PINBOARD                                that program (pinboard)
#   STOP                                    sends SIGTERM to the worker whose URL is $1, by bash -c; it may wait for its end
#   START                                   starts the replacement at the URL $1, by bash -c; it does not wait for its end
#   EMPTY_WITHIN                            for how many seconds a cordoned worker may keep its work (120); then it is stopped all the
#                                           same, and its own drain deadline counts
#   PATIENCE                                for how many seconds a stop or a start may take (90)
set -euo pipefail

pinboard=${PINBOARD:-pinboard}
empty_within=${EMPTY_WITHIN:-120}
patience=${PATIENCE:-90}
start=${START:-}
cordoned=()

say() { printf '%(%H:%M:%S)T  %s\n' -1 "$*"; }

fail() {
  say "error: $*" >&2
  exit 1
}

# --- What pinboard knows ---

# The rows of the first table that a command of pinboard prints, of the worker at URL $2; columns are two spaces apart, or more.
row_of() {
  local table
  table=$("$pinboard" "$1") || return 1
  awk -F '  +' -v url="$2" '
    NF == 0 { over = 1 }
    !over { for (field = 1; field <= NF; field++) if ($field == url) { print; next } }
  ' <<<"$table"
}

client_of() { row_of workers "$1" | awk -F '  +' 'END { print $1 }'; }

# --- What is waited for ---

is_empty() { [[ $(row_of stats "$1" | awk -F '  +' '{ print $3 }') == 0 ]]; }

is_gone() {
  local rows
  rows=$(row_of workers "$1") || return 1
  ! awk -F '  +' '{ print $1 }' <<<"$rows" | grep -qxF -- "$2"
}

# Another client than before is registered there, takes new ids, and says itself that it is ready.
is_replaced() {
  local rows
  rows=$(row_of workers "$1") || return 1
  awk -F '  +' -v old="$2" '$1 != old && $2 == "ready" { found = 1 } END { exit !found }' <<<"$rows" &&
    curl --silent --fail --output /dev/null --max-time 2 "$1/readyz"
}

# wait_until SECONDS CONDITION...
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.5
  done
}

# --- The steps ---

take_back_cordons() {
  local client
  for client in "${cordoned[@]}"; do
    # Of a worker that is gone as well: its cordon would stay in the store.
    "$pinboard" undrain "$client" >/dev/null || say "the cordon of $client stays; later: pinboard undrain $client" >&2
  done
  cordoned=()
}

replace() {
  local url=$1 client
  client=$(client_of "$url")
  [[ -n $client ]] || fail "no worker is registered at $url"

  cordoned+=("$client")
  "$pinboard" drain "$client"
  if ! wait_until "$empty_within" is_empty "$url"; then
    say "$url still has work after $empty_within s; its own drain deadline counts from now on"
  fi

  say "stopping $url"
  bash -c "$STOP" stop "$url"
  wait_until "$patience" is_gone "$url" "$client" || fail "$url has not ended within $patience s"

  if [[ -n $start ]]; then
    say "starting $url"
    bash -c "$start" start "$url"
    wait_until "$patience" is_replaced "$url" "$client" || fail "$url is not ready within $patience s"
  fi
  take_back_cordons
  say "replaced $url"
}

[[ $# -gt 0 && -n ${STOP:-} ]] || fail "STOP, and at least one ADVERTISE_URL, are needed; see the head of $0"
# Also when it fails or is interrupted: a worker that still runs takes new ids again.
trap take_back_cordons EXIT
for url in "$@"; do
  replace "${url%/}"
done
