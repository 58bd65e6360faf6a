//! The page's files: all files of `assets/` are built in.

use std::path::PathBuf;
use std::sync::{LazyLock, OnceLock};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};

use crate::answer::{self, Answer, Made, Refusal, Wishes};
use crate::refusal::set_type;

/// A file of the page.
struct Asset {
    path: &'static str,
    bytes: &'static [u8],
    /// Tag and compressed bytes, made at the first request.
    made: OnceLock<(String, Vec<u8>)>,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = include!(concat!(env!("OUT_DIR"), "/assets.rs"));
    files
        .into_iter()
        .map(|(path, bytes)| Asset {
            path,
            bytes,
            made: OnceLock::new(),
        })
        .collect()
});

/// Answers with a file of the page; `folder`: reads it from there, for work on the
/// page.
pub(crate) fn answer(asked: &HeaderMap, path: &str, folder: Option<&PathBuf>) -> Answer {
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
        let bytes = bytes.or_else(|| asset.map(|asset| asset.bytes.to_vec()));
        let bytes = bytes.ok_or_else(missing)?;
        let wishes = Wishes::of(asked);
        return Ok(Made::tagged(&wishes, media_type(path), bytes).unbounded());
    }
    let asset = asset.ok_or_else(missing)?;
    let (tag, gzipped) = asset.made.get_or_init(|| {
        let tag = answer::tag_of(asset.bytes);
        (tag, answer::gzip(asset.bytes, 9))
    });
    if answer::has_tag(asked, tag) {
        return Ok(answer::not_modified(tag));
    }
    let mut response: Response = if answer::takes_gzip(asked) {
        let mut response = Body::from(&gzipped[..]).into_response();
        answer::mark_gzip(&mut response);
        response
    } else {
        Body::from(asset.bytes).into_response()
    };
    set_type(&mut response, media_type(path));
    answer::set_tag(&mut response, tag);
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
