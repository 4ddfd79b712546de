"""Shell scripts of the kind people run each day. What bash makes of each, `test_as_bash` asks bash."""

from __future__ import annotations

#: akrunner reads these, and makes bash's calls. They are given one argument, `drop`; rows.csv, a.sql and sub/b.sql are there
DAILY = [
    """#!/bin/bash
# daily train
set -euo pipefail
bizdate=${1:-$(date -d yesterday +%Y%m%d)}
bizdate=20200302
PROJECT=algo_prod
for ((i = 1; i <= 3; i++)); do
  dt=$(date -d "${bizdate} -${i} days" +%Y%m%d)
  odpscmd --project="$PROJECT" -e "alter table feat drop if exists partition (ds='$dt');"
done""",
    """start_date=20200228
end_date=20200302
cur=$start_date
while [[ $cur -le $end_date ]]
do
    echo "processing $cur"
    odpscmd -e "insert overwrite table t partition(ds='${cur}') select * from s where ds='${cur}';"
    cur=$(date -d "$cur 1 day" +%Y%m%d)
done""",
    """d1=2020-02-27; d2=2020-03-02
while [ "$(date -d "$d1" +%s)" -le "$(date -d "$d2" +%s)" ]; do
  odpscmd -e "pt=$(date -d $d1 +%Y%m%d)"
  d1=$(date -I -d "$d1 + 1 day" 2>/dev/null || date -d "$d1 + 1 day" +%Y-%m-%d)
done""",
    'for hh in {00..23..6}; do odpscmd -e "alter table t add if not exists partition (ds=\'20200101\', hh=\'$hh\');"; done',
    """tables="user item
order"
for t in $tables; do
  for part in {train,test}; do
    odpscmd -e "drop table if exists ${t}_${part};"
  done
done""",
    'retry=0\nmax=3\nuntil odpscmd -e "pai -name tensorflow1150;"\ndo\n  retry=$((retry + 1))\n  if [ "$retry" -ge "$max" ]; then echo "failed"; exit 1; fi\n '
    ' sleep $((retry * 10))\ndone\nodpscmd -e "done after $retry"',
    'function run_sql() {\n  local sql="$1"\n  local try=0\n  while true; do\n    odpscmd -e "$sql" && break\n    try=$((try+1))\n    [ $try -gt 3 ] && '
    'return 1\n    sleep 5\n  done\n}\nrun_sql "select 1;" || exit 1\nrun_sql "select 2;"',
    """arr=(lr fm deepfm)
n=${#arr[@]}
for (( k=0; k<n; k++ )); do
  model=${arr[k]}
  printf -v name "%s_%02d" "$model" $k
  odpscmd -e "pai -name tensorflow1150 -DjobName='$name' -DhyperParameters='m=${model^^}';"
done""",
    'script=/home/admin/jobs/train_model.v2.py\nbase=$(basename "$script" .py)\ndir=$(dirname "$script")\nodpscmd -e "-Dscript=\'file://$dir/${base}.tar.gz\' '
    '-DjobName=${base%%.*} ext=${script##*.} ${base//./_}"',
    'conf="a=1;b=2"\nIFS=\';\' read -r p q <<< "$conf"\nodpscmd -e "${p#*=} ${q#*=}"',
    r"""while read -r table days; do
  [ -z "$table" ] && continue
  [[ $table == \#* ]] && continue
  odpscmd -e "alter table $table set lifecycle $days;"
done <<'LIST'
# table days
log_a 7

log_b 30
LIST""",
    """while IFS=: read -r name count; do odpscmd -e "$name has $count"; done <<EOF
worker:4
ps:2
EOF""",
    r"""echo "user_a user_b" | tr ' ' '\n' > /dev/null
list=$(echo "a,b,c" | tr ',' ' ')
for x in $list; do odpscmd -e "$x"; done""",
    'x=$(echo "a,b,c" | cut -d, -f2); odpscmd -e "$x"',
    'x=$(echo 20200101 | sed \'s/01$/31/\'); odpscmd -e "$x"',
    'x=$(echo "a b c" | awk \'{print $2}\'); odpscmd -e "$x"',
    """yesterday=$(date -d "-1 day" +%Y%m%d); last_month=$(date -d "-1 month" +%Y%m); week=$(date -d "20200105" +%u)
odpscmd -e "$yesterday $last_month"
if [ "$week" -eq 7 ]; then odpscmd -e "weekly"; fi""",
    """dt=20200331
y=${dt:0:4}; m=${dt:4:2}; d=${dt: -2}
m=$((10#$m)); d=$((10#$d))
if (( m % 3 == 0 && d == 31 )); then odpscmd -e "quarter end $y $m"; fi""",
    'month_start=$(date -d "20200315" +%Y%m01)\nmonth_end=$(date -d "$month_start +1 month -1 day" +%Y%m%d)\nodpscmd -e "$month_start $month_end"',
    'dow=$(date -d 20200301 +%w); mon=$(date -d "20200301 -$(( (dow + 6) % 7 )) days" +%Y%m%d); odpscmd -e "week of $mon"',
    'opts=""\nopts+=" -Dtables=\'odps://p/tables/t\'"\nopts="$opts -DgpuRequired=${GPU:-100}"\nodpscmd -e "pai -name tensorflow1150 $opts;"',
    'while [ $# -gt 0 ]; do\n  case "$1" in\n    --date=*) dt="${1#*=}";;\n    drop) mode=$1;;\n    *) echo bad; exit 2;;\n  esac\n  shift\ndone\nodpscmd -e '
    '"mode ${mode} ${dt:-none}"',
    'set -- -d 20200101 --mode train -v\nwhile [[ $# -gt 0 ]]; do\n  key="$1"\n  case $key in\n    -d|--date) dt="$2"; shift; shift;;\n    --mode) mode="$2"; '
    'shift 2;;\n    -v) verbose=1; shift;;\n    *) shift;;\n  esac\ndone\nodpscmd -e "$dt $mode $verbose"',
    'set -- -d 20200101 -m train\nwhile getopts "d:m:" opt; do\n  case $opt in\n    d) dt=$OPTARG;;\n    m) mode=$OPTARG;;\n  esac\ndone\nodpscmd -e "$dt '
    '$mode"',
    'log() { echo "[$(date \'+%F %T\')] $*" >&2; }\nlog start\nodpscmd -e 1\nlog "end $?"',
    """check() { if [ $? -ne 0 ]; then echo "$1 failed"; exit 1; fi; }
odpscmd -e 1; check one
odpscmd -e 2; check two""",
    'cat > /dev/null <<EOF\nx\nEOF\nSQL=$(cat <<EOF\ncreate table if not exists t_${1}\n(\n  id bigint\n) lifecycle 7;\nEOF\n)\nodpscmd -e "$SQL"',
    """for f in a.sql sub/b.sql; do
  [ -f "$f" ] || continue
  odpscmd -f "$f"
done""",
    """total=10; step=4; begin=0
while (( begin < total )); do
  end=$(( begin + step > total ? total : begin + step ))
  odpscmd -e "select * from t where id >= $begin and id < $end;"
  begin=$end
done""",
    'i=10; while ((i--)); do ((i%5)) || odpscmd -e "$i"; done',
    'for i in $(seq 7 -1 5); do odpscmd -e "drop $i"; done; for i in `seq 1 2`; do odpscmd -e "b$i"; done',
    'days=3; for ((d=days; d>=1; d--)); do dt=$(date -d "2020-03-02 $d days ago" +%Y%m%d); if [[ $dt == 202002* ]]; then odpscmd -e "feb $dt"; else odpscmd '
    '-e "mar $dt"; fi; done',
    'declare -a parts=("ds=\'1\'" \'ds=2\'); for p in "${parts[@]}"; do odpscmd -e "add partition ($p);"; done; odpscmd -e "${#parts[@]} ${parts[@]: -1}"',
    'MODEL_DIR=oss://b/model/; MODEL_DIR=${MODEL_DIR%/}; bucket=${MODEL_DIR#oss://}; bucket=${bucket%%/*}; odpscmd -e "$bucket ${MODEL_DIR##*/}"',
    'hour=08; if [ $hour -lt 10 ]; then odpscmd -e "early ${hour#0}"; fi; h=$((10#$hour + 1)); printf -v hh \'%02d\' $h; odpscmd -e "next $hh"',
    'env=prod; case "$env" in dev|test) P=p_dev;; prod*) P=p_prod;; *) exit 1;; esac; odpscmd --project=$P -e "use $P;"',
    '[ -z "${1:-}" ] && { echo usage; exit 1; }; [[ -n ${2-} ]] || odpscmd -e "no second"; [ "${1,,}" = "drop" -a 1 -eq 1 ] && odpscmd -e "first"',
    'lr=0.01; epochs=5; params="--lr=${lr} --epochs=${epochs}"; for bs in 128 256; do odpscmd -e "pai -name tensorflow1150 '
    '-DuserDefinedParameters=\\"${params} --bs=${bs}\\";"; done',
    'n=0; for t in a b c; do ((n+=1)); ((n==2)) && continue; odpscmd -e "$n:$t"; done; odpscmd -e "total=$n"',
    'set -e; i=0; while [ $i -lt 2 ]; do odpscmd -e "$i"; let i++ || true; done; odpscmd -e end',
    """set -e
i=0
while [ $i -lt 2 ]; do odpscmd -e "$i"; let i++; done; odpscmd -e end""",
    'cnt=`expr 3 \\* 4`; half=`expr $cnt / 5`; odpscmd -e "$cnt $half $(expr $cnt - 13)"',
    'today=20200301; for off in 1 7 30; do p=$(date -d "${today} -${off}day" "+%Y%m%d"); odpscmd -e "$off:$p"; done',
    'ts=$(date -d "2020-03-01 08:30:00" +%s); later=$((ts + 3600)); odpscmd -e "$(date -d @$later \'+%Y-%m-%d %H:%M:%S\')"',
    'first=$(date -d "20200229 last month" +%Y%m); next=$(date -d "20200201 next month" +%Y%m%d); odpscmd -e "$first $next"',
    'IFS=- read y m d <<< "2020-03-01"; odpscmd -e "$y/$m/$d"; read a <<< "  x y  "; odpscmd -e "[$a]"; IFS= read -r b <<< "  x "; odpscmd -e "[$b]"',
    'sqls=("select 1;" "select 2;"); for i in "${!sqls[@]}"; do echo "run $((i+1))/${#sqls[@]}"; odpscmd -e "${sqls[$i]}"; done',
    'run() { local t=$1; shift; for c in "$@"; do odpscmd -e "$t.$c"; done; }; run t{1,2} x; run "u v" "$@" \'p q\'',
    'max() { if [ $1 -gt $2 ]; then echo $1; else echo $2; fi; }; m=$(max 3 7); odpscmd -e "$m"; f() { local n=$1; [ $n -le 1 ] && { echo 1; return; }; echo '
    '$(( n * $(f $((n-1))) )); }; odpscmd -e "$(f 5)"',
    'w=$(echo "tensorflow-1.15.5" | cut -d- -f2); major=${w%%.*}; minor=$(echo $w | awk -F. \'{print $2}\'); odpscmd -e "$w $major"',
    'lines=$(printf \'a\\nb\\nc\\n\' | wc -l); odpscmd -e "$lines"; last=$(printf \'%s\\n\' x y z | tail -1); odpscmd -e "$last"',
    't=feature; for v in v{1..2}_{a,b}; do odpscmd -e "create table if not exists ${t}_$v like ${t};"; done',
    'i=1; until (( i > 3 )); do [[ $i =~ ^[13]$ ]] && odpscmd -e "odd $i"; (( i++ )); done',
    'while :; do x=${x:-0}; x=$((x+1)); [ $x -lt 3 ] || break; odpscmd -e $x; done',
    'x=5; while [ $x -gt 0 ]; do x=$((x-2)); done; odpscmd -e "$x"; y=$((x<0?-x:x)); odpscmd -e $y',
    'set -u; name="Model_A.v1"; odpscmd -e "${name,,} ${name//[._]/-} ${name/%.v1/.v2} ${name:0:5} ${name:(-2)} ${#name}"',
    """cat > job.sql <<EOF
$(for i in 1 2; do echo "insert $i;"; done)
EOF
odpscmd -f job.sql""",
    '{ echo "create table x;"; for i in {1..2}; do echo "insert $i;"; done; } > all.sql; odpscmd -f all.sql; rm -f all.sql',
    'echo "insert 1;" > l.txt; echo "insert 2;" >> l.txt; while read -r s; do odpscmd -e "$s"; done < l.txt',
    'dt=$(date -d "20200301" +%Y%m%d) || exit 1; [ ${#dt} -eq 8 ] || exit 1; if ! [[ "$dt" =~ ^[0-9]{8}$ ]]; then exit 1; fi; odpscmd -e "$dt"',
    'for pair in "a:1" "b:2"; do k=${pair%%:*}; v=${pair##*:}; odpscmd -e "$k=$v"; done; kv="k=v=w"; odpscmd -e "${kv#*=} ${kv##*=} ${kv%=*} ${kv%%=*}"',
    'a=1; b=2; [ $a -lt $b ] && [ "$a" != "$b" ] && odpscmd -e lt || odpscmd -e ge; ! [ $a -gt $b ] && odpscmd -e "not gt"; if (( a < b && b <= 2 || a == 9 '
    ')); then odpscmd -e arith; fi',
    's=$(date +%s); odpscmd -e 1; e=$(date +%s); echo "took $((e-s))s"; if [ $((e-s)) -gt 3600 ]; then echo slow; fi',
    'logdir=./logs/$(date +%Y%m%d); mkdir -p $logdir; odpscmd -e 1 > $logdir/a.log 2>&1; ret=$?; if [ $ret -ne 0 ]; then tail -5 $logdir/a.log; exit $ret; '
    'fi; odpscmd -e 2 >> "$logdir/b.log"',
    'pids=(); for i in 1 2; do odpscmd -e "$i"; pids+=($i); done; for p in "${pids[@]}"; do odpscmd -e "waited $p"; done',
    'count=3; for i in $(seq 1 $count); do [ $((i % 2)) -eq 0 ] && continue; odpscmd -e "shard $i of $count"; done',
    'json="{\\"ps\\":{\\"count\\":1},\\"worker\\":{\\"count\\":$((1+1))}}"; odpscmd -e "pai -name tensorflow1150 -Dcluster=\'$json\';"; odpscmd -e "pai '
    '-Dcluster=\'{\\"worker\\":{\\"count\\":2}}\'"',
    'v=\'a b\'; set -- $v c; odpscmd -e "$# $2"; for ((i=1;i<=$#;i++)); do odpscmd -e "${!i}"; done',
    'x=abc; for ((i=0; i<${#x}; i++)); do odpscmd -e "${x:$i:1}"; done',
    'arr=($(echo "x y z")); odpscmd -e "${arr[1]} ${#arr[@]}"; arr2=(`seq 1 3`); odpscmd -e "${arr2[*]}"; odpscmd -e "${arr[@]:1:1}"',
    '(( $# == 1 )) || exit 3; (( ${#1} > 3 )) && odpscmd -e "long"; [[ $# -eq 1 && $1 != keep ]] && odpscmd -e ok',
    'x=3; y=$(( x > 2 )); z=$(( (x & 1) ? 10 : 20 )); odpscmd -e "$y $z $((x**2)) $((7%3)) $((-7%3)) $((1<<4))"',
    'n=; until [ "$n" = xxx ]; do n=${n}x; odpscmd -e "$n"; done',
    'dates=(); d=20200301; for _ in 1 2 3; do dates+=("$d"); d=$(date -d "$d +1 day" +%Y%m%d); done; all=$(IFS=,; echo "${dates[*]}"); odpscmd -e "in ($all)"',
    'dates=(1 2 3); all=$(printf ",%s" "${dates[@]}"); odpscmd -e "in (${all:1})"; all=$(printf "\'%s\'," a b); odpscmd -e "in (${all%,})"',
    'cmd="odpscmd -e"; $cmd "one"; $cmd \'two three\'; args=(-e "x y"); odpscmd "${args[@]}"',
    r"""IFS=,; l=a,b; for x in $l; do odpscmd -e $x; done; IFS=$'\n'; l="a b
c d"; for x in $l; do odpscmd -e "$x"; done; unset IFS; l=" p  q "; for x in $l; do odpscmd -e "$x"; done""",
    'set -- a b; IFS=,; x="$*"; odpscmd -e "select $x"; a=(x y); odpscmd -e "${a[*]}"; IFS=; odpscmd -e "$*"',
    'f() { for x in "${@:2}"; do odpscmd -e "$x"; done; for x in "${@:2:1}"; do odpscmd -e "$x"; done; odpscmd -e "${@: -1}"; }; f a \'b c\' d; a=(1 2 3); '
    'for x in "${a[@]:1}" "${a[@]: -1}" "${a[@]:0:2}"; do odpscmd -e $x; done',
    'old=$IFS; IFS=,; set -- x,y; odpscmd -e "$#"; set -- $1; odpscmd -e "$# $2"; IFS=$old',
    'IFS=,; read -r a b <<< "1,2"; odpscmd -e "$b"; x="1,2"; odpscmd -e "$x"; y=($x); odpscmd -e "${y[1]}"',
    'date() { echo 20990101; }; odpscmd -e "$(date +%F)"; seq() { echo 9; }; for i in $(seq 1 3); do odpscmd -e $i; done; tr() { echo no; }; odpscmd -e '
    '"$(echo a | tr a b)"',
    'alias date=\'echo x\'; odpscmd -e "$(date -d 20200101 +%F)"',
    'x=1; echo a | while read y; do x=2; odpscmd -e "$y"; done; odpscmd -e $x',
    'i=0; while [ $i -lt 3 ]; do i=$((i+1)); if [ $i -eq 2 ]; then (exit 3); fi; done; odpscmd -e "$?"',
    'for i in 1 2; do false; done; odpscmd -e $?; while false; do :; done; odpscmd -e $?; for ((i=0;i<1;i++)); do (exit 4); done; odpscmd -e $?; false; for i '
    'in; do :; done; odpscmd -e $?',
    'i=0; while ((i<2)); do ((i++)); done; odpscmd -e $?; until ((i==0)); do ((i--)); (exit 5); done; odpscmd -e "$?"',
    'set -e; for i in 1 2; do [ $i = 1 ] && odpscmd -e $i; done; odpscmd -e end',
    'set -e; for i in 1 2; do [ $i = 2 ] && odpscmd -e $i; done; odpscmd -e end',
    'set -e; while [ "${k:=0}" -lt 2 ]; do k=$((k+1)); odpscmd -e $k; done; ((k==3)) || odpscmd -e no; x=$((k-2)); odpscmd -e "x$x"; ((x)); odpscmd -e never',
    'f() { while true; do return 7; done; }; f; odpscmd -e $?; g() { for i in 1 2 3; do [ $i = 2 ] && return; odpscmd -e $i; done; }; g; (while true; do exit '
    '4; done); odpscmd -e $?',
    'for i in 1 2; do while true; do continue 2; done; odpscmd -e no; done; odpscmd -e $i; while true; do for j in a; do break 2; done; done; odpscmd -e out',
    "while true; do x=$(echo y); break; done; odpscmd -e $x; while read z && [ $z != c ]; do odpscmd -e $z; done <<< $'a\\nb\\nc\\nd'",
    'i=0; { while [ $i -lt 2 ]; do echo "insert $i;"; i=$((i+1)); done; } | odpscmd; for i in a b; do echo "q $i"; done > f.sql; odpscmd -f f.sql; i=0; while '
    '[ $((i++)) -lt 2 ]; do echo $i; done >> f.sql; odpscmd < f.sql',
    'x=\'a.b.c\'; odpscmd -e "${x//./}"; z=${x//./ }; for i in $z; do odpscmd -e $i; done; odpscmd -e "${x/[.]/_} ${x//[^a-c]/} ${x//[!b]}"',
    'x=$\'l1\\nl2\'; odpscmd -e "${x//$\'\\n\'/ }"; odpscmd -e "${x%%$\'\\n\'*}"; odpscmd -e "$(echo "$x" | tail -1) $(echo "$x" | wc -l)"',
    'x=abc; odpscmd -e "${x:1:-1} ${x::2} ${x:0:${#x}-1}"; odpscmd -e "${x: -1}${x:$((${#x}-2)):1}"',
    'x=1; ((x+=1, y=x*2)); odpscmd -e "$x $y"; : $((x++)); odpscmd -e $x; [ $((x++)) -eq 3 ] && odpscmd -e "$x"',
    'odpscmd -e "{1..3}" ; echo {1..3} > x.txt; read a b c < x.txt; odpscmd -e "$c"; mkdir -p d/{a,b}; odpscmd -e "$(echo {x,y}{1,2})"',
    'LANG=C; date +%F > d.txt; D=$(cat d.txt); [ "$D" = "$(date +%F)" ] && odpscmd -e same',
    'echo "a b" | { read x y; odpscmd -e "$y-$x"; }; echo 3 | (read n; for ((i=0;i<n;i++)); do odpscmd -e $i; done)',
    'echo "insert 1" >&2 |& odpscmd; echo "insert 2" |& odpscmd',
    'odpscmd -e 1 |& tee log; { echo a >&2; echo "insert b"; } | odpscmd',
    'for i in $(seq 01 03); do odpscmd -e $i; done; seq -w 1 10 | head -1 | while read n; do odpscmd -e $n; done',
    'i=0; [[ $((i++)) -eq 0 ]] && odpscmd -e $i',
    'i=0; x=$((i++)) y=$((i++)); odpscmd -e "$i$x$y"; echo $((i++)) > f$((i++)); odpscmd -e $i',
    'n=2; start=1; for ((i=start;i<=n;i++)); do odpscmd -e $i; done; for ((i=n;i;)); do ((i--)); odpscmd -e $i; done',
    'printf \'a\\nb\' | while read -r x; do odpscmd -e "$x"; done; printf \'a\\nb\' | while read -r x || [ -n "$x" ]; do odpscmd -e "$x"; done',
    'i=5; while [ $i -gt 0 ]; do i=$((i-1)); [ $i -eq 2 ] && break; done && odpscmd -e "broke $i"; while false; do :; done || odpscmd -e no',
    'x=0; f() { x=$((x+1)); [ $x -ge 3 ]; }; until f; do odpscmd -e $x; done; while f && [ $x -lt 6 ]; do odpscmd -e "w$x"; done',
    'x=a; while [[ ${#x} -lt 4 ]]; do x+=a; done; odpscmd -e $x; x=aaa; x=${x/a/b}${x//a}; odpscmd -e "$x"',
    'd=20191230; n=0; while [[ $d < 20200102 ]]; do odpscmd -e "$d $(date -d $d +%j)"; d=$(date -d "$d next day" +%Y%m%d); done',
    'odpscmd -e "$(date -u -d \'2020-03-01 12:00:00\' +%s) $(date -u -d @0 \'+%F %T\') $(date --date \'20200301 10 days\' +%F) $(date -d \'2020-03-01 12:00 2 '
    'hours ago\' +%H:%M)"',
    'odpscmd -e "$(date -d \'20200301 -1 month\' \'+%Y-%m\') $(date -d \'20200331 -1 month\' \'+%Y-%m-%d\') $(date -d \'2020-02-29 +1 year\' +%F) $(date -d '
    '\'2020-03-01 -1 week\' +%U)"',
    'x=5; x=$((x > 3 && x < 10)); odpscmd -e $x; ((x == 1)) && { odpscmd -e one; } ; if ((x)); then odpscmd -e yes; fi; ((!x)) || odpscmd -e not',
    'for x in a b; do for ((i=0;i<2;i++)); do [ $i = 1 ] && continue 2; odpscmd -e $x$i; done; done; for f in {1,2}.txt; do odpscmd -e "$f"; done',
    'for i in 1 2 3; do odpscmd -e $i || break; [ $i -eq 2 ] && exit 0; done; odpscmd -e never',
    'x="a  b"; y=$(echo $x); z=$(echo "$x"); odpscmd -e "$y|$z"; w=`echo "a\\\\\\\\b"`; odpscmd -e "${#y} ${#z}"',
    's=abc; [[ $s == a* ]] && odpscmd -e 1; [[ $s == [a-b]* ]] && odpscmd -e 2; case $s in [!x-z]*) odpscmd -e 3;; esac; [[ $s =~ b ]] && odpscmd -e 4; [[ $s '
    '=~ ^(ab|x)c?$ ]] && odpscmd -e 5',
    'x=1; [ "$x" = 1 ] && for i in {1..2}; do odpscmd -e $i; done || odpscmd -e no; if for i in 1; do false; done; then odpscmd -e y; else odpscmd -e n; fi',
    """cat <<E | while read a b; do odpscmd -e "$b $a"; done
x 1
y 2
E""",
    'trap \'echo bye\' EXIT; odpscmd -e 1; (for i in {1..2}; do odpscmd -e $i; done); odpscmd -e "$(for i in {1..3}; do printf \'%s,\' $i; done)"',
    'set -e; x=$(false | cat); odpscmd -e 1; y=$(echo a; false); odpscmd -e 2',
    'set -e; x=$(echo a | tr a b; exit 3) || true; odpscmd -e "$x"; z=$(seq 1 0); odpscmd -e "[$z]"',
    'x=$(printf \'a b\\n\'); for w in $x; do odpscmd -e $w; done; for w in "$x"; do odpscmd -e "$w"; done; for w in $(echo \'a*b\'); do echo $w; done; '
    'odpscmd -e end',
    'i=0; f() { i=$((i+1)); echo $i; }; a=$(f); b=$(f); odpscmd -e "$a$b$i"; f >/dev/null; odpscmd -e $i; f | cat; odpscmd -e $i',
    'i=0; while [ $i -lt 2 ]; do i=$((i+1)); done < rows.csv; odpscmd -e $i; for x in 1 2; do echo "$x"; done > o.txt; while read n; do odpscmd -e "n$n"; '
    'done < o.txt',
    'i=0; (while [ $i -lt 2 ]; do i=$((i+1)); odpscmd -e $i; done); odpscmd -e "$i"; while [ $i -lt 2 ]; do i=$((i+1)); done | cat; odpscmd -e $i',
    r"""while read -r line; do case $line in \#*|"") continue;; end) break;; esac; odpscmd -e "$line"; done <<'X'
# c

a b
end
c
X""",
    'echo "a,b;c" | tr \',;\' \'\\n\\n\' | while read x; do odpscmd -e $x; done; l="x,y"; for t in ${l//,/ }; do odpscmd -e $t; done; for t in $(echo $l | '
    'sed \'s/,/ /g\'); do odpscmd -e $t; done',
    'x=$(cat a.sql); odpscmd -e "$x"',
    'sql=$(cat a.sql | tr -d \'\\n\'); odpscmd -e "$sql"',
    'n=$(echo "1 2 3" | wc -w); for ((i=0;i<n;i++)); do odpscmd -e $i; done; if [ $n -gt 2 ]; then odpscmd -e many; fi',
    'f() { local -a q=(1 2); local i; for i in "${q[@]}"; do odpscmd -e "$i"; done; }; i=9; f; odpscmd -e $i',
    'f() { local i; for ((i=0;i<2;i++)); do g $i; done; }; g() { local i=$1; ((i+=10)); odpscmd -e $i; }; i=7; f; odpscmd -e $i',
    'x=10; f() { local x; while [ ${x:=0} -lt 2 ]; do x=$((x+1)); done; odpscmd -e $x; }; f; odpscmd -e $x',
    'printf -v a \'%s-\' x y; odpscmd -e "$a"; printf -v b \'%d\' 5 6; odpscmd -e "$b"; printf \'%s\\n\' "insert 1;" "insert 2;" | odpscmd; printf '
    '"%-3s|%3d|%03d\\n" ab 5 7 | odpscmd',
    'echo -n "x" | odpscmd; echo -e "a\\tb" | odpscmd; echo -E \'a\\nb\' | odpscmd; echo | odpscmd; echo "" "a" | odpscmd',
    'x=5; case $((x%2)) in 0) odpscmd -e even;; 1) odpscmd -e odd;; esac; case "$(date -d 20200301 +%u)" in 6|7) odpscmd -e weekend;; *) odpscmd -e week;; esac',
    'for d in $(seq 0 2); do ds=$(date -d "20200301 $d days ago" +%Y%m%d); [ "$(date -d "$ds" +%d)" = 01 ] && { odpscmd -e "first $ds"; continue; }; odpscmd '
    '-e "$ds"; done',
    's=20200101; e=20200103; for ((t=$(date -u -d $s +%s); t<=$(date -u -d $e +%s); t+=86400)); do odpscmd -e "$(date -u -d @$t +%Y%m%d)"; done',
    'x="a.b"; p=(${x//./ }); odpscmd -e "${p[0]} ${p[1]} ${#p[@]}"; IFS=. ; q=($x); odpscmd -e "${q[1]}"',
    'i=3; while [ "$i" != 0 ]; do odpscmd -e "t-$i"; : $((i = i - 1)); done; while ((i++ < 2)); do odpscmd -e "u$i"; done; odpscmd -e $i',
    'd=20200301; d=$(date -d "${d:0:4}-${d:4:2}-${d:6:2} -1 days" +"%Y-%m-%d"); odpscmd -e "$d"; d=$(date +%F -d "$d"); odpscmd -e "${d//-}"',
    'if [ "$(echo abc | cut -c1)" = a ] && [ $(expr 2 + 3) -eq 5 ] && [ "$(basename /x/y.z .z)" = y ]; then odpscmd -e yes; fi',
    'x=$(dirname "$0"); cd "$x" 2>/dev/null; SCRIPT_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd); echo $SCRIPT_DIR; odpscmd -e 1',
    'export A=1 B=2; for v in A B; do odpscmd -e "$v=${!v}"; done; x=A; [ -n "${!x}" ] && odpscmd -e set',
    't=(a1 b2 c3); for x in "${t[@]:1}" "p${t[@]%[0-9]}" "${t[@]#a}" "x${t[@]^^}" "${t[@]/#/tmp_}" "x${!t[@]}" "${t[*]:1}"; do odpscmd -e "$x"; done',
    'run() { odpscmd -e "$# $1 $2"; }; set -- a b c; run "x${@:1}" "drop table log1"; run "${@:2}"; run "x${1+$@}"; run "x${none:-$@}"; run "${@: -1}"',
    't=(a "b c"); e=(); for x in "${t[@]:-none}" "${e[@]:-none}" "x${t[@]+"${t[@]}"}" "${e[@]+"${e[@]}"}" "x${@:-none}"; do odpscmd -e "[$x]"; done',
    'for d in ${DAYS:-"2026-01-01 00:00:00" "2026-01-02 00:00:00"} ${T-t1\\ t2} ${T-\'p q\' r}; do odpscmd -e "$d"; done; set -- ${A:-"a b" c}; odpscmd -e '
    '"$#$1"',
    'a=(${T:-"t1 t2"} z); odpscmd -e "${#a[@]}"; for x in ${U:="a b"} ${a:+"q r"}; do odpscmd -e "$x"; done; odpscmd -e "${V:-"x y"} ${V:-\'}\'}"',
    "d=20260131; odpscmd <<E\n${n:-\"q\"} ${d: -2} $((2==2))\nE\nd=20260131; odpscmd -e \"${d: -2} ${d/#20/x} $((d==20260131))\"",
    'T=a; T+=(b); odpscmd -e "${T[*]}"; T=z; odpscmd -e "${T[*]}"; x=$(<a.sql); odpscmd -e "$x"; T=(""); for x in "${T}${T[@]}" x${T[*]}; do odpscmd -e '
    '"[$x]"; done',
    'IFS=,; a=(x y); e=(); odpscmd -e "${a[*]} $*"; for x in ${n:-p,q "r,s"}; do odpscmd -e "$x"; done; odpscmd -e "${e[0]-none} ${a[5]-none}"',
    'odpscmd -e "${none:-"${1:-"a}b"}"}${none:-\'c\'}"; x="a}b"; odpscmd -e "${x%\'}b\'}"',
    'a=1; until ((a>100)); do ((a*=3)); done; odpscmd -e $a; ((b=a/10, c=a%10)); odpscmd -e "$b $c $((b>c?b:c))"; ((a>>=1)); odpscmd -e $((a&7|8^1))',
    "exec >> run.log; exec 2> /dev/null; exec < /dev/null; odpscmd -e 1 2>&1 > /dev/null; echo 2 > x.sql 2> y; odpscmd -f x.sql",
    "exec >> run.log 2>&1; odpscmd -e 1; x=$(echo a >&2; echo b); odpscmd -e $x",
    "odpscmd -e 1; exit \u00b2; odpscmd -e 2",
    'rm -f *.sql; echo "select 1;" > x.sql; odpscmd -f x.sql',
    "mkdir -p logs; rm -rf sub logs; odpscmd -f a.sql; mkdir -p sub; echo q > sub/b.sql; odpscmd -f sub/b.sql",
    "tar -czf code.tgz sub *.csv; grep -q a $1; odpscmd -f a.sql; rm -rf code.tgz; odpscmd -f sub/b.sql",
    'x=$(echo -eE "a\\nb"); y=$(echo -E -ne "a\\nb"); odpscmd -e "$x$y"; odpscmd -e "$(echo a-b | tr - _)"',
]  # fmt: skip
