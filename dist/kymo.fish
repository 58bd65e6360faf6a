# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_kymo_global_optspecs
    string join \n p/playback= s/subsys= i/interval= c/count= f/filename= cap= keep= R/runtime= sync= rawtoo show threads cost root= status= no-backoff slow-ms= align phase= D/daemon pname= runas= umask= r/rolllogs= m/messages C/config= pidfile= quiet nohup N/nice F/flush= comment= all ALL redact= verbose P/plot csv json o/options= utc sep= hr= top= procfilt= procopts= from= thru= cpufilt= dskfilt= netfilt= intfilt= slabfilt= tcpfilt= dskremap= cpuopts= dskopts= netopts= memopts= slabopts= xopts= procstate= iosize w/wide full home l/limits= vmstat export= stats statopts= offsettime= passwd= grep= extract= showheader showcolheaders A/address= insecure v x/helpextend X/helpall showsubsys showoptions showsubopts showtopopts showdefs whatsnew h/help V/version
end

function __fish_kymo_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_kymo_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_kymo_using_subcommand
    set -l cmd (__fish_kymo_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c kymo -n "__fish_kymo_needs_command" -s p -l playback -d 'Play these files or folders' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -s s -l subsys -d 'Subsystems: c cpu, j interrupts, m memory, M numa, b buddy, d disk, n net, t tcp, s sockets, i inodes, x infiniband, f nfs, E sensors, W filesystems, g cgroups, V nfs_mounts, y slab, p pressure, K kymo, Z process; upper case for detail; `+x-y` changes the default' -r
complete -c kymo -n "__fish_kymo_needs_command" -s i -l interval -d 'Seconds between samples; then of processes; default 1:60:120, with -f 10:60:120; 0: no pause, the others then count samples' -r
complete -c kymo -n "__fish_kymo_needs_command" -s c -l count -d 'End after N intervals (N + 1 samples)' -r
complete -c kymo -n "__fish_kymo_needs_command" -s f -l filename -d 'Folder of recordings, or with -P of plot files' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -l cap -d 'Most bytes of all recordings in the folder: 100M, 1G' -r
complete -c kymo -n "__fish_kymo_needs_command" -l keep -d 'Delete what is older: 7d, 12h' -r
complete -c kymo -n "__fish_kymo_needs_command" -s R -l runtime -d 'End after this long: 30s, 5m, 2h, 1d, 1w' -r
complete -c kymo -n "__fish_kymo_needs_command" -l sync -d 'At most this long from a sample to the disk; 0: each sample' -r
complete -c kymo -n "__fish_kymo_needs_command" -l root -d 'Read the kernel\'s files below this folder' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -l status -d 'When to read /proc/PID/status' -r -f -a "always\t''
never\t''
auto\t''"
complete -c kymo -n "__fish_kymo_needs_command" -l slow-ms -d 'A read that takes longer is an event' -r
complete -c kymo -n "__fish_kymo_needs_command" -l phase -d 'Milliseconds after each beat at which samples are taken, beside what else wakes up then; 10, or 0 with --align and below -i .1' -r
complete -c kymo -n "__fish_kymo_needs_command" -l pname -d 'Name of the process and of its pid file: several daemons, each with its own' -r
complete -c kymo -n "__fish_kymo_needs_command" -l runas -d 'With -D: go on as this user, who owns the folder' -r
complete -c kymo -n "__fish_kymo_needs_command" -l umask -d 'What files that are made are not, in octal: 027' -r
complete -c kymo -n "__fish_kymo_needs_command" -s r -l rolllogs -d 'Keep recordings for DAYS (7); a ring of recordings has no time at which it rolls' -r
complete -c kymo -n "__fish_kymo_needs_command" -s C -l config -d 'Take settings from this collectl.conf: DaemonCommands with -D, Interval, LimSVC, Passwd ...' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -l pidfile -d 'File with the number of the process' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -s F -l flush -d 'Without effect: each interval is written when it is over (see --sync)' -r
complete -c kymo -n "__fish_kymo_needs_command" -l comment -d 'Recorded, and written into what plot files begin with' -r
complete -c kymo -n "__fish_kymo_needs_command" -l redact -d 'What to leave out: `args` keeps the first word of command lines' -r -f -a "args\t''"
complete -c kymo -n "__fish_kymo_needs_command" -s o -l options -d 'How to stamp and round: T time, d or D date and time, m milliseconds, U seconds since 1970, n counts instead of rates, 1 or 2 decimals; of plot files z not compressed, a append to those there are, c write them again, u with the time in their names; i what files begin with; g or G fractions of numbers from G on; x disks that are exceptions alone, see -l' -r
complete -c kymo -n "__fish_kymo_needs_command" -l sep -d 'Separator of plot and CSV columns: a character, or its number' -r
complete -c kymo -n "__fish_kymo_needs_command" -l hr -d 'Repeat the header every N lines; 0: once, -1: never' -r
complete -c kymo -n "__fish_kymo_needs_command" -l top -d 'The first N processes by vsz rss syst usrt time rkb wkb iokb majf minf flt pid cpu thread ..., or slab caches by numobj actobj objsize numslab objslab totsize totchg totpct name; v: below one another, not in place' -r
complete -c kymo -n "__fish_kymo_needs_command" -l procfilt -d 'Processes to show: c comm, C comm\'s beginning, f command line, p pid, P parent, u uid, U user; `+` with their threads; or a file of such, one a line' -r
complete -c kymo -n "__fish_kymo_needs_command" -l procopts -d 'Processes: i I/O columns, m memory, x context switches, s S start time, R priority as a number, t threads, uN width of users, wN arguments, r no folders, k without shells, c with children, f faults since birth, p no new ones, I no I/O read, z of --top no zeros' -r
complete -c kymo -n "__fish_kymo_needs_command" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now' -r
complete -c kymo -n "__fish_kymo_needs_command" -l thru -d 'End after this time' -r
complete -c kymo -n "__fish_kymo_needs_command" -l cpufilt -d 'CPUs: numbers and ranges, `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_needs_command" -l dskfilt -d 'Disks whose names match, `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_needs_command" -l netfilt -d 'Interfaces whose names match, in the sum as well; `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_needs_command" -l intfilt -d 'Interrupts that match, `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_needs_command" -l slabfilt -d 'Slab caches whose names begin so' -r
complete -c kymo -n "__fish_kymo_needs_command" -l tcpfilt -d 'Protocols: i IP, t TCP, u UDP, c ICMP, I and T more counters of IP and TCP' -r
complete -c kymo -n "__fish_kymo_needs_command" -l dskremap -d 'Other names for disks' -r
complete -c kymo -n "__fish_kymo_needs_command" -l cpuopts -d 'z: no CPUs that only idle' -r
complete -c kymo -n "__fish_kymo_needs_command" -l dskopts -d 'f: fractions, i: sizes of I/Os, z: no disks that do nothing' -r
complete -c kymo -n "__fish_kymo_needs_command" -l netopts -d 'e: errors, E: only intervals with errors, i: sizes of packets, wN: width of names' -r
complete -c kymo -n "__fish_kymo_needs_command" -l memopts -d 'R: changes; P, V: physical or virtual memory alone' -r
complete -c kymo -n "__fish_kymo_needs_command" -l slabopts -d 's: no empty slab caches, S: only those that changed' -r
complete -c kymo -n "__fish_kymo_needs_command" -l xopts -d 'i: sizes of I/Os' -r
complete -c kymo -n "__fish_kymo_needs_command" -l procstate -d 'States of processes' -r
complete -c kymo -n "__fish_kymo_needs_command" -s l -l limits -d 'From when on -ox shows a disk: SVC ms of service, IOS reads or writes a second' -r
complete -c kymo -n "__fish_kymo_needs_command" -l export -d 'A line a value: lexpr[,f=N][,f=FILE]; to a carbon daemon graphite,HOST[:PORT][,b=BEFORE][,p=BEHIND][,f=N]; to Ganglia gexpr,HOST:PORT[,g|G]; vmstat; processes below their parents: proctree[,FIELD][,aAdNkTzZN]. Of several intervals i=SECONDS,min|max|avg|tot; co: what changed, or ttl=N times did not' -r
complete -c kymo -n "__fish_kymo_needs_command" -l statopts -d 'a: averages too, i: intervals too, s: also where a recording ends that the next does not continue' -r
complete -c kymo -n "__fish_kymo_needs_command" -l offsettime -d 'Seconds to add to the times of what is played' -r
complete -c kymo -n "__fish_kymo_needs_command" -l passwd -d 'Names of users, in place of /etc/passwd' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -l grep -d 'Of what is played, the recorded lines that match, behind their times; see -o' -r
complete -c kymo -n "__fish_kymo_needs_command" -l extract -d 'Write what is between --from and --thru into this folder, or into files whose names begin so' -r -F
complete -c kymo -n "__fish_kymo_needs_command" -s A -l address -d 'Send it to clients of a unix socket (a PATH with a / in it; without one kymo-live.sock in $XDG_RUNTIME_DIR, root\'s in /run), or by TCP on this machine, without command lines and users; connect:HOST[:PORT] connects instead' -r
complete -c kymo -n "__fish_kymo_needs_command" -l rawtoo -d 'With -P -f: also record'
complete -c kymo -n "__fish_kymo_needs_command" -l show -d 'Also show live what is recorded'
complete -c kymo -n "__fish_kymo_needs_command" -l threads -d 'Record threads too'
complete -c kymo -n "__fish_kymo_needs_command" -l cost -d 'Print what the run cost'
complete -c kymo -n "__fish_kymo_needs_command" -l no-backoff -d 'Go on reading slow files at each sample'
complete -c kymo -n "__fish_kymo_needs_command" -l align -d 'Begin at a multiple of the processes\' interval, if these are read, not only of the first'
complete -c kymo -n "__fish_kymo_needs_command" -s D -l daemon -d 'Go on in the background; with -f, or with -A of clients'
complete -c kymo -n "__fish_kymo_needs_command" -s m -l messages -d 'With -D: write what is said into HOST-collectl-YYYYMM.log beside the recordings'
complete -c kymo -n "__fish_kymo_needs_command" -l quiet -d 'Do not say what is waited for'
complete -c kymo -n "__fish_kymo_needs_command" -l nohup -d 'Go on when the terminal is closed'
complete -c kymo -n "__fish_kymo_needs_command" -s N -l nice -d 'Let all other programs go first'
complete -c kymo -n "__fish_kymo_needs_command" -l all -d 'All summaries but slabs'
complete -c kymo -n "__fish_kymo_needs_command" -l ALL -d 'All there is, but for the summary of slabs'
complete -c kymo -n "__fish_kymo_needs_command" -l verbose -d 'One line of labelled columns for each subsystem instead of one for all'
complete -c kymo -n "__fish_kymo_needs_command" -s P -l plot -d 'collectl\'s plot format; with -f into files'
complete -c kymo -n "__fish_kymo_needs_command" -l csv -d 'Comma-separated values, one table a subsystem'
complete -c kymo -n "__fish_kymo_needs_command" -l json -d 'One JSON object a line'
complete -c kymo -n "__fish_kymo_needs_command" -l utc -d 'Same as -oU'
complete -c kymo -n "__fish_kymo_needs_command" -l iosize -d 'Sizes of I/Os and packets in brief format'
complete -c kymo -n "__fish_kymo_needs_command" -s w -l wide -d 'Numbers in full, not shortened to K, M, G'
complete -c kymo -n "__fish_kymo_needs_command" -l full -d 'Verbose, and the line above several tables names their letters'
complete -c kymo -n "__fish_kymo_needs_command" -l home -d 'The cursor goes to the top before each interval'
complete -c kymo -n "__fish_kymo_needs_command" -l vmstat -d 'As vmstat shows it'
complete -c kymo -n "__fish_kymo_needs_command" -l stats -d 'Totals of what is played; with --statopts i behind its intervals'
complete -c kymo -n "__fish_kymo_needs_command" -l showheader -d 'Show the header that plot files begin with, or of collectl\'s files their own'
complete -c kymo -n "__fish_kymo_needs_command" -l showcolheaders -d 'Show what stands over the columns'
complete -c kymo -n "__fish_kymo_needs_command" -l insecure -d 'With -A: other addresses than this machine\'s own too, which anybody reads who reaches them'
complete -c kymo -n "__fish_kymo_needs_command" -s v -d 'Print the version'
complete -c kymo -n "__fish_kymo_needs_command" -s x -l helpextend -d 'Print all switches'
complete -c kymo -n "__fish_kymo_needs_command" -s X -l helpall -d 'Print all switches, and the answers of --show...'
complete -c kymo -n "__fish_kymo_needs_command" -l showsubsys -d 'Print the letters of -s'
complete -c kymo -n "__fish_kymo_needs_command" -l showoptions -d 'Print the letters of -o'
complete -c kymo -n "__fish_kymo_needs_command" -l showsubopts -d 'Print the options and filters of subsystems'
complete -c kymo -n "__fish_kymo_needs_command" -l showtopopts -d 'Print the orders of --top'
complete -c kymo -n "__fish_kymo_needs_command" -l showdefs -d 'Print defaults'
complete -c kymo -n "__fish_kymo_needs_command" -l whatsnew -d 'Print what is new'
complete -c kymo -n "__fish_kymo_needs_command" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_needs_command" -s V -l version -d 'Print version'
complete -c kymo -n "__fish_kymo_needs_command" -a "record" -d 'Record this machine'
complete -c kymo -n "__fish_kymo_needs_command" -a "play" -d 'Show a recording, or a file of collectl'
complete -c kymo -n "__fish_kymo_needs_command" -a "serve" -d 'Record this machine and show it to browsers and programs'
complete -c kymo -n "__fish_kymo_needs_command" -a "config" -d 'Print the configuration of serve with each key explained'
complete -c kymo -n "__fish_kymo_needs_command" -a "discover" -d 'Find devices that answer SNMP, and write their tables'
complete -c kymo -n "__fish_kymo_needs_command" -a "graph" -d 'Draw graphs into an SVG or PNG file'
complete -c kymo -n "__fish_kymo_needs_command" -a "programs" -d 'Show the work that programs on this machine publish'
complete -c kymo -n "__fish_kymo_needs_command" -a "top" -d 'Show a machine, or several, now and at any time back'
complete -c kymo -n "__fish_kymo_needs_command" -a "why" -d 'Find the trouble at a time, and its processes'
complete -c kymo -n "__fish_kymo_needs_command" -a "query" -d 'Evaluate an expression of PromQL'
complete -c kymo -n "__fish_kymo_needs_command" -a "watch" -d 'Say, or run a command, when an expression begins and ends'
complete -c kymo -n "__fish_kymo_needs_command" -a "series" -d 'List, print and remove series that others sent'
complete -c kymo -n "__fish_kymo_needs_command" -a "dump" -d 'Print recorded texts as the kernel gave them'
complete -c kymo -n "__fish_kymo_needs_command" -a "export" -d 'Write a recording, or a part, into one file'
complete -c kymo -n "__fish_kymo_needs_command" -a "import" -d 'Move what others have kept into the store of serve'
complete -c kymo -n "__fish_kymo_needs_command" -a "backup" -d 'Copy the data of serve into a folder of backups, or to S3'
complete -c kymo -n "__fish_kymo_needs_command" -a "restore" -d 'Make a data folder again from a backup'
complete -c kymo -n "__fish_kymo_needs_command" -a "doctor" -d 'Measure the cost of reading each source'
complete -c kymo -n "__fish_kymo_needs_command" -a "cost" -d 'Measure the cost of recording'
complete -c kymo -n "__fish_kymo_needs_command" -a "verify" -d 'Check a store, or a recording, for damage'
complete -c kymo -n "__fish_kymo_needs_command" -a "status" -d 'Show contents, size and delays of a store'
complete -c kymo -n "__fish_kymo_needs_command" -a "completions" -d 'Print completions for bash, zsh or fish'
complete -c kymo -n "__fish_kymo_needs_command" -a "man" -d 'Write manual pages into a folder'
complete -c kymo -n "__fish_kymo_needs_command" -a "collectl" -d 'Run as collectl: switches, settings, exit codes'
complete -c kymo -n "__fish_kymo_needs_command" -a "rrd" -d 'Run rrdtool\'s commands on files and through daemons'
complete -c kymo -n "__fish_kymo_needs_command" -a "rrdcached" -d 'Run as rrdcached: take values, keep .rrd files'
complete -c kymo -n "__fish_kymo_needs_command" -a "poll" -d 'Poll devices by SNMP as an mrtg.cfg says'
complete -c kymo -n "__fish_kymo_needs_command" -a "help" -d 'Show a topic, or the help of a command'
complete -c kymo -n "__fish_kymo_using_subcommand record" -s s -l subsys -d 'Subsystems: c cpu, j interrupts, m memory, M numa, b buddy, d disk, n net, t tcp, s sockets, i inodes, x infiniband, f nfs, E sensors, W filesystems, g cgroups, V nfs_mounts, y slab, p pressure, K kymo, Z process; upper case for detail; `+x-y` changes the default' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -s i -l interval -d 'Seconds between samples; then of processes; default 1:60:120, with -f 10:60:120; 0: no pause, the others then count samples' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -s c -l count -d 'End after N intervals (N + 1 samples)' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -s f -l filename -d 'Folder of recordings, or with -P of plot files' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand record" -l cap -d 'Most bytes of all recordings in the folder: 100M, 1G' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l keep -d 'Delete what is older: 7d, 12h' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -s R -l runtime -d 'End after this long: 30s, 5m, 2h, 1d, 1w' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l sync -d 'At most this long from a sample to the disk; 0: each sample' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l root -d 'Read the kernel\'s files below this folder' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand record" -l status -d 'When to read /proc/PID/status' -r -f -a "always\t''
never\t''
auto\t''"
complete -c kymo -n "__fish_kymo_using_subcommand record" -l slow-ms -d 'A read that takes longer is an event' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l phase -d 'Milliseconds after each beat at which samples are taken, beside what else wakes up then; 10, or 0 with --align and below -i .1' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l pname -d 'Name of the process and of its pid file: several daemons, each with its own' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l runas -d 'With -D: go on as this user, who owns the folder' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l umask -d 'What files that are made are not, in octal: 027' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -s r -l rolllogs -d 'Keep recordings for DAYS (7); a ring of recordings has no time at which it rolls' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -s C -l config -d 'Take settings from this collectl.conf: DaemonCommands with -D, Interval, LimSVC, Passwd ...' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand record" -l pidfile -d 'File with the number of the process' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand record" -s F -l flush -d 'Without effect: each interval is written when it is over (see --sync)' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l comment -d 'Recorded, and written into what plot files begin with' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l redact -d 'What to leave out: `args` keeps the first word of command lines' -r -f -a "args\t''"
complete -c kymo -n "__fish_kymo_using_subcommand record" -l procfilt -d 'Processes to record: c comm, C comm\'s beginning, f command line, g control group or container, p pid, P parent, u uid, U user; `+` with their threads; or a file of such, one a line' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l procopts -d 'What of processes is recorded: p no new ones, I no I/O, t threads, too' -r
complete -c kymo -n "__fish_kymo_using_subcommand record" -l rawtoo -d 'With -P -f: also record'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l show -d 'Also show live what is recorded'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l threads -d 'Record threads too'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l cost -d 'Print what the run cost'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l no-backoff -d 'Go on reading slow files at each sample'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l align -d 'Begin at a multiple of the processes\' interval, if these are read, not only of the first'
complete -c kymo -n "__fish_kymo_using_subcommand record" -s D -l daemon -d 'Go on in the background; with -f, or with -A of clients'
complete -c kymo -n "__fish_kymo_using_subcommand record" -s m -l messages -d 'With -D: write what is said into HOST-collectl-YYYYMM.log beside the recordings'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l quiet -d 'Do not say what is waited for'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l nohup -d 'Go on when the terminal is closed'
complete -c kymo -n "__fish_kymo_using_subcommand record" -s N -l nice -d 'Let all other programs go first'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l all -d 'All summaries but slabs'
complete -c kymo -n "__fish_kymo_using_subcommand record" -l ALL -d 'All there is, but for the summary of slabs'
complete -c kymo -n "__fish_kymo_using_subcommand record" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand play" -s s -l subsys -d 'Subsystems; default: those recorded, which `+x-y` changes' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -s f -l filename -d 'Write plot files into this folder' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand play" -s c -l count -d 'End after N intervals' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -s o -l options -d 'How to stamp and round: T time, d or D date and time, m milliseconds, U seconds since 1970, n counts instead of rates, 1 or 2 decimals; of plot files z not compressed, a append to those there are, c write them again, u with the time in their names; i what files begin with; g or G fractions of numbers from G on; x disks that are exceptions alone, see -l' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l sep -d 'Separator of plot and CSV columns: a character, or its number' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l hr -d 'Repeat the header every N lines; 0: once, -1: never' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l top -d 'The first N processes by vsz rss syst usrt time rkb wkb iokb majf minf flt pid cpu thread ..., or slab caches by numobj actobj objsize numslab objslab totsize totchg totpct name; v: below one another, not in place' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l procfilt -d 'Processes to show: c comm, C comm\'s beginning, f command line, p pid, P parent, u uid, U user; `+` with their threads; or a file of such, one a line' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l procopts -d 'Processes: i I/O columns, m memory, x context switches, s S start time, R priority as a number, t threads, uN width of users, wN arguments, r no folders, k without shells, c with children, f faults since birth, p no new ones, I no I/O read, z of --top no zeros' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l thru -d 'End after this time' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l cpufilt -d 'CPUs: numbers and ranges, `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l dskfilt -d 'Disks whose names match, `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l netfilt -d 'Interfaces whose names match, in the sum as well; `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l intfilt -d 'Interrupts that match, `^` in front for all others' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l slabfilt -d 'Slab caches whose names begin so' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l tcpfilt -d 'Protocols: i IP, t TCP, u UDP, c ICMP, I and T more counters of IP and TCP' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l dskremap -d 'Other names for disks' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l cpuopts -d 'z: no CPUs that only idle' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l dskopts -d 'f: fractions, i: sizes of I/Os, z: no disks that do nothing' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l netopts -d 'e: errors, E: only intervals with errors, i: sizes of packets, wN: width of names' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l memopts -d 'R: changes; P, V: physical or virtual memory alone' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l slabopts -d 's: no empty slab caches, S: only those that changed' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l xopts -d 'i: sizes of I/Os' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l procstate -d 'States of processes' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -s l -l limits -d 'From when on -ox shows a disk: SVC ms of service, IOS reads or writes a second' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l export -d 'A line a value: lexpr[,f=N][,f=FILE]; to a carbon daemon graphite,HOST[:PORT][,b=BEFORE][,p=BEHIND][,f=N]; to Ganglia gexpr,HOST:PORT[,g|G]; vmstat; processes below their parents: proctree[,FIELD][,aAdNkTzZN]. Of several intervals i=SECONDS,min|max|avg|tot; co: what changed, or ttl=N times did not' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l statopts -d 'a: averages too, i: intervals too, s: also where a recording ends that the next does not continue' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l offsettime -d 'Seconds to add to the times of what is played' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l passwd -d 'Names of users, in place of /etc/passwd' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand play" -l grep -d 'Of what is played, the recorded lines that match, behind their times; see -o' -r
complete -c kymo -n "__fish_kymo_using_subcommand play" -l extract -d 'Write what is between --from and --thru into this folder, or into files whose names begin so' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand play" -l verbose -d 'One line of labelled columns for each subsystem instead of one for all'
complete -c kymo -n "__fish_kymo_using_subcommand play" -s P -l plot -d 'collectl\'s plot format; with -f into files'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l csv -d 'Comma-separated values, one table a subsystem'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l json -d 'One JSON object a line'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l utc -d 'Same as -oU'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l iosize -d 'Sizes of I/Os and packets in brief format'
complete -c kymo -n "__fish_kymo_using_subcommand play" -s w -l wide -d 'Numbers in full, not shortened to K, M, G'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l full -d 'Verbose, and the line above several tables names their letters'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l home -d 'The cursor goes to the top before each interval'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l vmstat -d 'As vmstat shows it'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l stats -d 'Totals of what is played; with --statopts i behind its intervals'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l showheader -d 'Show the header that plot files begin with, or of collectl\'s files their own'
complete -c kymo -n "__fish_kymo_using_subcommand play" -l showcolheaders -d 'Show what stands over the columns'
complete -c kymo -n "__fish_kymo_using_subcommand play" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand serve" -l config -d 'Configuration; default: /etc/kymo/kymo.toml if it is there. See kymo config' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand serve" -l data -d 'Folder that holds everything; default: /var/lib/kymo for root, else the XDG state folder' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand serve" -l listen -d 'Where to answer; default 127.0.0.1:4280' -r
complete -c kymo -n "__fish_kymo_using_subcommand serve" -l root -d 'Record the machine whose kernel\'s files are below this folder, such as /host in a container' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand serve" -l open -d 'Show these recordings, from any machine, and record nothing' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand serve" -l check -d 'Print what is in force, and end'
complete -c kymo -n "__fish_kymo_using_subcommand serve" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand config" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l config -d 'Compare with the tables of this kymo.toml, and list interfaces that are new, gone, renamed or faster' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -s o -l output -d 'Write the tables into a new file instead of stdout' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l global -d 'With --mrtg, a line for its begin, such as \'WorkDir: /var/www/mrtg\'' -r
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l ifref -d 'With --mrtg, refer to interfaces by the first of these that is unique: name, descr, ip, eth, nr' -r -f -a "name\t''
descr\t''
ip\t''
eth\t''
nr\t''"
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l ifdesc -d 'With --mrtg, describe interfaces by the first of these that there is: alias, descr, name, ip, eth, nr' -r -f -a "alias\t''
descr\t''
name\t''
ip\t''
eth\t''
nr\t''"
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l if-filter -d 'With --mrtg, an expression of Perl that chooses interfaces, with cfgmaker\'s variables, such as \'$default && $if_type != 23\'' -r
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l if-template -d 'With --mrtg, a template of cfgmaker\'s for interfaces, which is Perl' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l host-template -d 'With --mrtg, a template of cfgmaker\'s for devices' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l snmp -d 'Version of SNMP: 1, 2c or 3' -r -f -a "1\t''
2c\t''
3\t''"
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l community-file -d 'File with the community; default: public' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l user -d 'User of version 3' -r
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l auth -d 'Protocol of authentication' -r
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l auth-file -d 'File with the password of authentication' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l privacy -d 'Protocol of privacy' -r
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l privacy-file -d 'File with the password of privacy' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l profiles -d 'Folder with own profiles' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l apply -d 'Change the kymo.toml as listed'
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l mrtg -d 'Write an mrtg.cfg as cfgmaker does, with communities and passwords in it'
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l down -d 'Take interfaces that are down, too'
complete -c kymo -n "__fish_kymo_using_subcommand discover" -l loopback -d 'Take loopback interfaces, too'
complete -c kymo -n "__fish_kymo_using_subcommand discover" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand graph" -s s -l subsys -d 'Standard graphs of subsystems (c C p P m d D n N t s i; default cpmdn), or ids of fields such as cpu.user and disk.read_kb:sda, `:*` for all instances; of stored series @NAME:COLUMN; those of one unit share a graph' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l series -d 'All columns of stored series, which a running kymo serve is asked for: LABEL=PATTERN, LABEL!=PATTERN or a text of the name, as in kymo series ls; given several times, all have to fit' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l target -d 'The graphs of a target of the poller, by its name in the mrtg.cfg, or CONFIGURATION/NAME' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l period -d 'Which of them: day, week, month, year; default: all that it has' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l open -d 'Draw the expression over the recording and the store in this folder instead: nothing is changed there' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand graph" -s o -l output -d 'Write this file; its name ends in .svg or .png' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l thru -d 'End at this time' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l width -d 'Width of the picture in pixels' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l height -d 'Height of each graph, between its axes' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l theme -d 'Colours' -r -f -a "light\t''
dark\t''"
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l points -d 'At most so many points a curve; default: one a pixel' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -l step -d 'Time between two values of an expression, such as 15s or 5m' -r
complete -c kymo -n "__fish_kymo_using_subcommand graph" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand programs" -l at -d 'What was in flight at this time, as it was recorded' -r
complete -c kymo -n "__fish_kymo_using_subcommand programs" -l open -d 'The recording that says so; default: what kymo serve records' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand programs" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand programs" -l once -d 'Print once, and end; so it is where no terminal is written to'
complete -c kymo -n "__fish_kymo_using_subcommand programs" -l json -d 'Print JSON, once'
complete -c kymo -n "__fish_kymo_using_subcommand programs" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand top" -l at -d 'Begin at this time: 14:30, 20261121:14:30, -1h' -r
complete -c kymo -n "__fish_kymo_using_subcommand top" -l keys -d 'Press these keys first: letters and digits, as on the screen' -r
complete -c kymo -n "__fish_kymo_using_subcommand top" -l data -d 'Folder of the kymo serve whose recording is the past' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand top" -l sort -d 'Sort hosts by this column: host, cpu, load, pressure, memory, swap, disk, net, clock, age' -r
complete -c kymo -n "__fish_kymo_using_subcommand top" -l once -d 'Print the screen as text, and end; so it is where no terminal is written to. COLUMNS and LINES are its size'
complete -c kymo -n "__fish_kymo_using_subcommand top" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand why" -l json -d 'Print JSON'
complete -c kymo -n "__fish_kymo_using_subcommand why" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand query" -l time -d 'Time of the value: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now' -r
complete -c kymo -n "__fish_kymo_using_subcommand query" -l from -d 'Beginning of the values, one a step. With the end: 14:30-15:00' -r
complete -c kymo -n "__fish_kymo_using_subcommand query" -l thru -d 'Up to this time, not now' -r
complete -c kymo -n "__fish_kymo_using_subcommand query" -l step -d 'Time between two values, such as 15s or 5m; without, about 250 values fit' -r
complete -c kymo -n "__fish_kymo_using_subcommand query" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand query" -l open -d 'Read the store in this folder instead, whoever writes it: nothing is changed there' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand query" -l json -d 'The answer of Prometheus\' API'
complete -c kymo -n "__fish_kymo_using_subcommand query" -l csv -d 'A line a value: time, value, and labels'
complete -c kymo -n "__fish_kymo_using_subcommand query" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand watch" -l every -d 'Time between two evaluations' -r
complete -c kymo -n "__fish_kymo_using_subcommand watch" -l from -d 'Look at recorded samples from this time on. With the end: 14:30-15:00' -r
complete -c kymo -n "__fish_kymo_using_subcommand watch" -l thru -d 'Up to this time, not now' -r
complete -c kymo -n "__fish_kymo_using_subcommand watch" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand watch" -l open -d 'Read the store in this folder instead, whoever writes it: nothing is changed there' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand watch" -l json -d 'An object a line'
complete -c kymo -n "__fish_kymo_using_subcommand watch" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -f -a "ls" -d 'List stored series'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -f -a "show" -d 'Print rows of stored series'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -f -a "samples" -d 'Print samples as they were received, of series that a selector of PromQL picks'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -f -a "tail" -d 'Print values as they come in, until it is ended'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -f -a "events" -d 'Print what the senders of series wanted to be heard'
complete -c kymo -n "__fish_kymo_using_subcommand series; and not __fish_seen_subcommand_from ls show samples tail events rm" -f -a "rm" -d 'Remove stored series, with their values and .rrd files; or the values of a range of time'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from ls" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from ls" -l open -d 'Read the store in this folder instead, whoever writes it: nothing is changed there' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from ls" -l json -d 'An object a line'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from show" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now; or as rrdtool reads it. With the end: 14:30-15:00' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from show" -l thru -d 'End at this time, not now' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from show" -l rows -d 'Rows of each at most' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from show" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from show" -l open -d 'Read the store in this folder instead, whoever writes it: nothing is changed there' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now; or as rrdtool reads it. With the end: 14:30-15:00' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l thru -d 'End at this time, not now' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l most -d 'Samples at most, of all series together' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l open -d 'Read the store in this folder instead, whoever writes it: nothing is changed there' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l labels -d 'Labels alone'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -l json -d 'An object a line'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from samples" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from tail" -l from -d 'Begin with what the store still has in its journal, or with what comes' -r -f -a "oldest\t'With the oldest value in the journal'
now\t'With the next one'"
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from tail" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from tail" -l json -d 'An object a line'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from events" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now; or as rrdtool reads it. With the end: 14:30-15:00' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from events" -l thru -d 'End at this time, not now' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from events" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from events" -l json -d 'An object a line'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from events" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from rm" -l from -d 'Only values from this time on, as show takes it: rows that overlap the range become unknown, in .rrd files too' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from rm" -l thru -d 'Up to this time' -r
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from rm" -l data -d 'Folder of the kymo serve that is asked' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from rm" -l yes -d 'Do not ask'
complete -c kymo -n "__fish_kymo_using_subcommand series; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand dump" -l source -d 'Only this source, by its path under the root: proc/stat, proc/1/stat' -r
complete -c kymo -n "__fish_kymo_using_subcommand dump" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now' -r
complete -c kymo -n "__fish_kymo_using_subcommand dump" -l thru -d 'End after this time' -r
complete -c kymo -n "__fish_kymo_using_subcommand dump" -l raw -d 'Exact bytes on a terminal, too, where control bytes are shown as \\xNN otherwise'
complete -c kymo -n "__fish_kymo_using_subcommand dump" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand export" -l from -d 'Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now' -r
complete -c kymo -n "__fish_kymo_using_subcommand export" -l thru -d 'End after this time' -r
complete -c kymo -n "__fish_kymo_using_subcommand export" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand import" -l collectd -d 'Import the .rrd files of collectd\'s rrdtool plugin from its DataDir' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l types-db -d 'Types that the files are checked against; default: those of collectd 5.12' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l mrtg -d 'Import what MRTG has kept: all targets of configurations, from their .rrd files or MRTG\'s own .log files, or .log files alone' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l prometheus -d 'Import samples of Prometheus: by remote read from the URL of a server, or a file (or - for stdin) with the text of promtool tsdb dump' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l from -d 'With a URL, begin at this time: 20261121, 2026-11-21T14:30, -3d; or as rrdtool reads it; default: -15d' -r
complete -c kymo -n "__fish_kymo_using_subcommand import" -l thru -d 'With a URL, end at this time, not now' -r
complete -c kymo -n "__fish_kymo_using_subcommand import" -l token-file -d 'With a URL, a file with the token that the server wants' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l tls-ca -d 'With a URL of https, a file with the certificates of authorities that sign the server\'s' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l store -d 'Import the store of another kymo, whose serve may run: its data folder' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l data -d 'Data folder of kymo serve; default: that of the kymo serve that runs' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand import" -l dry-run -d 'Only say what would come'
complete -c kymo -n "__fish_kymo_using_subcommand import" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l data -d 'Data folder of kymo serve; default: that of the kymo serve that runs' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l keep -d 'Then remove old backups: keep the newest of each of the last 24 hours, 7 days and 8 weeks that have one' -r
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l endpoint -d 'URL of the server of s3://, such as http://127.0.0.1:8333; default: Amazon\'s of the region' -r
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l region -d 'Region of the bucket of s3://' -r
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l credentials -d 'File with the keys of s3://: lines aws_access_key_id = ... and aws_secret_access_key = ..., as ~/.aws/credentials' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l tls-ca -d 'Certificates of authorities for https of s3://, PEM; default: the system\'s' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand backup" -l check -d 'Also read the contents that the place has of this backup, and send those again that have changed there'
complete -c kymo -n "__fish_kymo_using_subcommand backup" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand restore" -l at -d 'The newest backup that is not later than this: 14:30, 20261121:14:30, 2026-11-21T14:30, -2h; or as rrdtool reads it' -r
complete -c kymo -n "__fish_kymo_using_subcommand restore" -l endpoint -d 'URL of the server of s3://, such as http://127.0.0.1:8333; default: Amazon\'s of the region' -r
complete -c kymo -n "__fish_kymo_using_subcommand restore" -l region -d 'Region of the bucket of s3://' -r
complete -c kymo -n "__fish_kymo_using_subcommand restore" -l credentials -d 'File with the keys of s3://: lines aws_access_key_id = ... and aws_secret_access_key = ..., as ~/.aws/credentials' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand restore" -l tls-ca -d 'Certificates of authorities for https of s3://, PEM; default: the system\'s' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand restore" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand doctor" -l root -d 'Read the kernel\'s files below this folder' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand doctor" -l json -d 'One JSON object a line'
complete -c kymo -n "__fish_kymo_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s s -l subsys -d 'Subsystems: c cpu, j interrupts, m memory, M numa, b buddy, d disk, n net, t tcp, s sockets, i inodes, x infiniband, f nfs, E sensors, W filesystems, g cgroups, V nfs_mounts, y slab, p pressure, K kymo, Z process; upper case for detail; `+x-y` changes the default' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s i -l interval -d 'Seconds between samples; then of processes; default 1:60:120, with -f 10:60:120; 0: no pause, the others then count samples' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s c -l count -d 'End after N intervals (N + 1 samples)' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s f -l filename -d 'Folder of recordings, or with -P of plot files' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l cap -d 'Most bytes of all recordings in the folder: 100M, 1G' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l keep -d 'Delete what is older: 7d, 12h' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s R -l runtime -d 'End after this long: 30s, 5m, 2h, 1d, 1w' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l sync -d 'At most this long from a sample to the disk; 0: each sample' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l root -d 'Read the kernel\'s files below this folder' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l status -d 'When to read /proc/PID/status' -r -f -a "always\t''
never\t''
auto\t''"
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l slow-ms -d 'A read that takes longer is an event' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l phase -d 'Milliseconds after each beat at which samples are taken, beside what else wakes up then; 10, or 0 with --align and below -i .1' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l pname -d 'Name of the process and of its pid file: several daemons, each with its own' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l runas -d 'With -D: go on as this user, who owns the folder' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l umask -d 'What files that are made are not, in octal: 027' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s r -l rolllogs -d 'Keep recordings for DAYS (7); a ring of recordings has no time at which it rolls' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s C -l config -d 'Take settings from this collectl.conf: DaemonCommands with -D, Interval, LimSVC, Passwd ...' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l pidfile -d 'File with the number of the process' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s F -l flush -d 'Without effect: each interval is written when it is over (see --sync)' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l comment -d 'Recorded, and written into what plot files begin with' -r
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l redact -d 'What to leave out: `args` keeps the first word of command lines' -r -f -a "args\t''"
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l rawtoo -d 'With -P -f: also record'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l show -d 'Also show live what is recorded'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l threads -d 'Record threads too'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l cost -d 'Print what the run cost'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l no-backoff -d 'Go on reading slow files at each sample'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l align -d 'Begin at a multiple of the processes\' interval, if these are read, not only of the first'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s D -l daemon -d 'Go on in the background; with -f, or with -A of clients'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s m -l messages -d 'With -D: write what is said into HOST-collectl-YYYYMM.log beside the recordings'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l quiet -d 'Do not say what is waited for'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l nohup -d 'Go on when the terminal is closed'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s N -l nice -d 'Let all other programs go first'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l all -d 'All summaries but slabs'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -l ALL -d 'All there is, but for the summary of slabs'
complete -c kymo -n "__fish_kymo_using_subcommand cost" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand verify" -l backup -d 'Check a folder of backups instead, or s3://BUCKET/PREFIX' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand verify" -l endpoint -d 'URL of the server of s3://, such as http://127.0.0.1:8333; default: Amazon\'s of the region' -r
complete -c kymo -n "__fish_kymo_using_subcommand verify" -l region -d 'Region of the bucket of s3://' -r
complete -c kymo -n "__fish_kymo_using_subcommand verify" -l credentials -d 'File with the keys of s3://: lines aws_access_key_id = ... and aws_secret_access_key = ..., as ~/.aws/credentials' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand verify" -l tls-ca -d 'Certificates of authorities for https of s3://, PEM; default: the system\'s' -r -F
complete -c kymo -n "__fish_kymo_using_subcommand verify" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand status" -l json -d 'For programs: one JSON object'
complete -c kymo -n "__fish_kymo_using_subcommand status" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kymo -n "__fish_kymo_using_subcommand man" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand collectl" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand rrd" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand rrdcached" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand poll" -s h -l help -d 'Print help'
complete -c kymo -n "__fish_kymo_using_subcommand help" -s h -l help -d 'Print help'
