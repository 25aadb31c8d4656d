#!/bin/sh
# Installs the Python edition and uvicorn into .venv beside this script. Needs python3 (3.11 or newer) with venv.
set -eu
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
