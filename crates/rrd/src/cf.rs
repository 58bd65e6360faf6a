//! Consolidation functions and data source types by name.

use crate::error::Error;

/// A consolidation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // rrdtool's own words
pub enum Cf {
    Average,
    Min,
    Max,
    Last,
    HwPredict,
    MhwPredict,
    DevPredict,
    Seasonal,
    DevSeasonal,
    Failures,
}

impl Cf {
    /// The function of a name in a file or a request.
    pub fn of(name: &[u8]) -> Option<Cf> {
        Some(match name {
            b"AVERAGE" => Cf::Average,
            b"MIN" => Cf::Min,
            b"MAX" => Cf::Max,
            b"LAST" => Cf::Last,
            b"HWPREDICT" => Cf::HwPredict,
            b"MHWPREDICT" => Cf::MhwPredict,
            b"DEVPREDICT" => Cf::DevPredict,
            b"SEASONAL" => Cf::Seasonal,
            b"DEVSEASONAL" => Cf::DevSeasonal,
            b"FAILURES" => Cf::Failures,
            _ => return None,
        })
    }

    /// The function with this name, or rrdtool's error.
    pub fn parse(name: &[u8]) -> Result<Cf, Error> {
        Cf::of(name).ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            Error::new(format!("unknown consolidation function '{name}'"))
        })
    }

    /// True outside the Holt-Winters family.
    pub fn is_plain(self) -> bool {
        matches!(self, Cf::Average | Cf::Min | Cf::Max | Cf::Last)
    }

    /// True for HWPREDICT and MHWPREDICT.
    pub fn is_prediction(self) -> bool {
        matches!(self, Cf::HwPredict | Cf::MhwPredict)
    }

    /// True for SEASONAL and DEVSEASONAL.
    pub fn is_seasonal(self) -> bool {
        matches!(self, Cf::Seasonal | Cf::DevSeasonal)
    }
}

/// True for the data source types of rrdtool.
pub fn is_dst(name: &[u8]) -> bool {
    [
        &b"GAUGE"[..],
        b"COUNTER",
        b"DERIVE",
        b"DCOUNTER",
        b"DDERIVE",
        b"ABSOLUTE",
        b"COMPUTE",
    ]
    .contains(&name)
}
