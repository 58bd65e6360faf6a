//! Interned words: the texts of word slots (comm, state, a command line), each
//! under a number. Ids are stable until [`Words::keep`] drops unused words.

use std::collections::HashMap;
use std::sync::Arc;

/// A two-way table of words and their ids.
#[derive(Default, Debug)]
pub struct Words {
    ids: HashMap<Arc<[u8]>, u32>,
    by_id: Vec<Option<Arc<[u8]>>>,
    free: Vec<u32>,
    bytes: usize,
}

impl Words {
    /// The id of `word`, made when it is new.
    pub fn intern(&mut self, word: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(word) {
            return id;
        }
        let shared: Arc<[u8]> = word.into();
        let id = self.free.pop().unwrap_or(self.by_id.len() as u32);
        self.set(id, shared);
        id
    }

    /// Places `word` at `id`, for a decoder.
    pub fn define(&mut self, id: u32, word: &[u8]) {
        if self.get(u64::from(id)) == Some(word) {
            return;
        }
        if let Some(old) = self.by_id.get_mut(id as usize).and_then(Option::take) {
            self.ids.remove(&old);
            self.bytes -= old.len();
        }
        self.set(id, word.into());
    }

    fn set(&mut self, id: u32, word: Arc<[u8]>) {
        let index = id as usize;
        self.bytes += word.len();
        if index >= self.by_id.len() {
            self.by_id.resize(index + 1, None);
        }
        self.by_id[index] = Some(word.clone());
        self.ids.insert(word, id);
    }

    /// The word under `id`.
    #[inline]
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        self.by_id.get(usize::try_from(id).ok()?)?.as_deref()
    }

    /// Number of ids ever used at once: an upper bound for tables indexed by id.
    pub fn capacity(&self) -> usize {
        self.by_id.len()
    }

    /// Number of words held.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of all words held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if no word is held.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Drops every word for which `used[id]` is not set; their ids are used again.
    pub fn keep(&mut self, used: &[bool]) {
        for (id, slot) in self.by_id.iter_mut().enumerate() {
            if used.get(id).copied().unwrap_or(false) {
                continue;
            }
            if let Some(word) = slot.take() {
                self.ids.remove(&word);
                self.bytes -= word.len();
                self.free.push(id as u32);
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Words::default();
    }
}
