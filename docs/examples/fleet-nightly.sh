#!/bin/sh
# From cron, some times in each night: look after all tables of a list, within a budget.
# Each run does what the earlier ones of the day have left. Prints only what somebody should look at: cron mails that.
set -u
: "${TABLES:=/etc/hudi/tables.txt}" "${LOGS:=/var/log/hudi}" "${BYTES:=500g}" "${TIME:=90m}" "${FLAGS:=}"
results=$LOGS/fleet-$(date +%F).jsonl
log=$LOGS/fleet-$(date +%F).log

# FLAGS are words: not in quotes.
# shellcheck disable=SC2086
hudi-services fleet "$TABLES" --apply --max-bytes "$BYTES" --time-limit "$TIME" \
    --results "$results" --resume --retry 2 $FLAGS >>"$log" 2>&1
code=$?
echo "$(date -u +%FT%TZ) fleet ended with exit code $code" >>"$log"
case $code in
0 | 4) ;; # done, or the run before is still at work
5) echo "rows are hidden from readers, or in danger: see the tables with critical findings in $log" ;;
7) echo "some tables need somebody: $(grep -c '"state": "\(failed\|slow\|busy\)"' "$results") of them, see $log" ;;
*) echo "fleet ended with exit code $code, see $log" ;;
esac
exit $code
