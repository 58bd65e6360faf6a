//! `restore`, of dumps and of edited dumps.

use kymo_rrd::Error;
use kymo_rrd::restore::{RangeCheck, restore};

use super::made::{Rng, file};
use super::stock::{Stock, assert_same, unrotated};

const FILES: usize = 120;

#[test]
fn restored_dumps_are_rrdtools() {
    let mut rng = Rng(0x5eed_0007);
    let mut stock = Stock::start("rrd-restore");
    for i in 0..FILES {
        let made = file(&mut rng, &mut stock, &format!("{i}.rrd"));
        let head = rng.pick(&["-h none", "-h dtd", "-h xsd"]);
        let xml = stock.ask(&format!("dump {head} {}", made.name)).text;
        let (option, check) = [("", RangeCheck::Off), ("-r", RangeCheck::On)][i % 2];
        stock.put("dump.xml", &xml);
        let answer = stock.ask(&format!("restore -f {option} dump.xml {i}.back"));
        assert_eq!(answer.error, None);
        let ours = restore(&xml, check, &mut rng.0).expect("rrdtool wrote it");
        let theirs = unrotated(stock.file(&format!("{i}.back")));
        assert_same(&theirs, &unrotated(ours), &made.name);
        // rrdtool keeps -r for the rest of the process.
        if check == RangeCheck::On {
            let scratch = std::mem::replace(&mut stock, Stock::start("rrd-restore"));
            drop(scratch);
        }
    }
}

/// Changes to a dump, as (from, to).
const EDITS: &[(&str, &str)] = &[
    ("<version>0003</version>", "<version>0005</version>"),
    ("<version>0003</version>", "<version>0001</version>"),
    ("<version>0003</version>", "<version>00003</version>"),
    ("<version>0003</version>", "<VERSION> 0004 </Version>"),
    ("<version>0003</version>", "<VERSION> 0004 </VERSION>"),
    ("<step>10</step>", "<step>012</step>"),
    ("<step>10</step>", "<step>0x1e</step>"),
    ("<step>10</step>", "<step>99999999999999999999</step>"),
    ("<step>10</step>", "<step>10</step> text"),
    ("<step>10</step>", "<foo>1</foo>"),
    ("<step>10</step>", "<step><!-- ten -->10<!-- ! --></step>"),
    ("<step>10</step>", "<step>10<a/></step>"),
    ("<step>10</step>", "<step><a/>10</step>"),
    ("<step>10</step>", "<step>10 20</step>"),
    ("<name> a </name>", "<name>abcdefghijabcdefghij</name>"),
    ("<name> a </name>", "<name> a&amp;b </name>"),
    ("<name> a </name>", "<name>&foo;</name>"),
    ("<type> GAUGE </type>", "<type> FOO </type>"),
    ("<type> GAUGE </type>", "<type> COMPUTE </type>"),
    ("<min>NaN</min>", "<minimum>NaN</minimum>"),
    ("<min>NaN</min>", "<min>-INF</min>"),
    ("<min>NaN</min>", "<min>banana</min>"),
    ("<min>NaN</min>", "<min>abc</min>"),
    ("<min>NaN</min>", "<min>1e5x</min>"),
    ("<min>NaN</min>", "<min></min>"),
    ("<min>NaN</min>", "<min>  +1.5e2  </min>"),
    ("<last_ds>U</last_ds>", "<last_ds></last_ds>"),
    ("<last_ds>U</last_ds>", "<last_ds>  </last_ds>"),
    (
        "<last_ds>U</last_ds>",
        "<last_ds>123456789012345678901234567890</last_ds>",
    ),
    ("<last_ds>U</last_ds>", "<last_ds><![CDATA[7]]></last_ds>"),
    ("<cf>AVERAGE</cf>", "<cf>MEDIAN</cf>"),
    ("<cf>AVERAGE</cf>", "<cf>LAST</cf>"),
    (
        "<pdp_per_row>1</pdp_per_row>",
        "<pdp_per_row>+2</pdp_per_row>",
    ),
    ("<xff>5.0000000000e-01</xff>", "<xfff>1</xfff>"),
    (
        "</params>",
        "<hw_alpha>0.5</hw_alpha><hw_beta>0.25</hw_beta></params>",
    ),
    (
        "<primary_value>0.0000000000e+00</primary_value>",
        "<primary>1</primary>",
    ),
    ("</cdp_prep>", "<ds></ds></cdp_prep>"),
    (
        "<unknown_datapoints>0</unknown_datapoints>",
        "<nan_count>7</nan_count><history>1101</history>",
    ),
    ("<row><v>NaN</v></row>", "<row><v>NaN</v><v>1</v></row>"),
    ("<row><v>NaN</v></row>", "<row></row>"),
    ("<row><v>NaN</v></row>", "<row><V>7</V></row>"),
    (
        "<row><v>NaN</v></row>",
        "<row><v>7</v></row><row><v>8</v></row>",
    ),
    ("</rra>", "</rra><ds></ds>"),
    ("</rrd>", "</rrd><!-- done -->\n"),
    ("<rrd>", "<rdd>"),
    ("<rrd>", "<!DOCTYPE rrd [ <!ELEMENT rrd ANY> ]><rrd a='b'>"),
    ("<database>", "<database ><!--x-->"),
];

#[test]
fn edited_dumps_are_taken_or_refused_as_rrdtool_does() {
    let mut stock = Stock::start("rrd-edited");
    let create =
        "create e.rrd -b 1000000000 -s 10 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:3 RRA:MAX:0.5:2:3";
    assert_eq!(stock.ask(create).error, None);
    let xml = String::from_utf8(stock.ask("dump -h none e.rrd").text).expect("text");
    for (i, (from, to)) in EDITS.iter().enumerate() {
        assert!(xml.contains(from), "{from}");
        let xml = xml.replace(from, to);
        stock.put("edited.xml", xml.as_bytes());
        let answer = stock.ask(&format!("restore -f edited.xml {i}.rrd"));
        let ours = restore(xml.as_bytes(), RangeCheck::Off, &mut 7);
        let what = format!("{from} as {to}");
        match ours {
            Ok(ours) => {
                assert_eq!(answer.error, None, "{what}");
                let theirs = unrotated(stock.file(&format!("{i}.rrd")));
                assert_same(&theirs, &unrotated(ours), &what);
            }
            Err(error) => {
                let theirs = answer.error.unwrap_or_else(|| panic!("{what}: {error}"));
                assert_eq!(unnumbered(&theirs), unnumbered(&error.text), "{what}");
            }
        }
    }
}

/// An error without its line number and without the words of libxml2, which are not compared.
fn unnumbered(text: &str) -> String {
    if text.starts_with("error reading/parsing XML") || text.starts_with("the xml ended") {
        return "broken".into();
    }
    let words = text.split(' ').map(|word| {
        let number = word.trim_end_matches(':');
        if number.parse::<u32>().is_ok() {
            "#"
        } else {
            word
        }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    // rrdtool appends the text of a stale errno.
    match text.split_once("get_xml_double from ") {
        Some((front, rest)) => format!("{front}{}", rest.split(' ').next().unwrap_or_default()),
        None => text,
    }
}

#[test]
fn a_cut_dump_is_an_error() {
    let mut stock = Stock::start("rrd-cut");
    let create = "create e.rrd -b 1000000000 -s 10 DS:a:GAUGE:60:U:U RRA:AVERAGE:0.5:1:3";
    assert_eq!(stock.ask(create).error, None);
    let xml = stock.ask("dump e.rrd").text;
    let whole: Result<_, Error> = restore(&xml, RangeCheck::Off, &mut 7);
    assert!(whole.is_ok());
    for len in 0..xml.len() - 7 {
        assert!(
            restore(&xml[..len], RangeCheck::Off, &mut 7).is_err(),
            "{len}"
        );
    }
}
