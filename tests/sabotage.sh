#!/usr/bin/env bash
# Breaks the product on purpose, each time in one way, and checks that the crash sweep says so.
#
#   tests/sabotage.sh            every patch in tests/sabotage
#   tests/sabotage.sh NAME...    some of them, without `.patch`
#
# A patch begins with two lines: what it `breaks:`, and the invariants of which one `must fail:`. Patches are applied to a
# copy of the tree, one at a time. Each is a build, so this is not part of `./verify`; run it when the sweep, the trays or
# the durability change. A patch that does not apply any more is a failure too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly patches=tests/sabotage
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -pt "$copy"
if [[ -d target/debug ]]; then
    # The dependencies need not be built again.
    mkdir "$copy/target"
    cp -a target/debug "$copy/target/debug"
fi

# The runs of two seeds, in every depth, and the seams that are looked at one by one.
sweep() {
    (cd "$copy" && PINNED_SEEDS=2 RUST_BACKTRACE=0 cargo test --locked --quiet --package tests --test it -- \
        sweep:: --skip sweep::every_store_that_breaks_the_contract_is_found_out --skip sweep::replay) 2>&1
}

field() {
    sed -n "s/^$1: //p" "$2" | head -n 1
}

failed=0
say() {
    printf '%-24s %-8s %-14s %s\n' "$1" "$2" "$3" "$4"
}

sabotage() {
    local name=$1 patch=$PWD/$patches/$1.patch expected found output number
    expected=$(field 'must fail' "$patch")
    if ! (cd "$copy" && git apply --whitespace=nowarn "$patch"); then
        say "$name" STALE "$expected" "does not apply"
        return 1
    fi
    output=$(sweep) && found= || found=$(grep -oE '^  ?(S5\.[0-9]+|S4\.8|D15\.3|S6\.4): ' <<<"$output" | tr -d ' :' | sort -u | tr '\n' ' ')
    (cd "$copy" && git apply --whitespace=nowarn --reverse "$patch")
    for number in $expected; do
        if [[ " $found" == *" $number "* ]]; then
            say "$name" killed "$number" "$(field breaks "$patch")"
            return 0
        fi
    done
    say "$name" SURVIVED "$expected" "found: ${found:-nothing}"
    tail -n 20 <<<"$output"
    return 1
}

if [[ $# -eq 0 ]]; then
    mapfile -t names < <(find "$patches" -name '*.patch' -printf '%f\n' | sed 's/\.patch$//' | sort)
    set -- "${names[@]}"
fi
say PATCH RESULT INVARIANT BREAKS
for name in "$@"; do
    sabotage "$name" || failed=1
done
exit "$failed"
