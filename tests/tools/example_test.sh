#!/usr/bin/env bash
# A program of docs/examples runs and ends well; it gets a directory that is not there yet.
# usage: example_test.sh PROGRAM
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$(basename "$1")" = example_snapshots ]; then "$1"; else "$1" "$work/store"; fi
