# From the output of `cargo test --no-fail-fast` the first lines of what each failed test printed, since a long log is often cut.
/^---- .* stdout ----$/ { left = 30 }
/^failures:$/ || /^test result: / { left = 0 }
left > 0 && NF { left--; print substr($0, 1, 400) }
