//! The .rrd files of collectd's rrdtool plugin. A file is taken if its path is one that collectd makes, and if it has the data
//! sources of its type.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kymo_base::name::DisplayName;
use kymo_rrd::Header;
use kymo_rrd::header::DsDef;
use kymo_sys::talk;
use kymo_wire::collectd::{Identifier, TypesDb};
use kymo_wire::keeper::ImportedSeries;

use super::{Importer, count, ensure_folder, read_locked};
use crate::output::progress::WorkPace;

/// Most bytes of a types.db.
const TYPES_MAX: u64 = 16 << 20;
/// Names from a DataDir to a file: host, plugin, type.
const DEPTH: usize = 3;

/// Files below a DataDir.
pub(super) struct DataDir {
    types: TypesDb,
    /// Paths, with their names below the DataDir, in the order of their place on the disk.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Names of files and folders that cannot be imported, with the reasons.
    refused: Vec<(Vec<u8>, String)>,
}

impl DataDir {
    /// Finds all files of a DataDir. `types`: a file as collectd's types.db.
    pub(super) fn find(dir: &Path, types: Option<&Path>) -> Result<DataDir> {
        ensure_folder(dir)?;
        let mut source = DataDir {
            types: types.map_or_else(|| Ok(TypesDb::embedded()), read_types)?,
            files: Vec::new(),
            refused: Vec::new(),
        };
        let mut found = Vec::new();
        source.walk(dir, &mut Vec::new(), &mut found);
        found.sort_unstable();
        source.files = found
            .into_iter()
            .map(|(_, _, path, name)| (path, name))
            .collect();
        Ok(source)
    }

    /// Adds the files below a folder, whose name below the DataDir is `below`. It does not follow links to folders, because
    /// they may lead anywhere.
    fn walk(
        &mut self,
        folder: &Path,
        below: &mut Vec<u8>,
        found: &mut Vec<(u64, u64, PathBuf, Vec<u8>)>,
    ) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.refuse(below, &error.to_string()),
        };
        let length = below.len();
        for entry in entries.flatten() {
            let path = entry.path();
            below.truncate(length);
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(entry.file_name().as_bytes());
            let depth = below.iter().filter(|byte| **byte == b'/').count() + 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH => self.walk(&path, below, found),
                Ok(kind) if kind.is_dir() => {
                    self.refuse(below, "no folder of collectd lies so deep")
                }
                Ok(_) if path.extension().is_none_or(|end| end != "rrd") => {}
                Ok(_) => match fs::metadata(&path) {
                    Ok(stat) if !stat.is_file() => self.refuse(below, "it is no regular file"),
                    // The placeholder of a series of kymo.
                    Ok(stat) if stat.len() == 0 => {}
                    Ok(stat) => found.push((stat.dev(), stat.ino(), path, below.clone())),
                    Err(error) => self.refuse(below, &error.to_string()),
                },
                Err(error) => self.refuse(below, &error.to_string()),
            }
        }
        below.truncate(length);
    }

    fn refuse(&mut self, name: &[u8], why: &str) {
        self.refused.push((name.to_vec(), why.into()));
    }

    /// Hands over all files.
    pub(super) fn hand_over(self, importer: &mut Importer<'_>) -> Result<()> {
        for (name, why) in &self.refused {
            importer.leave_out(name, why);
        }
        let (pace, all) = (WorkPace::new(), count(self.files.len()));
        for (at, (path, name)) in self.files.iter().enumerate() {
            importer.show(&pace, "files", (count(at), Some(all)));
            match self.read(path, name) {
                Ok(file) => importer.add(ImportedSeries {
                    name: name.clone(),
                    file,
                })?,
                Err(why) => importer.leave_out(name, &why),
            }
        }
        Ok(())
    }

    /// The bytes of a file that can be imported, or why it cannot.
    fn read(&self, path: &Path, name: &[u8]) -> Result<Vec<u8>, String> {
        let identifier = Identifier::of_rrd_path(name);
        let identifier = identifier
            .ok_or("its name is not HOST/PLUGIN-INSTANCE/TYPE-INSTANCE.rrd of a DataDir")?;
        let bytes = read_locked(path)?;
        let header = Header::parse(&bytes).map_err(|error| error.text)?;
        self.check(&identifier, &header)?;
        Ok(bytes)
    }

    /// Compares the data sources of a file with those of its type. Types that types.db lacks are taken as they are, as from
    /// the network.
    fn check(&self, identifier: &Identifier<'_>, header: &Header) -> Result<(), String> {
        let Some(sources) = self.types.sources(identifier.type_name) else {
            return Ok(());
        };
        let wanted = sources
            .iter()
            .map(|source| (source.name.as_bytes(), source.kind.word().as_bytes()));
        let given = header.ds.iter().map(|ds| (ds.name(), ds.dst()));
        if wanted.clone().eq(given) {
            return Ok(());
        }
        let words = |names: &mut dyn Iterator<Item = (&[u8], &[u8])>| {
            let each =
                names.map(|(name, kind)| format!("{}:{}", DisplayName(name), DisplayName(kind)));
            each.collect::<Vec<_>>().join(" ")
        };
        let type_name = DisplayName(identifier.type_name);
        Err(format!(
            "it has {}, and the type {type_name} has {}; --types-db FILE names another types.db",
            words(&mut header.ds.iter().map(|ds: &DsDef| (ds.name(), ds.dst()))),
            words(&mut wanted.clone())
        ))
    }
}

fn read_types(path: &Path) -> Result<TypesDb> {
    let cannot = || format!("cannot read {}", path.display());
    let mut text = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(TYPES_MAX)
        .read_to_end(&mut text)
        .with_context(cannot)?;
    let mut types = TypesDb::default();
    for bad in types.add(&text) {
        talk::say(format_args!(
            "kymo: {} line {}: {}",
            path.display(),
            bad.line,
            bad.why
        ));
    }
    Ok(types)
}
