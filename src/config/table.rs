//! The macro that turns a list of rows into a table and a struct.
//!
//! A row is
//!
//! ```text
//! Type "name" = default, [valid], Importance (internal)?, Scope
//!     (from ["other.name" Conversion, ...])?
//!     (=> field: RustType,)? (no_effect "reason",)? (refused "reason",)?
//!     "What it does.";
//! ```
//!
//! 1. A row with a field is applied: the broker reads that field. So is a row of the broker that
//!    others name in `from`. Any other row says why it has no effect, or why it is refused. A field
//!    beside a reason is read by the checks of other configurations only.
//! 2. Nothing else in the crate lists names: parsing, DescribeConfigs, AlterConfigs and the
//!    document all walk the rows.

use super::{FromValue, Row, Value};

/// What the macro gives each of its structs.
pub trait Table: Sized {
    const ROWS: &'static [Row];
    /// The names that have a field.
    const FIELDS: &'static [&'static str];

    /// The struct, each field from the value of its name.
    fn build(value_of: &dyn Fn(&'static Row) -> Value) -> Self;

    /// Changes the field of `name`; a name without a field changes nothing.
    fn set(&mut self, name: &str, value: Value);
}

pub(super) fn field<T: FromValue>(
    row: &'static Row,
    value_of: &dyn Fn(&'static Row) -> Value,
) -> T {
    T::from_value(value_of(row))
}

macro_rules! config_table {
    (
        $(#[$meta:meta])*
        $struct:ident;
        $(
            $type:ident $name:literal = $default:tt, [$valid:expr],
                $importance:ident $($internal:ident)?, $scope:ident
                $(from [$($fallback:literal $conversion:ident),*])?
                $(=> $field:ident: $field_type:ty,)?
                $(no_effect $why:literal,)?
                $(refused $because:literal,)?
                $text:literal;
        )*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $struct {
            $( $(
                #[doc = concat!("`", $name, "`: ", $text)]
                pub $field: $field_type,
            )? )*
        }

        impl $crate::config::table::Table for $struct {
            const ROWS: &'static [$crate::config::Row] = {
                #[allow(unused_imports)]
                use $crate::config::Valid::*;
                &[ $( $crate::config::Row {
                    name: $name,
                    config_type: $crate::config::ConfigType::$type,
                    default: $crate::config::table::default!($default),
                    valid: $valid,
                    importance: $crate::config::Importance::$importance,
                    internal: $crate::config::table::is_internal!($($internal)?),
                    scope: $crate::config::Scope::$scope,
                    fallbacks: &[ $( $( $crate::config::Fallback {
                        name: $fallback,
                        conversion: $crate::config::Conversion::$conversion,
                    } ),* )? ],
                    effect: $crate::config::table::effect!(
                        $(no_effect $why)? $(refused $because)?
                    ),
                    documentation: $text,
                } ),* ]
            };

            const FIELDS: &'static [&'static str] = &[
                $( $( $crate::config::table::name_of!($field $name), )? )*
            ];

            #[allow(unused_variables)]
            fn build(
                value_of: &dyn Fn(&'static $crate::config::Row) -> $crate::config::Value,
            ) -> Self {
                let row = |name: &str| {
                    let rows = <Self as $crate::config::table::Table>::ROWS;
                    rows.iter().find(|row| row.name == name).expect("the table has its own names")
                };
                $struct { $( $( $field: $crate::config::table::field(row($name), value_of), )? )* }
            }

            #[allow(unused_variables)]
            fn set(&mut self, name: &str, value: $crate::config::Value) {
                match name {
                    $( $(
                        $name => {
                            self.$field =
                                <$field_type as $crate::config::FromValue>::from_value(value);
                        }
                    )? )*
                    _ => {}
                }
            }
        }
    };
}

macro_rules! default {
    (required) => {
        $crate::config::DefaultValue::Required
    };
    (null) => {
        $crate::config::DefaultValue::Null
    };
    ($text:literal) => {
        $crate::config::DefaultValue::Text($text)
    };
}

macro_rules! is_internal {
    () => {
        false
    };
    (internal) => {
        true
    };
}

macro_rules! effect {
    (no_effect $why:literal) => {
        $crate::config::Effect::NoEffect($why)
    };
    (refused $because:literal) => {
        $crate::config::Effect::Refused($because)
    };
    () => {
        $crate::config::Effect::Applied
    };
}

macro_rules! name_of {
    ($field:ident $name:literal) => {
        $name
    };
}

pub(super) use {config_table, default, effect, is_internal, name_of};
