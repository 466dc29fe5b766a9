//! Authorization, principals and delegation tokens.

use crate::config::table::config_table;

config_table! {
    /// Authorization, principals and delegation tokens.
    SecurityConfig;

    String "authorizer.class.name" = "", [NonNullText], Low, ReadOnly
        refused "requests would be served that the authorizer forbids",
        "";
    Class "principal.builder.class" = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", [Any],
        Medium, PerBroker
        refused "clients would get another identity than the one it builds",
        "";
    String "security.providers" = null, [Any], Low, ReadOnly
        no_effect "no Java security provider is used",
        "";
    Password "delegation.token.secret.key" = null, [Any], Medium, ReadOnly
        no_effect "delegation tokens are not issued",
        "";
    Long "delegation.token.expiry.check.interval.ms" = "3600000", [AtLeast(1)], Low, ReadOnly
        no_effect "delegation tokens are not issued",
        "";
    Long "delegation.token.expiry.time.ms" = "86400000", [AtLeast(1)], Medium, ReadOnly
        no_effect "delegation tokens are not issued",
        "";
    Long "delegation.token.max.lifetime.ms" = "604800000", [AtLeast(1)], Medium, ReadOnly
        no_effect "delegation tokens are not issued",
        "";
}
