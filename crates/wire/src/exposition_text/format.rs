//! Which format a text has, by its content type.

/// `Accept` of a request that takes both formats, OpenMetrics rather.
pub const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpositionFormat {
    /// Prometheus' 0.0.4: blanks are free, timestamps are milliseconds, anything may be in a comment.
    Prometheus,
    /// OpenMetrics 1.0: one blank between fields, timestamps are seconds, exemplars, `# EOF` at the end.
    OpenMetrics,
}

impl ExpositionFormat {
    /// The format that a header says; `None`: none of these. Prometheus refuses such an answer unless it is configured
    /// to take it for some format, and so may the caller.
    pub fn of_content_type(text: &str) -> Option<ExpositionFormat> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next()?;
        let parameter = |part: &str| {
            let (name, value) = part.split_once('=')?;
            let is_version = name.trim().eq_ignore_ascii_case("version");
            is_version.then(|| value.trim().trim_matches('"').to_owned())
        };
        let version = parts.find_map(parameter);
        match (media_type.to_ascii_lowercase().as_str(), version.as_deref()) {
            ("text/plain", _) => Some(ExpositionFormat::Prometheus),
            ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
                Some(ExpositionFormat::OpenMetrics)
            }
            _ => None,
        }
    }
}
