# Made from kymo --help by tests/all/man.rs.
_kymo() {
  local word=${COMP_WORDS[COMP_CWORD]} words='--ALL --address --align --all --cap --comment --config --cost --count --cpufilt --cpuopts --csv --daemon --dskfilt --dskopts --dskremap --export --extract --filename --flush --from --full --grep --help --helpall --helpextend --home --hr --insecure --interval --intfilt --iosize --json --keep --limits --memopts --messages --netfilt --netopts --nice --no-backoff --nohup --offsettime --options --passwd --phase --pidfile --playback --plot --pname --procfilt --procopts --procstate --quiet --rawtoo --redact --rolllogs --root --runas --runtime --sep --show --showcolheaders --showdefs --showheader --showoptions --showsubopts --showsubsys --showtopopts --slabfilt --slabopts --slow-ms --statopts --stats --status --subsys --sync --tcpfilt --threads --thru --top --umask --utc --verbose --version --vmstat --whatsnew --wide --xopts -A -C -D -F -N -P -R -V -X -c -f -h -i -l -m -o -p -r -s -v -w -x'
  [ "${COMP_WORDS[0]##*/}" = collectl ] || case ${COMP_WORDS[1]} in
    record) words='--ALL --align --all --cap --comment --config --cost --count --daemon --filename --flush --help --interval --keep --messages --nice --no-backoff --nohup --phase --pidfile --pname --procfilt --procopts --quiet --rawtoo --redact --rolllogs --root --runas --runtime --show --slow-ms --status --subsys --sync --threads --umask -C -D -F -N -R -c -f -h -i -m -r -s' ;;
    play) words='--count --cpufilt --cpuopts --csv --dskfilt --dskopts --dskremap --export --extract --filename --from --full --grep --help --home --hr --intfilt --iosize --json --limits --memopts --netfilt --netopts --offsettime --options --passwd --plot --procfilt --procopts --procstate --sep --showcolheaders --showheader --slabfilt --slabopts --statopts --stats --subsys --tcpfilt --thru --top --utc --verbose --vmstat --wide --xopts -P -c -f -h -l -o -s -w' ;;
    serve) words='--check --config --data --help --listen --open -h' ;;
    config) words='--help -h' ;;
    graph) words='--data --from --height --help --output --period --points --series --subsys --target --theme --thru --width -h -o -s' ;;
    programs) words='--at --data --help --json --once --open -h' ;;
    query) words='--csv --data --from --help --json --open --step --thru --time -h' ;;
    series) words='--help -h' ;;
    dump) words='--from --help --raw --source --thru -h' ;;
    export) words='--from --help --thru -h' ;;
    doctor) words='--help --json --root -h' ;;
    cost) words='--ALL --align --all --cap --comment --config --cost --count --daemon --filename --flush --help --interval --keep --messages --nice --no-backoff --nohup --phase --pidfile --pname --quiet --rawtoo --redact --rolllogs --root --runas --runtime --show --slow-ms --status --subsys --sync --threads --umask -C -D -F -N -R -c -f -h -i -m -r -s' ;;
    verify) words='--help -h' ;;
    status) words='--help --json -h' ;;
  esac
  [ "$COMP_CWORD" = 1 ] && [ "${COMP_WORDS[0]##*/}" = kymo ] && words="$words record play serve config graph programs query series dump export doctor cost verify status collectl rrd rrdcached poll"
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _kymo kymo
[ "$(readlink -f "$(type -P collectl)")" != "$(readlink -f "$(type -P kymo)")" ] || complete -o default -F _kymo collectl
