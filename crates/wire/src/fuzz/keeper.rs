//! The keeper's protocol: what can be read is written again as the same bytes.

use crate::keeper::{Answer, HEAD, Question};

/// Any bytes as a question and as an answer.
pub fn fuzz_keeper(input: &[u8]) {
    if let Ok(question) = Question::read(input) {
        assert_eq!(&question.frame()[HEAD..], input, "a question changed");
    }
    if let Ok(answer) = Answer::read(input) {
        // Texts for people need not be UTF-8 when they come.
        let again = answer.frame();
        assert!(
            matches!(answer, Answer::Refused(_) | Answer::Taken(_)) || &again[HEAD..] == input,
            "an answer changed"
        );
    }
}
