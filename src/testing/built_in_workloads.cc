// The workloads of the exhaustive driver: all steps of the write path in all four durability modes. docs/crashlab.md
// describes the language.
#include <string_view>

#include "src/testing/workload.h"

namespace ashlar::testing {
namespace {

constexpr std::string_view kText = R"(
# --- writes, one mode each

workload puts_sync durability=sync
put 0..3
put 0..1

workload puts_interval durability=interval interval_ms=5
put 0..2
wait 6
put 3
run_pending
put 0
wait 6
run_pending
put 4

workload puts_os durability=os
put 0..3
put 0..1
sync
put 5

workload puts_off durability=off
put 0..3
flush
put 4..5

workload conditions_sync durability=sync
insert 1
put_if 1
put_if 2
fail insert 1
fail put_if_stale 1
insert 3
delete 1
insert 1
fail bad 5
put 2

workload conditions_os durability=os
insert 1..2
fail insert 2
put_if 1
fail put_if_stale 2
flush
put_if 1
fail insert 1
delete 2
insert 2

workload deletes_sync durability=sync
put 0..4
delete 1
delete 9
delete_id 2
put 1
delete 3
delete 3

workload deletes_after_flush_sync durability=sync
put 0..5
flush
delete 1
delete_id 3
put 2
flush
delete 2
put 4

workload deletes_after_flush_os durability=os
put 0..5
flush
delete 1
put 2
delete_id 4
sync
delete 0
flush
delete 5

workload deletes_after_flush_off durability=off
put 0..5
flush
delete 1
put 2
flush
delete 3
delete_id 4

workload batches_sync durability=sync
batch put 0; put 1; put 2; put 3
batch put 1; delete 2; put 4; delete 4; put 4
batch delete 0; insert 0; put_if 5
empty
batch delete 0; delete 1

workload batches_os durability=os
batch put 0..5
batch put 1; delete 2; put 4; delete 4; put 4
empty
batch delete 0; insert 0
flush
batch put 0; delete 1; put 1; delete 3
sync
batch put 6..9

workload failing_batches_sync durability=sync
put 0..1
fail put 3; insert 0; put 4
put 3
fail put 5; bad 6
batch put 5; put 6
fail delete 0; put_if_stale 1
delete 0

workload watermarks_sync durability=sync
put 0 watermark=1
put 1 watermark=2
flush
batch put 2; delete 0 watermark=3
empty watermark=4
reopen
put 3 watermark=5
kill
empty watermark=6

workload watermarks_os durability=os
put 0 watermark=1
put 1 watermark=2
put 2
flush
empty watermark=4
kill
put 3 watermark=5
merge

workload watermarks_off durability=off
put 0 watermark=1
flush
put 1 watermark=2
empty watermark=3
flush
put 2 watermark=4

workload raised_os durability=os
put 0..1
put 2 durability=sync
put 3
batch put 4; delete 0 durability=sync
put 5

workload raised_interval durability=interval interval_ms=1000
put 0..1
put 2 durability=sync
put 3
sync
put 4

workload raised_off durability=off
put 0..1
put 2 durability=os
put 3
put 4 durability=sync
delete 0

# --- flushes

workload flushes_sync durability=sync
put 0..2
flush
put 1..4
flush
put 5
flush
flush

workload flushes_os durability=os
put 0..2
flush
put 1..4
flush
delete 1
flush

workload flushes_interval durability=interval interval_ms=1
put 0..2
flush
wait 2
put 1
run_pending
flush
put 5

workload flush_of_deletes_only_sync durability=sync
put 0..3
flush
delete 0
flush
delete 1
delete 2
flush
delete 3
flush
put 0

workload full_overlay_sync durability=sync overlay_bytes_max=65536 merge_factor=2
put 0..3 words=400
put 4..7 words=400
put 0..3 words=400

workload full_overlay_os durability=os overlay_bytes_max=65536 merge_factor=2
put 0..5 words=500
delete 1
put 2..7 words=500

# Several journal files that are all needed.
workload journals_os durability=os
put 0..2 words=300
sync
put 3..5 words=300
batch put 1; delete 2 durability=sync
put 6..9 words=200
kill
put 2 words=200
sync
put 3

# --- batches beside a flush or a merge

workload beside_flush_sync durability=sync
put 0..3
at flush_written put 4
at flush_written delete 1
at flush_written put 2 watermark=9
at flush_committed put 5
at flush_committed delete 0
flush
put 1
flush

workload beside_flush_os durability=os
put 0..3
at flush_written delete 1
at flush_written put 2 watermark=9
at flush_written empty
at flush_written put 6..8 words=400  # the journal's file fills up
at flush_committed batch delete 0; put 3
flush
delete 2
kill
put 1
flush

workload beside_full_overlay_sync durability=sync overlay_bytes_max=131072
put 0 words=300
at flush_written put 1
at flush_written put 0
at flush_committed delete 1
put 2..9 words=900
kill
put 1

workload beside_full_overlay_os durability=os overlay_bytes_max=131072
put 0..1 words=300
at flush_written delete 1
at flush_written put 0 watermark=4
put 2..9 words=900
put 3
sync

workload beside_merge_sync durability=sync
put 0..2
flush
put 3..5
flush
delete 0
flush
at merge_written delete 1
at merge_written put 3
at merge_committed delete 4
merge
put 4
flush

workload beside_merge_os durability=os
put 0..2
flush
batch put 3; put 4; delete 1
flush
put 4
at merge_written put 6
at merge_written flush
at merge_written delete 2
at merge_committed put 0
merge
delete 3
reopen
merge

workload deaths_beyond_the_floor_os durability=os merge_factor=2
put 0..2
flush
put 3
at flush_written batch delete 0; put 1
flush
run_pending
put 5

# --- merges

workload merges_sync durability=sync
put 0..2
flush
put 1..3
flush
put 2..4
flush
delete 1
put 2
merge
put 7

workload merges_os durability=os
put 0..2
flush
put 1..3
flush
batch delete 1; put 2
merge
put 7
delete 0
merge

workload merges_off durability=off
put 0..2
flush
put 1..3
flush
batch delete 1; put 2
flush
merge
put 7

workload purges_sync durability=sync
put 0..5
flush
delete 1
put 2
purge
put 6
delete 3
purge 2
reopen
delete 0
purge

workload purges_os durability=os
put 0..3
flush
put 4
kill
delete 1
purge
put 1
at flush_written put 7
at flush_committed delete 4
at merge_written delete 2
at merge_committed put 5
purge
flush

workload merge_to_two_sync durability=sync
repeat 4
batch put 0..2
flush
end
merge 2
put 9
merge 1

workload merge_due_sync durability=sync merge_factor=2
put 0..1
flush
put 1..2
flush
run_pending
put 3
flush
run_pending
delete 3
run_pending

workload merge_due_os durability=os merge_factor=3
repeat 4
batch put 0..1
flush
end
run_pending
batch delete 0; delete 1
run_pending
put 4

workload merge_everything_dead_sync durability=sync
put 0..2
flush
batch delete 0..2
merge
put 5
flush
delete 5
merge

# --- ends and beginnings

workload reopens_sync durability=sync
put 0
reopen
put 1
reopen
reopen
flush
put 2
reopen
delete 0
put 3

workload reopens_os durability=os
put 0..1
reopen
put 2
reopen
put 3..4
flush
reopen
put 5

workload reopens_interval durability=interval interval_ms=1
put 0..1
reopen
put 2
wait 2
put 3
reopen
put 4

workload reopens_off durability=off
put 0..1
reopen
put 2
delete 0
reopen
put 3

workload kills_sync durability=sync
put 0..1
kill
put 2
kill
kill
put 3
flush
put 4
kill
delete 0

workload kills_os durability=os
put 0..1
kill
put 2
sync
put 3
kill
put 4
flush
put 5
kill
put 6

workload kills_and_syncs_os durability=os
put 0..1
kill
sync
put 2
kill
reopen
put 3
kill
flush
put 4
kill
sync
kill
sync
reopen
delete 0

workload kills_off durability=off
put 0..1
kill
put 2
flush
put 3
kill
put 4

workload changing_modes durability=sync
put 0
reopen durability=os
put 1
kill durability=off
put 2
flush
put 3
reopen durability=interval interval_ms=1
put 4
kill durability=sync
put 5
reopen durability=off
delete 0
kill durability=os
put 6

# --- copies

workload checkpoints_sync durability=sync
put 0..1
checkpoint
flush
put 1..2
delete 0
checkpoint
flush
checkpoint
put 3

workload checkpoints_os durability=os
put 0..2
flush
put 1
flush
checkpoint
delete 2
put 4
checkpoint
merge
checkpoint
put 5
sync
checkpoint

workload checkpoints_and_kills_sync durability=sync
put 0 watermark=3
flush
checkpoint
add_field later
put 1
kill
checkpoint
put 2
flush
merge
reopen
checkpoint

workload array_mode_sync durability=sync mode=array
put 0..2
flush
delete 1
put 2
flush
reopen
put 3
merge
kill mode=mapped
delete 2

workload array_mode_os durability=os mode=array
put 0..3
flush
put 1
kill
delete 2
merge
put 4

# --- schema

workload fields_sync durability=sync
put 0..1
add_field extra
put 1..2
flush
add_field more
put 3
kill
put 0
merge

workload fields_os durability=os
put 0..1
flush
add_field extra
put 1
reopen
put 2
add_field more
kill
put 3
flush

workload fields_off durability=off
put 0..1
add_field extra
put 1..2
flush
put 3

# --- the journal's files

workload rotations_sync durability=sync
repeat 5
put 0..2 words=120
end
sync

workload rotations_os durability=os
repeat 5
put 0..2 words=120
end
sync
put 4 words=300

workload rotations_interval durability=interval interval_ms=3
repeat 4
put 0..1 words=150
wait 2
end
run_pending
put 4 words=300

workload rotations_and_reopens_os durability=os
put 0..2 words=200
reopen
put 0..2 words=200
kill
put 0..4 words=200
flush
put 0..2 words=200

workload prepared_files_sync durability=sync
put 0 words=100
run_pending
put 1..4 words=100
run_pending
put 1..4 words=100
flush
run_pending
put 5

workload big_batches_sync durability=sync
batch put 0..9 words=100
batch put 0..9 words=100
reopen
batch put 0..9 words=100
batch delete 0..9

# --- stores without keys

workload keyless_sync keyless durability=sync
put 0..2
delete_id 1
flush
put 3..4
delete_id 0
delete_id 2
merge
put 5

workload keyless_os keyless durability=os
batch put 0..3
delete_id 1
flush
batch put 4; delete_id 0
kill
put 5
delete_id 1

workload keyless_off keyless durability=off
batch put 0..3
flush
delete_id 1
put 4
reopen
delete_id 0

# --- bulk loads

workload loads_off durability=off
load put 0..5
flush
load put 6..8
load put 9..10
flush
put 0
load put 11..12
delete 3

workload loads_and_puts_off durability=off merge_factor=2
put 0..1
load put 2..6
put 1
load put 7
sync
delete 2
load put 8..9 watermark=7
reopen
put 3

# --- long ones

workload everything_sync durability=sync merge_factor=3
repeat 4
put 0..5
batch delete 1; put 2; put 6
flush
put_if 3
delete 4
empty watermark=9
run_pending
kill
insert 1
delete 1
reopen
end
merge
put 0..3

workload everything_os durability=os merge_factor=3
repeat 5
put 0..5 words=30
batch delete 1; put 2; put 6
flush
put_if 3
sync
delete 4
empty watermark=9
run_pending
kill
put 7..8
reopen
end
merge
put 0..3

workload everything_interval durability=interval interval_ms=4 merge_factor=2
repeat 4
put 0..3
wait 2
batch delete 1; put 2; put 6 watermark=3
wait 3
put 5 durability=sync
flush
run_pending
kill
delete 2
reopen
end

workload everything_off durability=off merge_factor=2
repeat 4
put 0..5
batch delete 1; put 2; put 6
flush
put_if 3
delete 4
empty watermark=9
run_pending
reopen
end
load put 100..101
delete 100
merge

# --- what takes more than one thing to go wrong

# A flush takes numbers beyond that of a merge whose file is half written.
workload numbers_beyond_a_merge_sync durability=sync
put 0..2
flush
put 3..5
flush
at merge_copying put 6
at merge_copying flush
merge
put 4

# A batch and the void record that takes its place are both reported as failed, and only one of them may get to the disk.
workload lost_void_sync durability=sync
put 0..1
fault write 2 done
put 2
put 3
)";

}  // namespace

std::string_view BuiltInWorkloadText() { return kText; }

}  // namespace ashlar::testing
