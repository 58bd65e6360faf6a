# From the output of `cargo test --no-fail-fast` the arguments that run just what failed, a line a test program.
# A program lists its failures before its "test result: FAILED"; cargo names the programs at its end, in the same order.
# A program that was killed lists nothing: then all of each program is to be run.
/^failures:$/ { names = ""; next }
/^    [A-Za-z0-9_:]+$/ { names = names " " $1 }
/^test result: FAILED/ { failed[++programs] = names; names = "" }
/^error: [0-9]+ targets? failed:$/ { at_end = 1; next }
at_end && /^    `.*`$/ { gsub(/`/, ""); sub(/^ +/, ""); target[++targets] = $0 }
END {
  for (at = 1; at <= targets; at++)
    print target[at] (programs == targets ? " -- --exact" failed[at] : "")
}
