#!/usr/bin/env bash
# Every row of "What bad input gets" in docs/cli.md: a typed error or the documented rule, nothing lost, never a crash.
# usage: bad_input_test.sh ASHLAR
set -uo pipefail
ashlar=$(realpath "$1") || exit 1
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$work" || exit 1

cat >schema.json <<'JSON'
{"key":"id","default_group":["body"],"fields":[{"name":"id","type":"keyword"},{"name":"body","type":"text"},
 {"name":"n","type":"int64"},{"name":"when","type":"date"},{"name":"raw","type":"bytes"}]}
JSON
"$ashlar" create s --schema schema.json || exit 1
printf '{"id":"k%s","body":"kept word%s"}\n' 1 1 2 2 3 3 | "$ashlar" add s || exit 1

# documents_are N NAME: nothing is lost and nothing was added.
documents_are() {
  local found
  found=$("$ashlar" stat s --json | grep -o '"documents":[0-9]*' | head -n 1)
  [ "$found" = "\"documents\":$1" ] && result "$2" 0 || result "$2" 1 "$found, not $1"
}

# refused NAME LINE PLACE TEXT: the line is the third of a batch whose others are good; the batch is not written.
refused() {
  printf '%s\n' '{"id":"new1","body":"x"}' '' "$2" '{"id":"new2","body":"x"}' >bad.jsonl
  exits "$1: is refused" 1 "$ashlar" add s bad.jsonl
  says "$1: file, line and column" "bad.jsonl:3:$3:"
  says "$1: what is wrong" "$4"
  says "$1: the fate of the others" "1 of its batch are not"
  exits "$1: its batch is not written" 1 "$ashlar" get s new1
  documents_are 3 "$1: nothing is lost"
}

refused "malformed JSON" '{"id":"a","body":"x}' 21 "malformed JSON"
refused "a trailing comma" '{"id":"a",}' 11 "malformed JSON"
refused "two objects" '{"id":"a"}{"id":"b"}' 11 "malformed JSON"
refused "no object" '["a"]' 1 "a document is a JSON object"
refused "invalid UTF-8" "$(printf '{"id":"a","body":"\xff"}')" 19 "malformed JSON"
refused "a string for a number" '{"id":"a","n":"1"}' 15 "takes an integer, not a string"
refused "a number for a text" '{"id":"a","body":1}' 18 "takes a string, not a number"
refused "a fraction for an integer" '{"id":"a","n":1.5}' 15 "takes integers only"
refused "a large integer" '{"id":"a","n":9223372036854775808}' 15 "out of the range of int64"
refused "an object" '{"id":"a","body":{"x":"y"}}' 18 "not an object"
refused "an array in an array" '{"id":"a","body":[["x"]]}' 19 "array in an array"
refused "a bad date" '{"id":"a","when":"2023-02-30"}' 18 "takes a date"
refused "bad base64" '{"id":"a","raw":"*"}' 17 "base64"
refused "an unknown field" '{"id":"a","colour":"red"}' 11 "unknown field 'colour'"
refused "a member twice" '{"id":"a","body":"x","body":"y"}' 22 "comes twice"
refused "no key" '{"body":"x"}' 1 "no value in the key field 'id'"
refused "an empty key" '{"id":"","body":"x"}' 7 "the key is empty"
refused "two keys" '{"id":["a","b"],"body":"x"}' 1 "several values in the key field 'id'"

# A NUL byte can't go through a shell variable.
printf '{"id":"a","body":"x\0y"}\n' >nul.jsonl
exits "a NUL byte" 1 "$ashlar" add s nul.jsonl
says "a NUL byte: place" "nul.jsonl:1:"
fed "an escaped NUL is a character" 0 '{"id":"k1","body":"kept\u0000word1"}' "$ashlar" add s
exits "words around a NUL" 0 "$ashlar" search s word1 --json
json "words around a NUL are found" 'j["total"] == 1'
documents_are 3 "NUL bytes: nothing is lost"

# Earlier batches stay, and --on-error skip goes on.
printf '%s\n' '{"id":"e1","body":"x"}' '{"id":"e2","body":"x"}' '{"id":"e3","body":1}' '{"id":"e4","body":"x"}' >half.jsonl
exits "stop at a bad line" 1 "$ashlar" add s half.jsonl --batch 2
says "stop: how many are stored" "(2 documents before it are stored)"
documents_are 5 "stop: the earlier batch stays"
exits "skip a bad line" 0 "$ashlar" add s half.jsonl --batch 2 --on-error skip
says "skip: tells of it" "half.jsonl:3:19: "
says "skip: counts" "1 lines skipped"
documents_are 6 "skip: the others are there"
exits "delete them again" 0 "$ashlar" delete s e1 e2 e4

# Large things.
python3 - <<'PY'
long = "x" * 200000
wide = "\u4e00" * 70000
with open("token.jsonl", "w") as f:
    for name, token in (("t1", long), ("t2", wide)):
        f.write('{"id":"%s","body":"before %s after"}\n' % (name, token))
with open("line.jsonl", "w") as f:
    f.write('{"id":"l1","body":"x"}\n{"id":"l2","body":"')
    for _ in range(100):
        f.write("word " * 200000)
    f.write('"}\n{"id":"l3","body":"y"}\n')
PY
exits "a token of 200 kB" 0 "$ashlar" add s token.jsonl
exits "the words around it" 0 "$ashlar" search s '+before +after' --json
json "the words around it are found" 'sorted(h["key"] for h in j["hits"]) == ["t1","t2"]'
exits "stored as it was" 0 "$ashlar" get s t2
[ "$(wc -c <out)" -gt 210000 ]
result "all of the token is stored" $?
exits "delete it again" 0 "$ashlar" delete s t1 t2
exits "a line of 100 MB" 1 "$ashlar" add s line.jsonl
says "a line of 100 MB: place and limit" "line.jsonl:2:1: the line is longer than the limit of 67108864 bytes"
documents_are 3 "a line of 100 MB: its batch is not written"
exits "a line of 100 MB, skipped" 0 "$ashlar" add s line.jsonl --on-error skip
exits "what follows it" 0 "$ashlar" get s l3
exits "delete those" 0 "$ashlar" delete s l1 l3
rm line.jsonl

# Numbers of many digits, which simdjson 3.0.1 misreads.
fed "a number of many digits" 0 '{"x":0.950000000000000000000}
{"x":1.5}' "$ashlar" add numbers --create
exits "get it back" 0 "$ashlar" get numbers --id 1
prints "its value" '{"x":0.95}'

# --add-fields changes the schema only for a line that is good.
exits "make a store for new fields" 0 "$ashlar" create grows --schema schema.json
fed "a new field in a bad line" 1 '{"id":"a","new1":1,"new2":"x","n":"bad"}' "$ashlar" add grows --add-fields
says "what is bad in it" "takes an integer, not a string"
fed "its field is not there" 1 '{"id":"a","new1":1}' "$ashlar" add grows
says "it is unknown" "unknown field 'new1'"
fed "new fields, one of no type" 1 '{"id":"a","new1":1,"new2":{}}' "$ashlar" add grows --add-fields
fed "neither is there" 1 '{"id":"a","new1":1}' "$ashlar" add grows
fed "bad lines are skipped, good ones add fields" 0 '{"id":"a","new1":1,"n":"bad"}
{"id":"b","new1":"a text","new2":2,"none":null}
{"id":"c","new1":"more","new3":[1,2.5]}' "$ashlar" add grows --add-fields --on-error skip
exits "the first good line gave the type" 0 "$ashlar" get grows b
prints "its values" '{"id":"b","new1":"a text","new2":2}'
python3 -c 'import json; print(json.dumps({"id": "many", **{"f%d" % i: i for i in range(1000)}}))' >many.jsonl
exits "more than 1,000 fields" 1 "$ashlar" add grows many.jsonl --add-fields
says "how many" "many.jsonl:1:1: a schema with 1008 fields; at most 1000"
fed "none of them is there" 1 '{"id":"a","f0":1}' "$ashlar" add grows

# Files.
: >empty.jsonl
exits "an empty file" 0 "$ashlar" add s empty.jsonl
silent "an empty file says nothing"
exits "an empty file to infer from" 1 "$ashlar" add made empty.jsonl --create
says "which file" "empty.jsonl"
exits "nothing was made of it" 1 test -e made
printf '{"id":"a","body":"x"}\n%.0s' {1..5000} | gzip | head -c 60 >cut.jsonl.gz
exits "a gzip file that ends too early" 1 "$ashlar" add s cut.jsonl.gz
says "a gzip file: place" "cut.jsonl.gz"
for i in 1 2 3 4 5; do echo "{\"id\":\"z$i\",\"body\":\"x\"}"; done | gzip >five.jsonl.gz
(cat five.jsonl.gz && echo rubbish) >rubbish.jsonl.gz
exits "bytes behind a gzip file" 1 "$ashlar" add s rubbish.jsonl.gz --batch 2
says "the batches before them stay" "(4 documents before it are stored; 1 of its batch are not)"
documents_are 7 "bytes behind a gzip file: four documents"
(cat five.jsonl.gz && head -c 100 /dev/zero) >zeros.jsonl.gz
exits "zero bytes behind a gzip file" 0 "$ashlar" add s zeros.jsonl.gz
exits "delete what they held" 0 "$ashlar" delete s z1 z2 z3 z4 z5
exits "a directory for a file" 1 "$ashlar" add s .
says "a directory is named so" "is a directory"
documents_are 3 "files: nothing is lost"
fed "a key that repeats" 0 '{"id":"k1","body":"first"}
{"id":"k1","body":"last one"}' "$ashlar" add s
exits "the last one" 0 "$ashlar" get s k1
says "the last one wins" "last one"

# Inference.
for line in '{"a":{"b":1}}' '{"a":[[1]]}' '{"a":9223372036854775808}' '[1]' '{' '{"a":1}
{"a":"x"}'; do
  fed "inference of ${line//$'\n'/ then }" 1 "$line" "$ashlar" add made --create
  says "inference says where: ${line//$'\n'/ then }" "<stdin>:"
done
exits "nothing was made" 1 test -e made

# Queries.
exits "an empty query" 1 "$ashlar" search s ''
says "an empty query says so" "ashlar: "
exits "a query of blanks" 1 "$ashlar" search s '   '
exits "nothing but not" 1 "$ashlar" search s -- '-kept'
exits "an unknown field in a query" 1 "$ashlar" search s 'nobody:x'
says "which field" nobody
exits "a bytes field in a query" 1 "$ashlar" search s 'raw:x'
exits "a phrase without an end" 1 "$ashlar" search s '+kept "and so on'
says "the column of its beginning" "column 7"
exits "a phrase with something behind it" 1 "$ashlar" search s '"kept"x'
exits "-k 0" 1 "$ashlar" search s kept -k 0
exits "-k 10000000" 0 "$ashlar" search s kept -k 10000000 --json
json "as many as there are" 'len(j["hits"]) == 2'
exits "-k beyond 64 bits" 2 "$ashlar" search s kept -k 99999999999999999999
exits "-k negative" 2 "$ashlar" search s kept -k -1
exits "-k with a fraction" 2 "$ashlar" search s kept -k 1.5
exits "--id negative" 2 "$ashlar" get s --id -1
for number in -1 010 0x10 +1 1e3 ' 1' '' 99999999999999999999; do
  exits "-k '$number'" 2 "$ashlar" search s kept "-k$number"
  exits "--offset '$number'" 2 "$ashlar" search s kept --offset "$number"
  exits "get --id '$number'" 2 "$ashlar" get s --id "$number"
  exits "delete --id '$number'" 2 "$ashlar" delete s --id "$number"
  exits "--batch '$number'" 2 "$ashlar" add s empty.jsonl --batch "$number"
  exits "--to '$number'" 2 "$ashlar" merge s --to "$number"
  exits "eval --k '$number'" 2 "$ashlar" eval s --queries q --qrels r --k "$number"
  exits "interval:'$number'" 2 "$ashlar" add s empty.jsonl --durability "interval:$number"
done
exits "interval:0" 2 "$ashlar" add s empty.jsonl --durability interval:0
exits "an interval beyond 32 bits" 2 "$ashlar" add s empty.jsonl --durability interval:4294967296
exits "--batch 0" 2 "$ashlar" add s empty.jsonl --batch 0
exits "an offset beyond the end" 0 "$ashlar" search s kept --offset 18446744073709551615 --json
json "nothing there" 'j["hits"] == []'
exits "k1 out of range" 1 "$ashlar" search s kept --k1 -1
exits "b out of range" 1 "$ashlar" search s kept --b 1.5
exits "k1 that is no number" 1 "$ashlar" search s kept --k1 nan
exits "a field that is no text" 1 "$ashlar" search s kept --fields n
exits "a query of 16,000 words" 0 "$ashlar" search s "$(printf 'kept w%s ' {1..8000})" --json
json "its words are found" 'j["total"] == 2'
exits "a query of invalid UTF-8" 1 "$ashlar" search s "$(printf 'kept \xff')"

# Directories.
exits "a directory that is not there" 1 "$ashlar" search nowhere kept
says "which directory" nowhere
mkdir plain
echo x >plain/file
for command in "stat plain" "search plain x" "add plain empty.jsonl" "check plain" "flush plain" "export plain"; do
  # shellcheck disable=SC2086
  exits "no store: $command" 1 "$ashlar" $command
  says "no store is named: $command" plain
done
for directory in nowhere plain; do
  exits "check --json of no store" 1 "$ashlar" check $directory --json
  json "its one finding" 'j["ok"] is False and len(j["findings"]) == 1 and "'$directory'" in j["findings"][0]["message"]'
done
[ "$(ls plain)" = file ]
result "nothing was made in it" $?
exits "a file for a directory" 1 "$ashlar" stat empty.jsonl

# A store that is being written is locked for writers, and readable.
mkfifo pipe
"$ashlar" add s pipe --acks >acks 2>writer.err &
writer=$!
exec 3>pipe
for i in $(seq 1000); do echo "{\"id\":\"w$i\",\"body\":\"written\"}"; done >&3
while [ ! -s acks ] && kill -0 $writer 2>/dev/null; do :; done
exits "a second writer" 1 "$ashlar" delete s k1
says "it says that the store is locked" "lock"
says "it names the writer" "$writer"
exits "a reader beside the writer" 0 "$ashlar" search s written --json
json "it sees what is acknowledged" 'j["total"] == 1000'
exec 3>&-
wait $writer
result "the first writer ends well" $?

# A newer format: the version in the frame of a segment, at offset 10, with a right checksum, is not damage.
"$ashlar" flush s
cp -r s newer
"$ashlar" merge newer >out 2>err  # into one segment, so that it is this one that is overwritten
echo '{"id":"after","body":"kept in another segment"}' | "$ashlar" add newer >out 2>err && "$ashlar" flush newer
python3 - newer <<'PY'
import glob, sys
path = sorted(glob.glob(sys.argv[1] + "/*.seg"))[0]
data = bytearray(open(path, "rb").read())
data[10] = 99
open(path, "wb").write(data)
PY
exits "a segment whose version was overwritten" 1 "$ashlar" search newer kept
says "which file" ".seg"
exits "a partial search" 0 "$ashlar" search newer kept --partial --json
json "it finds the rest and says what it left out" \
  '[h["key"] for h in j["hits"]] == ["after"] and j["documents_not_searched"] > 0 and ".seg" in j["damage"][0]'

# One flipped byte in each file, in the middle: an error or the right answer.
"$ashlar" search s 'kept written' -k 5 --total none >right.txt
sed -i '$d' right.txt
for file in s/*.seg s/*.jnl s/*.dea; do
  [ -f "$file" ] || continue
  rm -rf flipped
  cp -r s flipped
  python3 - "flipped/$(basename "$file")" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 0x10
open(sys.argv[1], "wb").write(data)
PY
  status=0
  "$ashlar" search flipped 'kept written' -k 5 --total none >out 2>err || status=$?
  sed '$d' out >answer.txt
  if [ $status = 0 ]; then cmp -s answer.txt right.txt; else [ $status = 1 ] && grep -q "^ashlar: " err; fi
  result "a flipped bit in $(basename "${file%-*}")" $?
  case "$file" in *.seg)
    exits "check of a flipped bit" 1 "$ashlar" check flipped --json
    json "check finds it" 'j["ok"] is False and len(j["findings"]) > 0'
    if grep -q "check at offset" err; then result "no place is invented" 1; else result "no place is invented" 0; fi
    ;;
  esac
done

# Read-only directories (root may write everywhere, so this needs another user).
if [ "$(id -u)" != 0 ]; then
  chmod -R a-w s
  exits "reading a read-only directory" 0 "$ashlar" search s kept
  exits "writing to a read-only directory" 1 "$ashlar" delete s k1
  says "which directory is read-only" s
  chmod -R u+w s
elif command -v setpriv >/dev/null; then
  chmod -R a+rX "$work"
  chmod -R a-w s
  # The tool itself may lie where others can't look.
  cp "$ashlar" tool
  chmod a+rx tool
  nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  exits "reading a read-only directory" 0 "${nobody[@]}" ./tool search s kept
  exits "writing to a read-only directory" 1 "${nobody[@]}" ./tool delete s k1
  says "which directory is read-only" s
  chmod -R u+w s
fi

exits "after all that" 0 "$ashlar" check s
finish
