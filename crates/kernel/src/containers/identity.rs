//! The facts that a runtime keeps of a group, and their text in a recording.

/// Longest text of one fact, in bytes.
const FACT_MAX: usize = 512;

/// Facts of a control group; an unknown one is empty.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GroupIdentity {
    /// Runtime that made the group: `docker`, `podman`, `containerd`, `cri-o`, `kubernetes` or `systemd`.
    pub runtime: &'static str,
    /// Name of the container, or the unit of systemd.
    pub name: String,
    /// Image of the container.
    pub image: String,
    /// Name of the pod around the container.
    pub pod: String,
    /// Namespace of Kubernetes.
    pub namespace: String,
}

impl GroupIdentity {
    /// Returns true if nothing is known of the group.
    pub fn is_unknown(&self) -> bool {
        [&self.name, &self.image, &self.pod, &self.namespace]
            .iter()
            .all(|fact| fact.is_empty())
    }

    /// Appends the lines `KEY:<tab>VALUE` of the known facts.
    pub fn put_text(&self, out: &mut Vec<u8>) {
        if self.is_unknown() {
            return;
        }
        for (key, value) in [
            ("runtime", self.runtime),
            ("name", &self.name),
            ("image", &self.image),
            ("pod", &self.pod),
            ("namespace", &self.namespace),
        ] {
            let value = clean(value);
            if !value.is_empty() {
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(b":\t");
                out.extend_from_slice(value.as_bytes());
                out.push(b'\n');
            }
        }
    }

    /// Returns the identity with its runtime.
    pub(super) fn with_runtime(self, runtime: &'static str) -> GroupIdentity {
        GroupIdentity { runtime, ..self }
    }
}

/// The text without control characters and outer blanks, cut at [`FACT_MAX`].
fn clean(text: &str) -> String {
    let mut out = String::new();
    for letter in text.trim().chars().filter(|letter| !letter.is_control()) {
        if out.len() + letter.len_utf8() > FACT_MAX {
            break;
        }
        out.push(letter);
    }
    // A control character may have stood before a blank.
    out.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_known_facts_in_clean_lines() {
        let long = "a".repeat(600);
        for (name, image, expect) in [
            ("", "", String::new()),
            ("web", "", "runtime:\tdocker\nname:\tweb\n".into()),
            (
                " w\neb\u{1b} ",
                "nginx:1.25",
                "runtime:\tdocker\nname:\tweb\nimage:\tnginx:1.25\n".into(),
            ),
            ("\n \n", "x", "runtime:\tdocker\nimage:\tx\n".into()),
            (
                &long,
                "",
                format!("runtime:\tdocker\nname:\t{}\n", "a".repeat(FACT_MAX)),
            ),
        ] {
            let identity = GroupIdentity {
                runtime: "docker",
                name: name.into(),
                image: image.into(),
                ..GroupIdentity::default()
            };
            let mut text = Vec::new();
            identity.put_text(&mut text);
            assert_eq!(String::from_utf8_lossy(&text), expect);
        }
    }
}
