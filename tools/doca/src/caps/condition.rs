//! Conditions on capabilities, as in `rdma.atomic_cmp_swp,rdma.max_send_queue_size>=128`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// An answer of a device; none if it could not be asked.
pub(crate) type Answer = Option<Value>;

/// What a device says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Supported(bool),
    Number(u64),
}

/// What one answer must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Condition {
    name: String,
    /// None: it must be supported, or above zero.
    limit: Option<(Operator, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    AtLeast,
    AtMost,
    Equal,
    Above,
    Below,
}

/// How each operator is written. Those of two characters come first, because another is their beginning.
const OPERATORS: [(&str, Operator); 5] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("==", Operator::Equal),
    (">", Operator::Above),
    ("<", Operator::Below),
];

/// Why conditions were not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Misunderstood {
    #[error("there is no condition in {0:?}")]
    Empty(String),
    #[error("{0:?} has no name before its operator")]
    NoName(String),
    #[error("{0:?}: {1:?} is not a number; conditions are NAME or NAME>=NUMBER, with >=, <=, ==, > or <")]
    NotANumber(String, String),
    #[error("no capability is called {name:?}; there are {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error(
        "{name}: this program was built without the capabilities of libdoca_{feature}; build it with `--features doca-tools/{feature}`"
    )]
    Unbuilt { name: String, feature: &'static str },
    #[error("{0} is supported or not, and is not compared with a number")]
    NoLimit(String),
}

/// Reads a list of conditions, separated by commas.
pub(crate) fn parse(text: &str) -> Result<Vec<Condition>, Misunderstood> {
    text.split(',')
        .map(|condition| match condition.trim() {
            "" => Err(Misunderstood::Empty(text.to_owned())),
            condition => condition.parse(),
        })
        .collect()
}

impl FromStr for Condition {
    type Err = Misunderstood;

    fn from_str(text: &str) -> Result<Condition, Misunderstood> {
        let (name, limit) = match text.find(['<', '>', '=']) {
            None => (text, None),
            Some(at) => {
                let (name, rest) = text.split_at(at);
                let operator =
                    OPERATORS.iter().find_map(|&(sign, operator)| Some((rest.strip_prefix(sign)?, operator)));
                let (number, operator) = operator.unwrap_or((rest, Operator::Equal));
                let number = number.trim();
                let value = number.parse();
                let value =
                    value.map_err(|_| Misunderstood::NotANumber(text.to_owned(), number.to_owned()))?;
                (name.trim_end(), Some((operator, value)))
            }
        };
        if name.is_empty() {
            return Err(Misunderstood::NoName(text.to_owned()));
        }
        Ok(Condition { name: name.to_owned(), limit })
    }
}

impl Condition {
    /// Refuses a name that is none of these. `unbuilt` are beginnings of other names, with the feature that they need.
    pub(crate) fn check_name(
        &self,
        known: &[&str],
        unbuilt: &[(&str, &'static str)],
    ) -> Result<(), Misunderstood> {
        if known.contains(&self.name.as_str()) {
            return Ok(());
        }
        if let Some((_, feature)) = unbuilt.iter().find(|(start, _)| self.name.starts_with(start)) {
            return Err(Misunderstood::Unbuilt { name: self.name.clone(), feature });
        }
        let known = known.iter().map(|&name| name.to_owned()).collect();
        Err(Misunderstood::Unknown { name: self.name.clone(), known })
    }

    /// Whether it holds, with the answer.
    pub(crate) fn check(&self, answers: &BTreeMap<String, Answer>) -> Result<(bool, Answer), Misunderstood> {
        let answer = answers.get(&self.name).copied().flatten();
        let holds = match (answer, self.limit) {
            (None, _) => false,
            (Some(Value::Supported(yes)), None) => yes,
            (Some(Value::Supported(_)), Some(_)) => return Err(Misunderstood::NoLimit(self.name.clone())),
            (Some(Value::Number(number)), None) => number > 0,
            (Some(Value::Number(number)), Some((operator, limit))) => operator.holds(number.cmp(&limit)),
        };
        Ok((holds, answer))
    }
}

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Operator::AtLeast => order.is_ge(),
            Operator::AtMost => order.is_le(),
            Operator::Equal => order.is_eq(),
            Operator::Above => order.is_gt(),
            Operator::Below => order.is_lt(),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let Some((operator, limit)) = self.limit else { return Ok(()) };
        let sign = OPERATORS.iter().find(|row| row.1 == operator).map_or("", |row| row.0);
        write!(f, "{sign}{limit}")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Supported(true) => f.write_str("yes"),
            Value::Supported(false) => f.write_str("no"),
            Value::Number(number) => number.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> BTreeMap<String, Answer> {
        let answer = |name: &str, answer| (name.to_owned(), answer);
        BTreeMap::from([
            answer("rdma.send", Some(Value::Supported(true))),
            answer("rdma.read", Some(Value::Supported(false))),
            answer("rdma.max", Some(Value::Number(128))),
            answer("rdma.none", Some(Value::Number(0))),
            answer("rdma.lost", None),
        ])
    }

    fn holds(text: &str) -> Vec<bool> {
        let conditions = parse(text).unwrap();
        conditions.iter().map(|condition| condition.check(&answers()).unwrap().0).collect()
    }

    #[test]
    fn names_hold_if_supported_or_above_zero() {
        assert_eq!(
            holds("rdma.send, rdma.read ,rdma.max,rdma.none,rdma.lost"),
            [true, false, true, false, false]
        );
    }

    #[test]
    fn operators_compare() {
        assert_eq!(holds("rdma.max>=128,rdma.max>=129"), [true, false]);
        assert_eq!(holds("rdma.max<=128,rdma.max<=127"), [true, false]);
        assert_eq!(holds("rdma.max==128,rdma.max==127"), [true, false]);
        assert_eq!(holds("rdma.max>127,rdma.max>128"), [true, false]);
        assert_eq!(holds("rdma.max<129,rdma.max < 128"), [true, false]);
        assert_eq!(holds("rdma.lost<=1000"), [false]);
    }

    #[test]
    fn a_condition_is_printed_as_it_is_written() {
        for text in ["rdma.send", "rdma.max>=1", "rdma.max<=1", "rdma.max==1", "rdma.max>1", "rdma.max<1"] {
            assert_eq!(parse(text).unwrap()[0].to_string(), text);
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let says = |text: &str| match parse(text) {
            Err(why) => why.to_string(),
            Ok(conditions) => conditions[0].check(&answers()).unwrap_err().to_string(),
        };
        assert!(says("").contains("no condition"));
        assert!(says("rdma.send,,rdma.max").contains("no condition"));
        assert!(says(">=3").contains("no name"));
        assert!(says("rdma.max>=many").contains("\"many\" is not a number"));
        assert!(says("rdma.max=1").contains("\"=1\" is not a number"));
        assert!(says("rdma.max>=-1").contains("\"-1\" is not a number"));
        assert!(says("rdma.max>=").contains("\"\" is not a number"));
        assert!(says("rdma.send>=1").contains("rdma.send is supported or not"));
        let names = ["rdma.read", "rdma.send"];
        let unknown = parse("rdma.sned").unwrap()[0].check_name(&names, &[]).unwrap_err().to_string();
        assert!(unknown.contains("\"rdma.sned\"") && unknown.contains("rdma.read, rdma.send"), "{unknown}");
        parse("rdma.send").unwrap()[0].check_name(&names, &[]).unwrap();
        let unbuilt = parse("sta.qps>=16").unwrap()[0].check_name(&names, &[("sta.", "sta")]).unwrap_err();
        assert!(unbuilt.to_string().contains("--features doca-tools/sta"), "{unbuilt}");
    }
}
