#!/usr/bin/env bash
# The zipf corpus is the same bytes everywhere: SHA-256 of 1,000 documents, of fixed and of variable length.
# usage: zipf_test.sh ASHLAR_BENCH
set -euo pipefail
bench=$1
fixed=d99f49451f89e691e7c4a7567a71f66b27abb9b370e49f5b84e725b7c9d7de1d
variable=4d5905b4395b717f23b197acf32a909ae0329889f0516d2d01e02c8d86763c08
shifted=61ad38d9a4490ab3351846f47fbb599d9a5ebc1d48744e264febca70b1a9cbd8

check() {
  local name=$1 expected=$2 actual
  shift 2
  actual=$("$bench" zipf "$@" | sha256sum | cut -d' ' -f1)
  if [ "$actual" != "$expected" ]; then
    echo "$name: SHA-256 is $actual, not $expected" >&2
    exit 1
  fi
}

check "fixed length" $fixed 1000
check "variable length" $variable 1000 --variable-length
check "another seed, vocabulary and first id" $shifted 1000 --seed 7 --words 20 --vocab 1000 --variable-length --start 5
echo "three corpora have their bytes"
