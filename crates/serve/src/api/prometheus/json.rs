//! Answers as Prometheus writes them: values as texts, times as numbers of seconds.

use std::fmt::Write as _;

use kymo_promql::{Answer, LabelSet, NoteKind, Tree, Value, push_number};
use kymo_series::Sample;

use super::failure::{ErrorType, Failure};

/// Notes of a kind in one answer at most; the number of others is said.
const NOTES_MAX: usize = 10;

/// Notes beside an answer.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    warnings: Vec<String>,
    infos: Vec<String>,
}

impl Remarks {
    /// The notes about an expression.
    pub(super) fn of(answer: &Answer, text: &str) -> Remarks {
        let mut remarks = Remarks::default();
        for note in &answer.notes {
            match note.kind {
                NoteKind::Warning => remarks.warnings.push(note.text(text)),
                NoteKind::Info => remarks.infos.push(note.text(text)),
            }
        }
        remarks
    }

    /// Adds warnings that are not there yet.
    pub(super) fn warn(&mut self, more: impl IntoIterator<Item = String>) {
        for text in more {
            let is_known = self.warnings.iter().any(|known| known.contains(&text));
            if !is_known {
                self.warnings.push(text);
            }
        }
    }
}

/// An answer with `data`, which `write` writes; one of more than `most` bytes is an error.
pub(super) fn success(
    remarks: &Remarks,
    most: usize,
    write: impl FnOnce(&mut Json),
) -> Result<String, Failure> {
    let mut json = Json {
        out: String::from("{\"status\":\"success\",\"data\":"),
        most,
    };
    write(&mut json);
    json.remarks("warnings", "warning", &remarks.warnings);
    json.remarks("infos", "info", &remarks.infos);
    json.out.push('}');
    match json.is_full() {
        true => Err(Failure::new(
            ErrorType::Execution,
            format!("the answer has more than {most} bytes; ask for less"),
        )),
        false => Ok(json.out),
    }
}

/// JSON of an evaluated expression, as `/api/v1/query` and `/api/v1/query_range` answer it; `missing` says why parts are missing.
pub fn json_of_answer(answer: &Answer, text: &str, t_ms: i64, missing: Vec<String>) -> String {
    let mut remarks = Remarks::of(answer, text);
    remarks.warn(missing);
    let json = success(&remarks, usize::MAX, |json| json.value(&answer.value, t_ms));
    json.unwrap_or_default()
}

/// A text of JSON that grows. Beyond its limit nothing is added.
pub(super) struct Json {
    out: String,
    most: usize,
}

impl Json {
    fn is_full(&self) -> bool {
        self.out.len() > self.most
    }

    /// Writes the value of an expression.
    pub(super) fn value(&mut self, value: &Value, t_ms: i64) {
        let kind = match value {
            Value::Scalar(_) => "scalar",
            Value::Text(_) => "string",
            Value::Vector(_) => "vector",
            Value::Matrix(_) => "matrix",
        };
        let _ = write!(self.out, "{{\"resultType\":\"{kind}\",\"result\":");
        match value {
            Value::Scalar(v) => self.sample(t_ms, *v),
            Value::Text(text) => {
                self.out.push('[');
                push_time(&mut self.out, t_ms);
                self.out.push(',');
                self.text(text);
                self.out.push(']');
            }
            Value::Vector(series) => self.list(series, |json, (labels, v)| {
                json.out.push_str("{\"metric\":");
                json.labels(labels);
                json.out.push_str(",\"value\":");
                json.sample(t_ms, *v);
                json.out.push('}');
            }),
            Value::Matrix(tracks) => self.list(tracks, |json, track| {
                json.out.push_str("{\"metric\":");
                json.labels(&track.labels);
                json.out.push_str(",\"values\":");
                json.list(&track.samples, |json, &Sample { t_ms, v }| {
                    json.sample(t_ms, v);
                });
                json.out.push('}');
            }),
        }
        self.out.push('}');
    }

    /// Writes a list, item by item.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Json, T),
    ) {
        self.out.push('[');
        for (place, item) in items.into_iter().enumerate() {
            if self.is_full() {
                break;
            }
            if place > 0 {
                self.out.push(',');
            }
            write(self, item);
        }
        self.out.push(']');
    }

    /// Writes an object of texts.
    pub(super) fn object<'a>(&mut self, members: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.out.push('{');
        for (place, (name, value)) in members.into_iter().enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            self.text(name);
            self.out.push(':');
            self.text(value);
        }
        self.out.push('}');
    }

    /// Writes an object, member by member.
    pub(super) fn members<'a, T>(
        &mut self,
        members: impl IntoIterator<Item = (&'a str, T)>,
        write: impl Fn(&mut Json, T),
    ) {
        self.out.push('{');
        for (place, (name, member)) in members.into_iter().enumerate() {
            if self.is_full() {
                break;
            }
            if place > 0 {
                self.out.push(',');
            }
            self.text(name);
            self.out.push(':');
            write(self, member);
        }
        self.out.push('}');
    }

    /// Writes the tree of an expression.
    pub(super) fn tree(&mut self, tree: &Tree) {
        match tree {
            Tree::Null => self.out.push_str("null"),
            Tree::Bool(is) => self.out.push_str(if *is { "true" } else { "false" }),
            Tree::Number(number) => {
                let _ = write!(self.out, "{number}");
            }
            Tree::Text(text) => self.text(text),
            Tree::List(items) => self.list(items, Json::tree),
            Tree::Object(members) => {
                let members = members.iter().map(|(name, member)| (*name, member));
                self.members(members, Json::tree);
            }
        }
    }

    /// Writes a text between quotes.
    pub(super) fn text(&mut self, text: &str) {
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
        if text.bytes().all(is_plain) {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
            return;
        }
        // A text always has a form in JSON.
        self.out
            .push_str(&serde_json::to_string(text).unwrap_or_default());
    }

    fn labels(&mut self, labels: &LabelSet) {
        self.object(labels.iter());
    }

    fn sample(&mut self, t_ms: i64, v: f64) {
        self.out.push('[');
        push_time(&mut self.out, t_ms);
        self.out.push_str(",\"");
        push_number(&mut self.out, v);
        self.out.push_str("\"]");
    }

    fn remarks(&mut self, name: &str, kind: &str, texts: &[String]) {
        if texts.is_empty() {
            return;
        }
        let _ = write!(self.out, ",\"{name}\":");
        let more = texts.len().saturating_sub(NOTES_MAX);
        let more = (more > 0).then(|| format!("{more} more {kind} annotations omitted"));
        let shown = texts.iter().take(NOTES_MAX).chain(&more);
        self.list(shown, |json, text| json.text(text));
    }
}

/// Appends milliseconds since 1970 as seconds.
fn push_time(out: &mut String, t_ms: i64) {
    let sign = if t_ms < 0 { "-" } else { "" };
    let (seconds, part) = (t_ms.unsigned_abs() / 1000, t_ms.unsigned_abs() % 1000);
    out.push_str(sign);
    out.push_str(itoa::Buffer::new().format(seconds));
    if part > 0 {
        // Writing to a String cannot fail.
        let _ = write!(out, ".{part:03}");
    }
}

#[cfg(test)]
mod tests {
    use kymo_promql::Track;

    use super::*;

    #[test]
    fn times_are_seconds() {
        for (t_ms, expect) in [
            (0, "0"),
            (1_435_781_451_781, "1435781451.781"),
            (1_000, "1"),
            (5, "0.005"),
            (-1_050, "-1.050"),
        ] {
            let mut out = String::new();
            push_time(&mut out, t_ms);
            assert_eq!(out, expect);
        }
    }

    fn of(value: Value) -> String {
        let answer = Answer {
            value,
            notes: Vec::new(),
        };
        json_of_answer(&answer, "x", 1_500, Vec::new())
    }

    #[test]
    fn each_type_has_its_form() {
        let labels = LabelSet::new(&[("__name__", "up"), ("path", "a\"b\u{e4}\n")]);
        let metric = r#"{"__name__":"up","path":"a\"bä\n"}"#;
        let around = |data: &str| format!(r#"{{"status":"success","data":{data}}}"#);
        assert_eq!(
            of(Value::Scalar(2.0)),
            around(r#"{"resultType":"scalar","result":[1.500,"2"]}"#)
        );
        assert_eq!(
            of(Value::Text("a\tb".into())),
            around(r#"{"resultType":"string","result":[1.500,"a\tb"]}"#)
        );
        assert_eq!(
            of(Value::Vector(vec![(labels.clone(), f64::NAN)])),
            around(&format!(
                r#"{{"resultType":"vector","result":[{{"metric":{metric},"value":[1.500,"NaN"]}}]}}"#
            ))
        );
        let sample = |t_ms| Sample { t_ms, v: 0.5 };
        let track = Track {
            labels,
            samples: vec![sample(1000), sample(2000)],
        };
        assert_eq!(
            of(Value::Matrix(vec![track])),
            around(&format!(
                r#"{{"resultType":"matrix","result":[{{"metric":{metric},"values":[[1,"0.5"],[2,"0.5"]]}}]}}"#
            ))
        );
    }

    #[test]
    fn remarks_and_bytes_have_limits() {
        let mut remarks = Remarks::default();
        remarks.warn((0..12).map(|n| format!("note {n:02}")));
        remarks.warn(["note 00".to_string()]);
        let json = success(&remarks, 1000, |json| {
            json.list([1], |json, _| json.text("a"))
        });
        let json = json.unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        let warnings = parsed["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 11);
        assert_eq!(warnings[10], "2 more warning annotations omitted");
        assert_eq!(parsed["data"][0], "a");
        let long = success(&Remarks::default(), 1000, |json| {
            json.list(0..1_000_000, |json, _| json.text("text"));
        });
        assert_eq!(long.unwrap_err().kind, ErrorType::Execution);
    }
}
