//! Values are forgotten when nobody needs them.

use super::*;

#[test]
fn a_value_is_known_as_long_as_it_is_held_and_a_while_longer() {
    let mut register = Register::default();
    let knows =
        |register: &Register, value: &str| !views::find(&register.patterns, value.as_bytes()).is_empty();
    let first = register.hold(SecretString::from("value-number-one".to_owned()));
    assert_eq!(register.hold(SecretString::from("value-number-one".to_owned())), first);
    register.release(first);
    let others: Vec<u64> =
        (0..LINGERING).map(|n| register.hold(SecretString::from(format!("other-value-{n}")))).collect();
    for other in &others {
        register.release(*other);
    }
    assert!(knows(&register, "value-number-one"), "it is still held");
    register.release(first);
    assert!(knows(&register, "value-number-one"), "it lingers");
    assert!(!knows(&register, "other-value-0"), "the first of those that lingered is forgotten");
    assert_eq!(register.hold(SecretString::from("value-number-one".to_owned())), first, "it is held again");
    for n in 0..MOST {
        register.hold(SecretString::from(format!("many-values-{n}")));
    }
    assert_eq!(register.entries.len(), MOST);
    assert!(!knows(&register, "other-value-7") && !knows(&register, "value-number-one"));
    assert!(knows(&register, "many-values-0") && knows(&register, &format!("many-values-{}", MOST - 1)));
}
