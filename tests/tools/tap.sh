# Sourced by the shell tests: checks whose results are printed in the Test Anything Protocol, which Meson counts one by one.
# Each check runs a command and leaves its standard output in $work/out and its standard error in $work/err.

tap_count=0
tap_failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# result NAME STATUS [DETAIL]: one line of the protocol; STATUS 0 is success.
result() {
  tap_count=$((tap_count + 1))
  if [ "$2" = 0 ]; then
    echo "ok $tap_count - $1"
    return
  fi
  tap_failed=$((tap_failed + 1))
  echo "not ok $tap_count - $1"
  {
    [ -z "${3:-}" ] || echo "# $3"
    sed 's/^/# out: /' "$work/out" | head -n 20
    sed 's/^/# err: /' "$work/err" | head -n 20
  } 2>/dev/null | cut -c 1-300
}

# exits NAME CODE COMMAND...: the command ends with that code.
exits() {
  local name=$1 code=$2 status=0
  shift 2
  "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
  [ "$status" = "$code" ] && result "$name" 0 || result "$name" 1 "exit status $status, not $code: $*"
}

# fed NAME CODE INPUT COMMAND...: the same with INPUT as standard input.
fed() {
  local name=$1 code=$2 input=$3 status=0
  shift 3
  printf '%s' "$input" | "$@" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = "$code" ] && result "$name" 0 || result "$name" 1 "exit status $status, not $code: $*"
}

# says NAME TEXT: the last command's standard output or error holds that text.
says() { grep -qF -- "$2" "$work/out" "$work/err" && result "$1" 0 || result "$1" 1 "nothing says: $2"; }
# silent NAME: the last command's standard output and error are empty.
silent() { [ ! -s "$work/out" ] && [ ! -s "$work/err" ] && result "$1" 0 || result "$1" 1 "there is output"; }
# prints NAME TEXT: the last command's standard output is that text and nothing else.
prints() { [ "$(cat "$work/out")" = "$2" ] && result "$1" 0 || result "$1" 1 "the output is not: $2"; }
# json NAME PYTHON: the expression over the last command's JSON, as `j`, is true.
json() {
  python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(0 if eval(sys.argv[2]) else 1)' \
    "$work/out" "$2" 2>>"$work/err" && result "$1" 0 || result "$1" 1 "not true: $2"
}

finish() {
  echo "1..$tap_count"
  [ "$tap_failed" = 0 ]
}
