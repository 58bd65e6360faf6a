//! Prometheus' engine itself, built from its Go module at the time of the test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use kymo_promql::LabelSet;
use kymo_series::Sample;

use crate::go_module;

/// A running engine, with series.
pub(crate) struct PrometheusEngine {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// An answer of an engine.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Empty: there is none.
    pub error: String,
    pub series: Vec<(LabelSet, Vec<Sample>)>,
    /// Sorted.
    pub notes: Vec<String>,
}

impl PrometheusEngine {
    /// Builds and starts it; `None`: there is no Go, or no such module to be had.
    pub(crate) fn start(series: &[(LabelSet, Vec<Sample>)]) -> Option<PrometheusEngine> {
        go_module::folder()?;
        let program = build();
        if program.is_none() {
            kymo_sys::skipped::not_fetched("a module of Prometheus' engine");
        }
        let mut child = Command::new(program?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut questions = child.stdin.take().unwrap();
        let series: Vec<Value> = series
            .iter()
            .map(|(labels, samples)| written(labels, samples))
            .collect();
        writeln!(questions, "{}", Value::from(series)).unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(PrometheusEngine {
            child,
            questions,
            answers,
        })
    }

    /// Evaluates an expression; of an instant the step is 0.
    pub(crate) fn ask(&mut self, text: &str, from_ms: i64, thru_ms: i64, step_ms: i64) -> Answered {
        let question = json!({"text": text, "From": from_ms, "Thru": thru_ms, "Step": step_ms});
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("{text}: {line}"));
        let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
        let mut notes: Vec<String> = list("notes")
            .iter()
            .map(|note| note.as_str().unwrap().to_string())
            .collect();
        notes.sort();
        Answered {
            error: answer["error"].as_str().unwrap().to_string(),
            series: list("series").iter().map(read).collect(),
            notes,
        }
    }
}

impl Drop for PrometheusEngine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn written(labels: &LabelSet, samples: &[Sample]) -> Value {
    let labels: serde_json::Map<String, Value> = labels
        .iter()
        .map(|(name, value)| (name.to_string(), Value::from(value)))
        .collect();
    let times: Vec<i64> = samples.iter().map(|sample| sample.t_ms).collect();
    let bits: Vec<String> = samples
        .iter()
        .map(|sample| format!("{:x}", sample.v.to_bits()))
        .collect();
    json!({"labels": labels, "times": times, "bits": bits})
}

fn read(series: &Value) -> (LabelSet, Vec<Sample>) {
    let labels = series["labels"].as_object().unwrap();
    let labels: Vec<(&str, &str)> = labels
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let times = series["times"].as_array().unwrap().iter();
    let samples = times
        .zip(series["bits"].as_array().unwrap())
        .map(|(time, bits)| Sample {
            t_ms: time.as_i64().unwrap(),
            v: f64::from_bits(u64::from_str_radix(bits.as_str().unwrap(), 16).unwrap()),
        });
    (LabelSet::new(&labels), samples.collect())
}

/// Builds the program in the folder of the build, once.
fn build() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus-engine");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        ("main.go", include_str!("engine/main.go")),
        ("set.go", include_str!("engine/set.go")),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let module = go_module::VERSION.replace('@', " ");
    std::fs::write(
        folder.join("go.mod"),
        format!("module engine\n\ngo 1.24\n\nrequire {module}\n"),
    )
    .unwrap();
    for words in [&["mod", "tidy"][..], &["build", "-o", "engine", "."]] {
        let output = Command::new("go")
            .args(words)
            .current_dir(&folder)
            .output()
            .ok()?;
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
    }
    Some(folder.join("engine"))
}
