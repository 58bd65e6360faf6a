//! The page's files, built in.

use std::path::PathBuf;
use std::sync::{LazyLock, OnceLock};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};

use crate::answer::{self, Answer, Refusal};

/// A file of the page.
struct Asset {
    path: &'static str,
    bytes: &'static [u8],
    /// Its tag and its compressed bytes, made when it is first asked for.
    made: OnceLock<(String, Vec<u8>)>,
}

macro_rules! assets {
    ($($path:literal),* $(,)?) => {
        vec![$(Asset {
            path: $path,
            bytes: include_bytes!(concat!("../assets/", $path)),
            made: OnceLock::new(),
        }),*]
    };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    assets![
        "api.js",
        "app.js",
        "board.js",
        "card.js",
        "changes.js",
        "chart.js",
        "cost.js",
        "csv.js",
        "dom.js",
        "events.js",
        "fields.js",
        "frame.js",
        "grid.js",
        "icon.svg",
        "index.html",
        "keys.js",
        "live.js",
        "lock.js",
        "movers.js",
        "now.js",
        "panels.js",
        "png.js",
        "processes.js",
        "raw.js",
        "rows.js",
        "scans.js",
        "search.js",
        "settings.js",
        "state.js",
        "style.css",
        "theme.js",
        "time.js",
        "units.js",
        "vendor/uPlot/LICENSE",
        "vendor/uPlot/uPlot.esm.js",
        "vendor/uPlot/uPlot.min.css",
    ]
});

/// Answers for a file of the page; from a folder when the page is being worked on.
pub fn answer(asked: &HeaderMap, path: &str, folder: Option<&PathBuf>) -> Answer {
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
        let bytes = bytes.ok_or_else(missing)?;
        return Ok(answer::tagged(asked, media_type(path), bytes));
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
    answer::set_type(&mut response, media_type(path));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file of the folder is built in.
    #[test]
    fn the_list_is_complete() {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/assets"));
        let (mut folders, mut found) = (vec![root.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => found.push(
                        path.strip_prefix(&root)
                            .expect("below")
                            .display()
                            .to_string(),
                    ),
                }
            }
        }
        found.sort();
        let mut listed: Vec<&str> = ASSETS.iter().map(|asset| asset.path).collect();
        listed.sort_unstable();
        assert_eq!(listed, found);
    }
}
