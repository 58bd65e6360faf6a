//! MRTG's pages in a folder: graphs and HTML of targets with logs of their own, drawn when they are due.
//!
//! As in MRTG, the graph of a day and the page are written after each value, and the other graphs when they are missing or older than one
//! of their steps. Each file is put in place by a rename.

mod amount;
mod calendar;
mod canvas;
pub mod comments;
mod font;
mod graph;
mod html;
mod index;
mod scale;
mod style;
mod words;

pub use graph::{Figures, draw};
pub use html::PageStyle;
pub(crate) use html::link;
pub use index::{IndexOrder, IndexSection, IndexStyle, IndexedTarget, sort_index};
pub use style::{Bend, Corner, GraphStyle, Period, Weeks};

use crate::batch::About;
use crate::mrtg_log::Span;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_base::name::DisplayName;
use kymo_sys::tree::{Access, Existing, Safe, Tree};
use kymo_wire::mrtg_cfg::{Config, Globals, Keyword, Target};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Largest page that is read for its figures, bytes.
const PAGE_MAX: u64 = 1 << 20;

/// Seconds by which a page's time to expire is later than the next value.
const EXPIRY_SLACK_S: i64 = 5;

/// True if there are words of this `Language` for pages; otherwise they are English.
pub fn knows_language(language: &str) -> bool {
    words::Words::of(language).is_some()
}

/// Folders of pages and of their graphs.
#[derive(Clone, Debug)]
pub struct PageFolders {
    /// `HtmlDir`
    pub html: PathBuf,
    /// `ImageDir`
    pub images: PathBuf,
}

impl PageFolders {
    /// The folders of a configuration; `log_dir`: the folder that takes the place of all of them.
    pub fn of(globals: &Globals, log_dir: Option<&Path>) -> PageFolders {
        PageFolders {
            html: log_dir.unwrap_or(&globals.html_dir).into(),
            images: log_dir.unwrap_or(&globals.image_dir).into(),
        }
    }
}

/// The page of a target and its graphs.
#[derive(Clone, Debug)]
pub struct TargetPage {
    graphs: GraphStyle,
    page: PageStyle,
    html: PathBuf,
    /// Paths of the graphs, by [`Period::ALL`].
    pictures: [PathBuf; 4],
    /// Seconds between values, if files have a `.meta` with their time to expire.
    expires_s: Option<i64>,
    /// Pages of indexes that get one, too: at the first target alone.
    indexes: Vec<PathBuf>,
}

impl TargetPage {
    /// The pages of all targets, in their order. `zone` is that of the machine.
    pub fn of_all(config: &Config, folders: &PageFolders, zone: &TimeZone) -> Vec<TargetPage> {
        let targets = config.targets();
        let globals = config.globals();
        let pages = targets.map(|target| TargetPage::of(target, globals, folders, zone));
        let mut pages: Vec<TargetPage> = pages.collect();
        if let Some(first) = pages.first_mut().filter(|page| page.expires_s.is_some()) {
            let names = ["index.html", "index.htm"];
            first.indexes = names.map(|name| folders.html.join(name)).to_vec();
        }
        pages
    }

    fn of(
        target: Target<'_>,
        globals: &Globals,
        folders: &PageFolders,
        zone: &TimeZone,
    ) -> TargetPage {
        let graphs = GraphStyle::of(target, zone);
        let mut page = PageStyle::of(target, &graphs, globals);
        let directory = target.value(Keyword::Directory).unwrap_or_default();
        let directory = directory.trim_ascii_end().to_vec();
        if folders.html != folders.images {
            page.images = between(folders, &directory);
        }
        let name = target.name();
        let path = |folder: &Path, ending: &[u8]| {
            let name = OsString::from_vec([&name, ending].concat());
            folder
                .join(OsString::from_vec(directory.clone()))
                .join(name)
        };
        let extension = target.value(Keyword::Extension);
        let extension = extension.as_deref().unwrap_or(b"html");
        TargetPage {
            html: path(&folders.html, &[b".", extension].concat()),
            pictures: Period::ALL.map(|period| {
                path(
                    &folders.images,
                    format!("-{}.png", period.word()).as_bytes(),
                )
            }),
            graphs,
            page,
            expires_s: globals
                .writes_expires
                .then_some(i64::from(globals.interval_s)),
            indexes: Vec::new(),
        }
    }

    /// Writes the graphs that are due and the page after an update at `now_s`. `steps` gives as many steps of a period as it is asked
    /// for, newest first.
    pub(crate) fn write(
        &self,
        tree: &dyn Tree,
        steps: &mut dyn FnMut(Period, usize) -> Result<Vec<Span>, String>,
        now_s: i64,
        about: Option<&About>,
    ) -> Result<(), String> {
        let mut known = comments::read(&self.read(tree));
        for (at, period) in Period::ALL.into_iter().enumerate() {
            let path = &self.pictures[at];
            if self.page.is_suppressed(period) || !is_due(tree, path, period, now_s) {
                continue;
            }
            let spans = steps(period, graph::steps(&self.graphs))?;
            let (png, figures) = graph::draw_spans(&spans, now_s, period, &self.graphs)?;
            known[at] = figures.in_order().map(Some);
            put(tree, path, &png)?;
            self.expire(tree, path, period, now_s)?;
        }
        let page = self.page(&known, now_s, about);
        put(tree, &self.html, page.as_bytes())?;
        let indexes = self.indexes.iter().filter(|path| tree.stat(path).is_ok());
        for path in indexes.chain([&self.html]) {
            self.expire(tree, path, Period::Day, now_s)?;
        }
        Ok(())
    }

    /// Writes the time until which a file is new, if that is wanted.
    fn expire(
        &self,
        tree: &dyn Tree,
        path: &Path,
        period: Period,
        now_s: i64,
    ) -> Result<(), String> {
        let Some(interval_s) = self.expires_s else {
            return Ok(());
        };
        let step_s = match period {
            Period::Day => interval_s,
            Period::Week | Period::Month | Period::Year => period.step_s(),
        };
        let time = Timestamp::from_second(now_s.saturating_add(step_s + EXPIRY_SLACK_S));
        let time = time.unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S");
        let mut meta = path.as_os_str().to_owned();
        meta.push(".meta");
        let line = format!("Expires: {time} GMT\n");
        put(tree, Path::new(&meta), line.as_bytes())
    }

    /// Paths of the page and of its graphs.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> + Clone {
        let pictures = self.pictures.iter().map(PathBuf::as_path);
        pictures.chain([self.html.as_path()])
    }

    /// Path of the page.
    pub fn html(&self) -> &Path {
        &self.html
    }

    /// The page with these figures of a time, seconds since 1970, of a device that may have said something about itself.
    pub fn page(&self, known: &comments::Known, now_s: i64, about: Option<&About>) -> String {
        self.page.page(&self.graphs, known, now_s, about)
    }

    /// The page as it is; empty if it cannot be read, for then its figures are those of the graphs that are drawn.
    fn read(&self, tree: &dyn Tree) -> Vec<u8> {
        let read = || -> io::Result<Vec<u8>> {
            let file = tree.open(&self.html, Access::Read)?;
            let size = file.metadata()?.size_bytes.min(PAGE_MAX);
            let mut page = vec![0; usize::try_from(size).unwrap_or(0)];
            let count = file.read_at(&mut page, 0)?;
            page.truncate(count);
            Ok(page)
        };
        read().unwrap_or_default()
    }
}

/// True if a graph is to be drawn: that of a day always, others once they are as old as one of their steps.
fn is_due(tree: &dyn Tree, path: &Path, period: Period, now_s: i64) -> bool {
    let age_s = || -> Option<i64> {
        let changed_ns = tree.stat(path).ok()?.mtime_ns;
        Some(now_s - changed_ns.div_euclid(1_000_000_000))
    };
    period == Period::Day || age_s().is_none_or(|age_s| age_s >= period.step_s())
}

fn put(tree: &dyn Tree, path: &Path, bytes: &[u8]) -> Result<(), String> {
    let put = || tree.put(path, bytes, Existing::Succeed, Safe::Unsynced);
    let done = match (put(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            tree.make_folders(folder).and_then(|()| put())
        }
        (done, _) => done,
    };
    done.map(drop)
        .map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, cause: &dyn Display) -> String {
    let path = DisplayName(path.as_os_str().as_bytes());
    format!("cannot {verb} {path}: {cause}")
}

/// Relative path from the folder of a page in `directory` to that of its graphs, with a slash at the end.
fn between(folders: &PageFolders, directory: &[u8]) -> String {
    let directory = OsStr::from_bytes(directory);
    path_between(
        &folders.html.join(directory),
        &folders.images.join(directory),
    )
}

/// Relative path from a folder to another one, with a slash at the end; empty if they are the same.
pub fn path_between(from: &Path, to: &Path) -> String {
    let mut from = from.components().peekable();
    let mut to = to.components().peekable();
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let mut path = "../".repeat(from.count());
    for part in to {
        path += &link(part.as_os_str().as_bytes());
        path.push('/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_found_from_a_page() {
        for (html, images, directory, expected) in [
            ("/w/h/", "/w/i/", "", "../i/"),
            ("/w/", "/w/images/", "", "images/"),
            ("/w/", "/w/images/", "a/b/", "../../images/a/b/"),
            ("/w/h/x/", "/w/", "a", "../../../a/"),
        ] {
            let folders = PageFolders {
                html: html.into(),
                images: images.into(),
            };
            assert_eq!(
                between(&folders, directory.as_bytes()),
                expected,
                "{html} {images}"
            );
        }
    }
}
