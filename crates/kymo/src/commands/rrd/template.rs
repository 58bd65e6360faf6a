//! `update --template` through a daemon, which knows no templates: values get the order of the file's sources,
//! with `U` for sources that the template lacks.

use kymo_rrd::Header;

use super::message::Message;

/// Reorders the fields of each of the `values` to the file's order.
pub(super) fn apply(
    template: &[u8],
    header: &Header,
    values: &[&[u8]],
) -> Result<Vec<Vec<u8>>, Message> {
    let names: Vec<&[u8]> = header.ds.iter().map(|source| source.name()).collect();
    let wanted = fields(template);
    values
        .iter()
        .map(|value| map(template, &wanted, &names, value))
        .collect()
}

fn map(
    template: &[u8],
    wanted: &[&[u8]],
    names: &[&[u8]],
    value: &[u8],
) -> Result<Vec<u8>, Message> {
    let given = fields(value);
    let count = given.len().wrapping_sub(1);
    if wanted.len() != count {
        let text = format!(
            "rrd_map_template_to_values: mismatch of number of fields in template ({}) with number of fields in values ({count})",
            wanted.len()
        );
        return Err(text.into());
    }
    if wanted.len() > names.len() {
        let text = format!(
            "rrd_map_template_to_values: number of fields in template ({}) bigger than number of fields in rrdfile ({})",
            wanted.len(),
            names.len()
        );
        return Err(text.into());
    }
    let (mut mapped, mut found) = (given[0].to_vec(), 0);
    for name in names {
        mapped.push(b':');
        match wanted.iter().position(|each| each == name) {
            Some(at) => {
                mapped.extend_from_slice(given[at + 1]);
                found += 1;
            }
            None => mapped.push(b'U'),
        }
    }
    if found != wanted.len() {
        return Err(Message::of(&[
            b"rrd_map_template_to_values: there are fields in template (",
            template,
            b") that are not in the rrdfile (",
            &names.join(&b':'),
            b")",
        ]));
    }
    Ok(mapped)
}

/// Fields between colons; an empty text has no fields.
fn fields(text: &[u8]) -> Vec<&[u8]> {
    match text {
        b"" => Vec::new(),
        text => text.split(|&byte| byte == b':').collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_order_of_the_file() {
        let names: [&[u8]; 3] = [b"a", b"b", b"c"];
        for (template, value, expected) in [
            ("b", "N:1", "N:U:1:U"),
            ("c:a", "5:1:2", "5:2:U:1"),
            ("a:b:c", "5:1:2:3", "5:1:2:3"),
            (
                "b",
                "N:1:2",
                "mismatch of number of fields in template (1) with number of fields in values (2)",
            ),
            (
                "",
                "",
                "mismatch of number of fields in template (0) with number of fields in values (18446744073709551615)",
            ),
            (
                "a:b:c:d",
                "5:1:2:3:4",
                "number of fields in template (4) bigger than number of fields in rrdfile (3)",
            ),
            (
                "d",
                "5:1",
                "there are fields in template (d) that are not in the rrdfile (a:b:c)",
            ),
            (
                "a:a",
                "5:1:2",
                "there are fields in template (a:a) that are not in the rrdfile (a:b:c)",
            ),
        ] {
            let wanted = fields(template.as_bytes());
            let mapped = map(template.as_bytes(), &wanted, &names, value.as_bytes());
            let text = mapped.unwrap_or_else(|message| message.0);
            let text = String::from_utf8(text).unwrap();
            let text = text
                .strip_prefix("rrd_map_template_to_values: ")
                .unwrap_or(&text);
            assert_eq!(text, expected, "{template}");
        }
    }
}
