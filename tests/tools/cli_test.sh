#!/usr/bin/env bash
# The whole command line, from making a store to reindexing it.
# usage: cli_test.sh ASHLAR
set -uo pipefail
ashlar=$(realpath "$1") || exit 1
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$work" || exit 1

cat >books.jsonl <<'JSON'
{"id":"a","title":"Ashlar","body":"a squared stone laid without gaps","year":1850,"old":true,"rating":4}
{"id":"b","title":"Rubble","body":"rough stone of any shape","year":-20,"old":false,"rating":2.5}

{"id":"c","title":"Brick","body":"baked clay","year":null,"tags":["red","cheap"]}
JSON
gzip -k books.jsonl

# --- help and usage ---
exits "--help" 0 "$ashlar" --help
says "help names the commands" reindex
exits "--version" 0 "$ashlar" --version
prints "the version" "ashlar 0.1.0"
if [ -w /dev/full ]; then
  for option in --version --help "search --help"; do
    # shellcheck disable=SC2086
    exits "$option on a full disk" 1 sh -c "'$ashlar' $option >/dev/full"
  done
fi
exits "no command" 2 "$ashlar"
exits "an unknown command" 2 "$ashlar" serve
says "it is named" "unknown command 'serve'"
exits "an unknown option and no command" 2 "$ashlar" --serve
says "it is named too" "--serve"
exits "an unknown total" 2 "$ashlar" search s q --total maybe
says "which there are" "'maybe' is not one of none|bound|exact"
exits "a total by number" 2 "$ashlar" search s q --total 1
exits "--analyzer of a store that is there" 2 "$ashlar" add s books.jsonl --analyzer english
for fields in '' , title, ,title title,,body; do
  exits "--fields '$fields'" 2 "$ashlar" search s q --fields "$fields"
done
exits "--fields twice" 2 "$ashlar" search s q --fields title --fields body
exits "delete wants a key" 2 "$ashlar" delete s
exits "delete wants keys or ids" 2 "$ashlar" delete s a --id 1
for ids in , 1, ,1 0 1,x 1,-2; do
  exits "delete --id '$ids'" 2 "$ashlar" delete s --id "$ids"
done
exits "an unknown option" 2 "$ashlar" search s q --fuzzy
exits "a missing argument" 2 "$ashlar" search s
exits "a number that is none" 2 "$ashlar" search s q -k ten
exits "an unknown durability" 2 "$ashlar" add s books.jsonl --durability maybe
exits "an interval without a number" 2 "$ashlar" add s books.jsonl --durability interval:x
exits "create wants a schema" 2 "$ashlar" create s
exits "create wants one schema" 2 "$ashlar" create s --schema a --infer b
exits "get wants a key" 2 "$ashlar" get s
exits "an unknown traversal" 2 "$ashlar" search s q --traversal magic
exits "delete wants keys or a query" 2 "$ashlar" delete s a --query stone
exits "delete --batch goes with a query" 2 "$ashlar" delete s a --batch 2
exits "delete --batch 0" 2 "$ashlar" delete s --query stone --batch 0
exits "expire wants a field" 2 "$ashlar" expire s
exits "expire --now that is no date" 2 "$ashlar" expire s --field until --now yesterday
exits "stat of two kinds" 2 "$ashlar" stat s --json --prometheus
for command in create add get delete expire flush merge search eval stat check dump export reindex checkpoint backup salvage; do
  exits "$command --help" 0 "$ashlar" "$command" --help
done
exits "usage errors make no store" 1 test -e s

# --- create ---
exits "create from a sample" 0 "$ashlar" create s --infer books.jsonl
silent "create says nothing"
exits "create again" 1 "$ashlar" create s --infer books.jsonl
says "create again says why" s
cat >schema.json <<'JSON'
{"key":"id","default_group":["title","body"],"fields":[{"name":"id","type":"keyword"},
 {"name":"title","type":"text"},{"name":"body","type":"text"},{"name":"at","type":"date"},{"name":"raw","type":"bytes"}]}
JSON
exits "create from a schema file" 0 "$ashlar" create s2 --schema schema.json
fed "add to it" 0 '{"id":"x","title":"t","at":"2024-02-29T12:00:00+01:00","raw":"AAEC"}' "$ashlar" add s2
exits "get it back" 0 "$ashlar" get s2 x
prints "dates and bytes" '{"id":"x","title":"t","at":"2024-02-29T11:00:00.000Z","raw":"AAEC"}'
exits "a schema file that is not there" 1 "$ashlar" create s3 --schema nobody.json

# --- add, get, stat ---
exits "stat of an empty store" 0 "$ashlar" stat s --json
json "an empty store" 'j["documents"] == 0 and j["segments"] == [] and j["state"] == "healthy"'
exits "add" 0 "$ashlar" add s books.jsonl
silent "add says nothing when piped"
exits "get" 0 "$ashlar" get s a
prints "a document" '{"id":"a","title":"Ashlar","body":"a squared stone laid without gaps","year":1850,"old":"true","rating":4.0}'
exits "get with several values" 0 "$ashlar" get s c
prints "an array" '{"id":"c","title":"Brick","body":"baked clay","tags":["red","cheap"]}'
exits "get what is not there" 1 "$ashlar" get s nobody
says "get says what is missing" nobody
exits "stat" 0 "$ashlar" stat s --json
json "the members of stat" 'set("documents deleted segments journal overlay open_mode state state_remedy counters".split())<set(j)'
json "three documents" 'j["documents"] == 3 and j["deleted"] == 0 and j["open_mode"] == "mapped"'
json "journal and overlay" 'set(j["journal"]) == {"files","bytes","replay_bytes"} and set(j["overlay"]) == {"documents","bytes"}'
exits "stat for people" 0 "$ashlar" stat s
says "stat for people says it" "documents  3"
exits "add the same again" 0 "$ashlar" add s books.jsonl.gz
exits "stat after that" 0 "$ashlar" stat s --json
json "still three" 'j["documents"] == 3'
fed "add from standard input" 0 '{"id":"d","title":"Slate","body":"stone for roofs"}' "$ashlar" add s -
fed "add from standard input, acknowledged" 0 '{"id":"e","title":"Chalk"}
{"id":"f","title":"Flint"}
{"id":"g","title":"Gravel"}' "$ashlar" add s --acks --batch 2
says "first batch" "acked 2 "
says "second batch" "acked 3 "
[ "$(wc -l <out)" = 2 ] && result "two acknowledgements" 0 || result "two acknowledgements" 1
for durability in interval interval:5 os off; do
  fed "durability $durability" 0 "{\"id\":\"dur\",\"title\":\"$durability\"}" "$ashlar" add s --durability $durability
  exits "read after $durability" 0 "$ashlar" get s dur
  says "the value of $durability" "$durability"
done
fed "the last of a batch wins" 0 '{"id":"h","title":"one"}
{"id":"h","title":"two"}' "$ashlar" add s
exits "get the last" 0 "$ashlar" get s h
says "the last value" two
exits "--key of a store" 0 "$ashlar" add s books.jsonl --key id
exits "--key that is another" 1 "$ashlar" add s books.jsonl --key title
exits "several files" 0 "$ashlar" add s books.jsonl books.jsonl.gz books.jsonl --batch 2
exits "a file that is not there" 1 "$ashlar" add s books.jsonl nobody.jsonl
says "which file" nobody.jsonl

# --- add --create, --add-fields ---
exits "add --create" 0 "$ashlar" add made books.jsonl.gz --create --analyzer english
exits "stemmed search" 0 "$ashlar" search made stones --json
json "stems" 'sorted(h["key"] for h in j["hits"]) == ["a", "b"]'
exits "a phrase, stemmed" 0 "$ashlar" search made '"squared stones"' --json
json "the phrase" '[h["key"] for h in j["hits"]] == ["a"]'
exits "the words the other way round" 0 "$ashlar" search made 'stone -"squared stone" title:"Brick"' --json
json "not the phrase" 'sorted(h["key"] for h in j["hits"]) == ["b", "c"]'
exits "a phrase without an end" 1 "$ashlar" search made 'stone "squared'
says "where it begins" "column 7"
exits "a removed word" 0 "$ashlar" search made the --json
json "no hits" 'j["hits"] == [] and j["total"] == 0'
exits "add without --create" 1 "$ashlar" add nothere books.jsonl
exits "nothing was made" 1 test -e nothere
fed "a new field" 1 '{"id":"n","colour":"grey stone"}' "$ashlar" add made
fed "--add-fields" 0 '{"id":"n","colour":"grey stone","weight":3}
{"id":"o","colour":"red","weight":4}' "$ashlar" add made --add-fields --analyzer english
exits "search in the new field" 0 "$ashlar" search made colour:grey --json
json "found in the new field" '[h["key"] for h in j["hits"]] == ["n"]'
exits "the group stays" 0 "$ashlar" search made grey --json
json "not in the group" 'j["hits"] == []'
fed "another key field" 0 '{"url":"u1","text":"words"}' "$ashlar" add keyed --create --key url
exits "get by that key" 0 "$ashlar" get keyed u1
fed "no key field" 0 '{"text":"words"}
{"text":"more words"}' "$ashlar" add keyless --create
exits "search a keyless store" 0 "$ashlar" search keyless more --json
json "keyless hit" 'j["hits"][0]["key"] == "" and j["hits"][0]["id"] > 0'
id=$(python3 -c 'import json; print(json.load(open("out"))["hits"][0]["id"])')
exits "get --id" 0 "$ashlar" get keyless --id "$id"
prints "the document of the id" '{"text":"more words"}'
exits "delete --id before the directory" 0 "$ashlar" delete --id "$id" keyless
exits "get --id after that" 1 "$ashlar" get keyless --id "$id"
fed "two more" 0 '{"text":"third words"}
{"text":"fourth words"}' "$ashlar" add keyless
exits "search them" 0 "$ashlar" search keyless 'third fourth' --json
ids=$(python3 -c 'import json; print(",".join(str(h["id"]) for h in json.load(open("out"))["hits"]))')
exits "delete two by --id" 0 "$ashlar" delete keyless --id "$ids"
exits "one is left" 0 "$ashlar" stat keyless --json
json "one document" 'j["documents"] == 1'

# --- search ---
exits "search --json" 0 "$ashlar" search s stone --json
json "its members" 'list(j) == ["hits","total","total_is_exact","took_us","snapshot"]'
json "members of a hit" 'all(list(h) == ["key","score","id"] for h in j["hits"])'
json "members of the snapshot" 'list(j["snapshot"]) == ["documents","segments","overlay_documents"]'
json "what is found" 'sorted(h["key"] for h in j["hits"]) == ["a","b","d"] and j["total"] == 3 and j["total_is_exact"]'
json "scores fall" '[h["score"] for h in j["hits"]] == sorted((h["score"] for h in j["hits"]), reverse=True)'
cp out all.json
for options in "--open array" "--traversal exhaustive" "--traversal daat" "--fields title,body,tags" "--fields tags,title,body"; do
  # shellcheck disable=SC2086
  exits "search $options" 0 "$ashlar" search s stone --json $options
  json "the same hits with $options" 'j["hits"] == json.load(open("all.json"))["hits"]'
done
exits "search -k --offset" 0 "$ashlar" search s stone -k 1 --offset 1 --json
json "the second hit" 'j["hits"] == json.load(open("all.json"))["hits"][1:2] and j["total"] == 3'
exits "--fields before the query" 0 "$ashlar" search s --fields title brick --json
json "found in the field" '[h["key"] for h in j["hits"]] == ["c"]'
exits "--fields= before --" 0 "$ashlar" search s --fields=body --json -- '-rough stone'
json "found without b" 'sorted(h["key"] for h in j["hits"]) == ["a","d"]'
exits "search must and not" 0 "$ashlar" search s '+stone -rough' --json
json "without b" 'sorted(h["key"] for h in j["hits"]) == ["a","d"]'
exits "search in a field" 0 "$ashlar" search s 'title:brick' --json
json "found in the title" '[h["key"] for h in j["hits"]] == ["c"]'
exits "search a keyword" 0 "$ashlar" search s '+old:true' --json
json "found by keyword" '[h["key"] for h in j["hits"]] == ["a"]'
exits "search --k1 --b" 0 "$ashlar" search s stone --k1 0.9 --b 0.4 --json
json "other scores" 'j["hits"][0]["score"] != json.load(open("all.json"))["hits"][0]["score"]'
exits "search --total none" 0 "$ashlar" search s stone --total none --json
exits "search --total bound" 0 "$ashlar" search s stone --total bound --json
exits "search for people" 0 "$ashlar" search s 'squared stone'
says "the best hit" "a squared stone laid"
says "the summary" "3 found"
exits "search after --" 1 "$ashlar" search s -- -stone
exits "no hit" 0 "$ashlar" search s zebra
says "none found" "0 found"

# --- flush, merge, delete ---
exits "flush" 0 "$ashlar" flush s
exits "search after flush" 0 "$ashlar" search s stone --json
json "the same after flush" 'j["hits"] == json.load(open("all.json"))["hits"] and j["snapshot"]["overlay_documents"] == 0'
fed "more" 0 '{"id":"y","title":"Yard","body":"paved with stone"}' "$ashlar" add s
exits "flush more" 0 "$ashlar" flush s
exits "merge --to 1" 0 "$ashlar" merge s --to 1
exits "stat after merge" 0 "$ashlar" stat s --json
json "one segment" 'len(j["segments"]) == 1 and j["deleted"] == 0 and j["segments"][0]["bytes"]'
exits "merge --to 0" 2 "$ashlar" merge s --to 0
exits "delete" 0 "$ashlar" delete s y g
silent "delete says nothing"
exits "get what is deleted" 1 "$ashlar" get s y
exits "search after delete" 0 "$ashlar" search s stone --json
json "scores as if it had never been" '[h["key"] for h in j["hits"]] == [h["key"] for h in json.load(open("all.json"))["hits"]]'
exits "delete what is partly there" 1 "$ashlar" delete s f nobody
says "delete says what was missing" nobody
exits "the other one is deleted" 1 "$ashlar" get s f

# --- delete --query, expire, merge --purge, stat --prometheus ---
cat >dated.json <<'JSON'
{"key":"id","default_group":["body"],
 "fields":[{"name":"id","type":"keyword"},{"name":"body","type":"text"},{"name":"until","type":"date"}]}
JSON
exits "create with dates" 0 "$ashlar" create dated --schema dated.json
fed "add dated" 0 '{"id":"a","body":"red qqterm","until":"2024-01-01"}
{"id":"b","body":"red","until":"2024-03-01T12:00:00Z"}
{"id":"c","body":"blue","until":["2023-01-01","2025-01-01"]}
{"id":"d","body":"red"}
{"id":"e","body":"green zzterm"}' "$ashlar" add dated
exits "flush dated" 0 "$ashlar" flush dated
exits "expire" 0 "$ashlar" expire dated --field until --now 2024-03-01T12:00:00Z
prints "one has" "deleted 1"
exits "expire again" 0 "$ashlar" expire dated --field until --now 2024-03-01T12:00:00Z --batch 1
prints "none has" "deleted 0"
exits "get what has expired" 1 "$ashlar" get dated a
exits "get what is not before now" 0 "$ashlar" get dated b
exits "expire with the clock" 0 "$ashlar" expire dated --field until
prints "the other dates are over" "deleted 2"
exits "expire by no date" 1 "$ashlar" expire dated --field body
says "the field is named" "field 'body'"
exits "delete --query" 0 "$ashlar" delete dated --query '+green zzterm' --fields body
prints "delete --query says how many" "deleted 1"
exits "delete --query of nothing" 0 "$ashlar" delete dated --query green
prints "there was none" "deleted 0"
exits "delete --query of a bad query" 1 "$ashlar" delete dated --query '-red'
exits "search the rest" 0 "$ashlar" search dated red --json
json "one is left" '[h["key"] for h in j["hits"]] == ["d"]'
exits "the bytes are still there" 0 grep -rqF zzterm dated
exits "merge --purge" 0 "$ashlar" merge dated --purge
silent "merge --purge says nothing"
for bytes in qqterm zzterm green; do exits "$bytes is gone" 1 grep -rqF "$bytes" dated; done
exits "check what was purged" 0 "$ashlar" check dated
exits "stat --prometheus" 0 "$ashlar" stat dated --prometheus
says "documents" "ashlar_documents 1"
says "with a type" "# TYPE ashlar_documents gauge"
says "counters" "ashlar_flushes_total 0"

# --- eval ---
printf '%s\n' '{"id":"q1","text":"stone"}' '{"id":"q2","text":"clay"}' '{"id":"q3","text":"unjudged"}' >q.jsonl
printf 'query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tnobody\t1\nq2\tc\t1\n' >q.tsv
exits "eval" 0 "$ashlar" eval s --queries q.jsonl --qrels q.tsv --run run.trec --json
json "members of eval" 'list(j) == ["queries","ndcg@10","map","p@10","recall@100"]'
json "judged queries only" 'j["queries"] == 2'
json "recall" 'abs(j["recall@100"] - 0.75) < 1e-12'
exits "eval --k" 0 "$ashlar" eval s --queries q.jsonl --qrels q.tsv --k 1 --json
json "k names the members" 'list(j) == ["queries","ndcg@1","map","p@1","recall@100"]'
exits "eval for people" 0 "$ashlar" eval s --queries q.jsonl --qrels q.tsv
says "eval for people says it" "nDCG@10"
awk '$1 == "q1" && $2 == "Q0" && NF == 6 { n++ } END { exit n == 3 ? 0 : 1 }' run.trec
result "the run file" $?

# --- check, dump, export, reindex ---
exits "check" 0 "$ashlar" check s
says "check finds nothing" "no damage found"
exits "check --json" 0 "$ashlar" check s --json
json "check is ok" 'j["ok"] is True'
echo mine >s/notes.txt
exits "check with a stranger's file" 0 "$ashlar" check s
says "it is a note" "note:"
exits "the stranger's file stays" 0 grep -q mine s/notes.txt
fed "something to delete" 0 '{"id":"gone"}' "$ashlar" add s
exits "delete it" 0 "$ashlar" delete s b
exits "flush the death" 0 "$ashlar" flush s
fed "and put it back" 0 "$(sed -n 2p books.jsonl)" "$ashlar" add s
exits "delete the other" 0 "$ashlar" delete s gone
for file in s/*.seg s/*.jnl s/*.dea s/catalog* s/lock s/status; do
  exits "dump $(basename "${file%-*}")" 0 "$ashlar" dump "$file"
  says "dump names the file" "$(basename "$file")"
done
exits "dump of something else" 1 "$ashlar" dump books.jsonl
exits "export" 0 "$ashlar" export s
cp out exported.jsonl
exits "add what was exported" 0 "$ashlar" add copy2 exported.jsonl --create
exits "export again" 0 "$ashlar" export copy2
cmp -s out exported.jsonl
result "the same documents" $?
exits "reindex" 0 "$ashlar" reindex s s-new
exits "export the new store" 0 "$ashlar" export s-new
cmp -s out exported.jsonl
result "reindex keeps the documents" $?
exits "search the new store" 0 "$ashlar" search s-new stone --json
cp out new.json
exits "search the old store" 0 "$ashlar" search s stone --json
json "the same hits, DocumentIds included" 'j["hits"] == json.load(open("new.json"))["hits"]'
exits "reindex into a store that is there" 1 "$ashlar" reindex s s-new

# --- checkpoint, backup, salvage ---
exits "checkpoint" 0 "$ashlar" checkpoint s s-checkpoint
says "checkpoint says what it holds" "verified"
"$ashlar" export s >s.jsonl && "$ashlar" export s-checkpoint | cmp -s - s.jsonl
result "checkpoint keeps the documents" $?
exits "checkpoint into a directory that is there" 1 "$ashlar" checkpoint s s-checkpoint
exits "checkpoint into the store" 1 "$ashlar" checkpoint s s/copy
exits "checkpoint --copy --json" 0 "$ashlar" checkpoint s s-copied --copy --no-verify --json
json "checkpoint --copy links nothing" 'j["segments_linked"] == 0 and j["documents"] > 0 and j["sequence"] > 0'
exits "check of the copy" 0 "$ashlar" check s-copied
exits "backup makes a copy" 0 "$ashlar" backup s s-backup --json
exits "backup again" 0 "$ashlar" backup s s-backup --json
json "backup keeps what is there" 'j["segments_linked"] == 0 and j["segments_copied"] == 0'
exits "backup onto another store" 1 "$ashlar" backup s s-new
says "why" "another store"
"$ashlar" delete s-backup "$(python3 -c 'import json; print(json.loads(open("s.jsonl").readline())["id"])')"
exits "backup onto a copy that was written to" 1 "$ashlar" backup s s-backup
says "why not" "written to"
python3 -c 'import json
for i in range(20000): print(json.dumps({"id": str(i), "body": f"stone {i} of {i % 97}"}))' >many.jsonl
exits "a store to write to" 0 "$ashlar" create busy --infer many.jsonl
: >acks  # which the shell behind & may not have made when it is read
"$ashlar" add busy many.jsonl --batch 50 --acks --durability os >acks 2>/dev/null &
writer=$!
for i in 1 2 3 4 5; do
  before=$(awk 'NF == 3 { n = $2 } END { print n + 0 }' acks)
  exits "checkpoint $i by another process while it writes" 0 "$ashlar" checkpoint busy "busy-$i" --json
  json "whole batches, all that were acknowledged before" "j['documents'] % 50 == 0 and j['documents'] >= $before"
  exits "backup $i by another process while it writes" 0 "$ashlar" backup busy busy-backup --json
  json "whole batches in it, too" "j['documents'] % 50 == 0 and j['documents'] >= $before"
done
wait "$writer"
result "the writer was not disturbed" $?
exits "salvage of a whole store" 0 "$ashlar" salvage s s-salvaged --json
json "salvage loses nothing" 'j["documents_lost"] == 0 and j["damage"] == [] and not j["catalog_lost"]'
"$ashlar" export s-salvaged | cmp -s - s.jsonl
result "salvage keeps the documents" $?
exits "salvage into a store that is there" 1 "$ashlar" salvage s s-salvaged
cp -r s s-damaged
rm s-damaged/catalog.lmdb
exits "a store without its catalog does not open" 1 "$ashlar" stat s-damaged
exits "check tells of it" 1 "$ashlar" check s-damaged --json
json "check names the catalog" 'not j["ok"] and len(j["findings"]) == 1 and "catalog" in j["findings"][0]["message"]'
exits "salvage without a catalog" 0 "$ashlar" salvage s-damaged s-rescued
says "salvage tells of it" "the catalog is lost"
"$ashlar" export s-rescued | cmp -s - s.jsonl
result "all documents are back" $?
exits "salvage of what is no store" 1 "$ashlar" salvage . s-none

# --- pipes ---
"$ashlar" export s | head -n 1 >out 2>err
[ "$(wc -l <out)" = 1 ] && [ ! -s err ] && result "a reader that goes away" 0 || result "a reader that goes away" 1
if [ -w /dev/full ]; then
  status=0
  "$ashlar" export s >/dev/full 2>err || status=$?
  [ "$status" = 1 ] && grep -q "standard output" err && result "a full disk under standard output" 0 ||
    result "a full disk under standard output" 1
fi

finish
