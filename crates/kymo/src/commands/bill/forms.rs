//! Forms of a bill: a table, CSV, JSON, and a page to print.

use kymo_base::name::DisplayName;
use kymo_query::targets::PERCENT;
use kymo_view::svg::put_escaped;
use serde_json::{Value, json};

use super::{BilledPeriod, BilledTarget, factor};

/// Names of the rates, in their order.
const RATES: [&str; 4] = ["in", "out", "larger", "sum"];

/// A form of a bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BillForm {
    Table,
    Csv,
    Json,
    Html,
}

impl BillForm {
    /// The bill in this form.
    pub(super) fn text(self, billed: &[BilledTarget], period: &BilledPeriod) -> String {
        match self {
            BillForm::Table => table(billed, period),
            BillForm::Csv => csv(billed, period),
            BillForm::Json => json(billed, period),
            BillForm::Html => html(billed, period),
        }
    }
}

/// A heading: `95th percentiles, 2026-10-01 to 2026-11-01`.
fn heading(period: &BilledPeriod) -> String {
    let goes_on = match period.goes_on {
        true => ", which goes on",
        false => "",
    };
    format!(
        "{PERCENT}th percentiles, {} to {}{goes_on}",
        period.from_day, period.thru_day
    )
}

/// Heads of the columns.
fn heads(billed: &[BilledTarget]) -> Vec<&'static str> {
    let mut heads = vec![
        "target",
        "in",
        "out",
        "larger",
        "in + out",
        "amount in",
        "amount out",
    ];
    if has_limit(billed) {
        heads.push("hours above");
    }
    heads.push("rows");
    heads
}

fn has_limit(billed: &[BilledTarget]) -> bool {
    billed.iter().any(|of| of.bill.above_s.is_some())
}

/// Cells of a line, as people read them.
fn cells(of: &BilledTarget, name: String) -> Vec<String> {
    let mut cells = vec![name];
    cells.extend(of.bill.rates.map(|rate| of.unit.text(rate)));
    cells.extend(of.bill.amounts.map(|amount| of.unit.amount(amount)));
    if let Some(seconds) = of.bill.above_s {
        cells.push(format!("{:.2}", seconds as f64 / 3600.0));
    }
    // A period of which a row is missing does not read 100 %.
    let percent = (of.coverage() * 1000.0).floor() / 10.0;
    cells.push(format!("{percent:.1} %"));
    cells
}

fn table(billed: &[BilledTarget], period: &BilledPeriod) -> String {
    let mut lines = vec![heads(billed).into_iter().map(String::from).collect()];
    let named = |of: &BilledTarget| cells(of, DisplayName(of.name.as_bytes()).to_string());
    lines.extend(billed.iter().map(named));
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line: &Vec<String>| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut out = format!("{}\n\n", heading(period));
    for line in &lines {
        let cells = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, width))| match at {
                0 => format!("{cell:width$}"),
                _ => format!("  {cell:>width$}"),
            });
        let line: String = cells.collect();
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Rates and amounts for programs; `None`: a number is not known, or the target does not count bytes.
fn numbers(of: &BilledTarget) -> ([Option<f64>; 4], [Option<f64>; 2]) {
    // A rate of zero has no sign, though its factor is negative.
    let known = |value: f64| value.is_finite().then_some(value + 0.0);
    let amount = |amount: f64| known(amount * of.unit.factor).filter(|_| of.unit.counts);
    let rates = of.bill.rates.map(|rate| known(rate * factor(&of.unit)));
    (rates, of.bill.amounts.map(amount))
}

fn csv(billed: &[BilledTarget], period: &BilledPeriod) -> String {
    let mut out = format!(
        "target,title,unit,from,thru,{},amount_in,amount_out,above_s,rows,rows_known,row_s\n",
        RATES.join(",")
    );
    for of in billed {
        let (bill, (rates, amounts)) = (&of.bill, numbers(of));
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut cells = [&of.name, &of.title, &of.unit.name]
            .map(|text| quoted(text))
            .to_vec();
        cells.extend([period.from.to_string(), period.thru.to_string()]);
        cells.extend(rates.into_iter().chain(amounts).map(number));
        cells.push(
            bill.above_s
                .map_or(String::new(), |seconds| seconds.to_string()),
        );
        cells.extend([
            bill.rows.to_string(),
            bill.known.to_string(),
            bill.row_s.to_string(),
        ]);
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

/// A text of CSV, of which a spreadsheet makes no formula.
fn quoted(text: &str) -> String {
    let guard = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => "'",
        false => "",
    };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

fn json(billed: &[BilledTarget], period: &BilledPeriod) -> String {
    let targets = billed.iter().map(|of| {
        let (bill, (rates, amounts)) = (&of.bill, numbers(of));
        let mut target = json!({
            "target": of.name,
            "title": of.title,
            "unit": of.unit.name,
            "amount_in": amounts[0],
            "amount_out": amounts[1],
            "rows": bill.rows,
            "rows_known": bill.known,
            "row_s": bill.row_s,
        });
        for (name, rate) in RATES.iter().zip(rates) {
            target[name] = json!(rate);
        }
        if let Some(seconds) = bill.above_s {
            target["above_s"] = json!(seconds);
        }
        target
    });
    let bill = json!({
        "percent": PERCENT,
        "from": period.from,
        "thru": period.thru,
        "from_day": period.from_day,
        "thru_day": period.thru_day,
        "goes_on": period.goes_on,
        "targets": targets.collect::<Vec<Value>>(),
    });
    format!("{bill:#}\n")
}

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;color:#222}\
    table{border-collapse:collapse;width:100%}th,td{padding:.3em .6em;border-bottom:1px solid #ccc;text-align:right;\
    font-variant-numeric:tabular-nums;white-space:nowrap}th:first-child,td:first-child{text-align:left;white-space:normal}\
    thead th{border-bottom:2px solid #222}td small{display:block;color:#666}tr{break-inside:avoid}\
    p{color:#444}@media print{body{margin:0;font-size:11px}}";

fn html(billed: &[BilledTarget], period: &BilledPeriod) -> String {
    let heading = heading(period);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{heading}</title><style>{STYLE}</style></head>\n\
         <body><h1>{heading}</h1>\n<table><thead><tr>"
    );
    for head in heads(billed) {
        out += &format!("<th scope=\"col\">{head}</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for of in billed {
        out += "<tr><td>";
        put_escaped(&mut out, &of.name);
        if !of.title.is_empty() {
            out += "<small>";
            put_escaped(&mut out, &of.title);
            out += "</small>";
        }
        out += "</td>";
        for cell in cells(of, String::new()).iter().skip(1) {
            out += "<td>";
            put_escaped(&mut out, cell);
            out += "</td>";
        }
        out += "</tr>\n";
    }
    out += &format!(
        "</tbody></table>\n<p>Of the mean rates of five minutes, the largest {} % are struck off; the largest that is left is the number. \
         <i>Larger</i> takes the larger of in and out of each five minutes, <i>in + out</i> their sum. <i>Rows</i> says of how much of the \
         time the rates are known; the others count for nothing.</p>\n</body></html>\n",
        100 - PERCENT
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_query::targets::{Bill, DescribedTarget, TargetUnit};

    fn billed() -> Vec<BilledTarget> {
        let target = DescribedTarget {
            options: vec!["bits".into()],
            ..DescribedTarget::default()
        };
        let of = |name: &str, known| BilledTarget {
            name: name.into(),
            title: "=A \"<b>\"".into(),
            unit: TargetUnit::of(&target),
            bill: Bill {
                rates: [1e6, 2e6, 2.5e6, f64::NAN],
                amounts: [1e12, f64::NAN],
                known,
                rows: 8928,
                row_s: 300,
                above_s: Some(5400),
            },
        };
        vec![of("core/<x>", 8928), of("core/y", 8927)]
    }

    /// `kymo poll --bill` printed minus zeros, and amounts of gauges.
    #[test]
    fn zeros_have_no_sign_and_gauges_no_amount() {
        let of = |words: &[&str], factor: f64| {
            let target = DescribedTarget {
                options: words.iter().map(|word| word.to_string()).collect(),
                factor: Some(factor),
                ..DescribedTarget::default()
            };
            BilledTarget {
                name: "x".into(),
                title: String::new(),
                unit: TargetUnit::of(&target),
                bill: Bill {
                    rates: [-0.0, 0.0, 0.01, -0.01],
                    amounts: [-0.0, 7.0],
                    known: 0,
                    rows: 0,
                    row_s: 300,
                    above_s: None,
                },
            }
        };
        for (words, factor, amounts) in [
            (&[][..], 1.0, "0,7"),
            (&[], -1.0, "0,-7"),
            (&["gauge"], -1.0, ","),
        ] {
            let billed = [of(words, factor)];
            let text = |form: BillForm| form.text(&billed, &period());
            for form in [BillForm::Table, BillForm::Html] {
                assert!(!text(form).contains("-0.0"), "{}", text(form));
            }
            let csv = text(BillForm::Csv);
            let signed = if factor < 0.0 {
                "-0.01,0.01"
            } else {
                "0.01,-0.01"
            };
            let cells = format!(",0,0,{signed},{amounts},,0,0,300\n");
            assert!(csv.ends_with(&cells), "{csv}");
            let json = text(BillForm::Json);
            assert!(!json.contains("-0.0,"), "{json}");
            let json: Value = serde_json::from_str(&json).unwrap();
            let amount = &json["targets"][0]["amount_out"];
            assert_eq!(amount.as_f64(), words.is_empty().then_some(7.0 * factor));
        }
    }

    fn period() -> BilledPeriod {
        BilledPeriod {
            from: 1_790_805_600,
            thru: 1_793_487_600,
            from_day: "2026-10-01".into(),
            thru_day: "2026-11-01".into(),
            goes_on: false,
        }
    }

    #[test]
    fn forms_of_a_bill() {
        let text = |form: BillForm| form.text(&billed(), &period());
        let expected = "\
95th percentiles, 2026-10-01 to 2026-11-01

target           in        out    larger  in + out  amount in  amount out  hours above     rows
core/<x>  8000.0 kb/s  16.0 Mb/s  20.0 Mb/s       \u{2013}  1000.0 GB           \u{2013}         1.50  100.0 %
core/y    8000.0 kb/s  16.0 Mb/s  20.0 Mb/s       \u{2013}  1000.0 GB           \u{2013}         1.50   99.9 %
";
        let columns = |text: &str| -> Vec<Vec<String>> {
            let lines = text.lines().map(|line| {
                let cells = line
                    .split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty());
                cells.map(str::to_string).collect()
            });
            lines.collect()
        };
        assert_eq!(columns(&text(BillForm::Table)), columns(expected));
        let csv = text(BillForm::Csv);
        assert_eq!(
            csv.lines().nth(1),
            Some(
                "\"core/<x>\",\"'=A \"\"<b>\"\"\",\"b/s\",1790805600,1793487600,8000000,16000000,20000000,,1000000000000,,5400,8928,8928,300"
            )
        );
        let json: Value = serde_json::from_str(&text(BillForm::Json)).unwrap();
        assert_eq!(json["targets"][1]["rows_known"], 8927);
        assert_eq!(json["targets"][0]["sum"], Value::Null);
        assert_eq!(json["targets"][0]["larger"], 2e7);
        let html = text(BillForm::Html);
        assert!(
            html.contains("<td>core/&lt;x&gt;<small>=A &quot;&lt;b&gt;&quot;</small></td>"),
            "{html}"
        );
    }
}
