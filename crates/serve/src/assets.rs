//! The page's files: all files of `assets/` are built in, compressed.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{LazyLock, OnceLock};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;

use crate::answer::{self, Answer, Made, Refusal, Wishes};
use crate::refusal::set_type;

/// A file of the page.
struct Asset {
    path: &'static str,
    tag: &'static str,
    gzipped: &'static [u8],
    /// Unpacked at the first request that does not take gzip.
    plain: OnceLock<Vec<u8>>,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = include!(concat!(env!("OUT_DIR"), "/assets.rs"));
    files
        .into_iter()
        .map(|(path, tag, gzipped)| Asset {
            path,
            tag,
            gzipped,
            plain: OnceLock::new(),
        })
        .collect()
});

impl Asset {
    fn plain(&self) -> &[u8] {
        self.plain.get_or_init(|| {
            let mut plain = Vec::new();
            let read = GzDecoder::new(self.gzipped).read_to_end(&mut plain);
            assert!(read.is_ok(), "BUG: {} is built in as no gzip", self.path);
            plain
        })
    }
}

/// Answers with a file of the page; `folder`: reads it from there, for work on the
/// page.
pub(crate) fn answer(headers: &HeaderMap, path: &str, folder: Option<&PathBuf>) -> Answer {
    let path = match path.trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let missing = || Refusal::missing("cannot find this page");
    let asset = ASSETS.iter().find(|asset| asset.path == path);
    if let Some(folder) = folder {
        let plain = path
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.'));
        let bytes = plain
            .then(|| std::fs::read(folder.join(path)).ok())
            .flatten();
        // Files for programs are not in the folder.
        let bytes = bytes.or_else(|| asset.map(|asset| asset.plain().to_vec()));
        let bytes = bytes.ok_or_else(missing)?;
        let wishes = Wishes::of(headers);
        return Ok(Made::tagged(&wishes, media_type(path), bytes).unbounded());
    }
    let asset = asset.ok_or_else(missing)?;
    if answer::has_tag(headers, asset.tag) {
        return Ok(answer::not_modified(asset.tag));
    }
    let mut response: Response = if answer::takes_gzip(headers) {
        let mut response = Body::from(asset.gzipped).into_response();
        answer::mark_gzip(&mut response);
        response
    } else {
        Body::from(asset.plain()).into_response()
    };
    set_type(&mut response, media_type(path));
    answer::set_tag(&mut response, asset.tag);
    Ok(response)
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    async fn body_of(path: &str, coding: &'static str) -> Vec<u8> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, coding.parse().expect("a header"));
        let response = answer(&headers, path, None).expect("a file of the page");
        let coded = response.headers().get(header::CONTENT_ENCODING);
        assert_eq!(coded.is_some(), coding == "gzip", "{path} {coding}");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        body.expect("a body").to_vec()
    }

    /// A browser and `curl` get the same text, and the example for programs is the file of the repository.
    #[tokio::test]
    async fn plain_and_compressed_files_are_the_same() {
        for path in ["/", "/page.js", "/page.css", "/later.js", "/publish.c"] {
            let gzipped = body_of(path, "gzip").await;
            let plain = body_of(path, "identity").await;
            let mut unpacked = Vec::new();
            let read = GzDecoder::new(&gzipped[..]).read_to_end(&mut unpacked);
            read.expect("gzip");
            assert_eq!(plain, unpacked, "{path}");
            assert!(gzipped.len() * 2 < plain.len(), "{path}");
        }
        let example = include_bytes!("../../shm/examples/publish.c");
        assert_eq!(body_of("/publish.c", "identity").await, example);
    }
}
