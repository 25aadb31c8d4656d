#!/bin/sh
# Installs workerd into node_modules beside this script. Needs npm. The binary comes in an optional dependency per
# platform, so no install script has to run.
set -eu
cd "$(dirname "$0")"
npm install --ignore-scripts --no-audit --no-fund --no-package-lock
