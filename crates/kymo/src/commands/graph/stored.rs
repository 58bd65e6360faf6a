//! Stored series of a picture: a running `kymo serve` lists them and answers with their rows.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kymo_base::labels;
use kymo_base::name::DisplayName;
use kymo_keeper_client::Keeper;
use kymo_query::series::Series;
use kymo_query::sheet::Line;
use kymo_query::stored::{Answered, StoredField};
use kymo_view::graphs::LINES_MAX;
use kymo_wire::keeper::SeriesInfo;

/// Columns of stored series to draw.
pub(super) struct Stored {
    keeper: Keeper,
    /// All series, by name.
    listed: Vec<SeriesInfo>,
    fields: Vec<StoredField>,
    /// Number of fields that were requested by id.
    named: usize,
}

impl Stored {
    /// Fields with these ids, and all columns of the series that all matchers pick, if there are matchers.
    pub(super) fn find(
        socket: PathBuf,
        ids: &[String],
        matchers: &[String],
    ) -> Result<Stored, String> {
        let fields = ids.iter().map(|id| StoredField::parse(id));
        let mut fields: Vec<StoredField> = fields.collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        let mut is_new = |field: &StoredField| seen.insert(field.id.clone());
        fields.retain(&mut is_new);
        let named = fields.len();
        let keeper = Keeper::at(socket);
        let matchers = keeper.matchers(matchers)?;
        let listed = keeper.select(&[])?;
        let picked = |info: &&SeriesInfo| {
            let mut picks = matchers.iter().map(|matcher| matcher.picks(&info.name));
            !matchers.is_empty() && picks.all(|picks| picks)
        };
        let all = listed.iter().filter(picked).flat_map(StoredField::all_of);
        fields.extend(all.filter(is_new));
        if fields.len() > LINES_MAX {
            return Err(format!(
                "cannot draw {} columns of stored series: at most {LINES_MAX}; pick fewer",
                fields.len()
            ));
        }
        Ok(Stored {
            keeper,
            listed,
            fields,
            named,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Host of the series, if they are all of one host.
    pub(super) fn host(&self) -> String {
        let mut hosts = self
            .fields
            .iter()
            .map(|field| labels::value(&field.name, "host"));
        let first = hosts.next().unwrap_or_default();
        match !first.is_empty() && hosts.all(|host| host == first) {
            true => DisplayName(&first).to_string(),
            false => "Stored series".into(),
        }
    }

    /// Adds the fields' lines, whose picks are numbered from `first` on. A field that was requested by id has to exist.
    pub(super) fn add(&self, first: usize, series: &mut Series) -> Result<Vec<Line>, String> {
        let answered = Answered::ask(&self.keeper, &self.fields, series)?;
        for field in &self.fields[..self.named] {
            answered.rows(field)?;
        }
        answered.add_marks(&self.keeper, series)?;
        let before = series.lines.len();
        answered.add(&self.fields, &self.listed, first, series);
        Ok(series.lines[before..].to_vec())
    }
}
