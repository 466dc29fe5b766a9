//! Authorization, principals and delegation tokens.

use crate::config::table::config_table;

config_table! {
    /// Authorization, principals and delegation tokens.
    SecurityConfig;

    String "authorizer.class.name" = "", [NonNullText], Low, ReadOnly
        refused "requests would be served that the authorizer forbids",
        "The class that decides who may do what; empty for everyone may do everything.";
    Class "principal.builder.class" = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", [Any],
        Medium, PerBroker
        refused "clients would get another identity than the one it builds",
        "The class that makes the identity of a client from its connection.";
    String "security.providers" = null, [Any], Low, ReadOnly
        no_effect "no Java security provider is used",
        "Java security providers to add.";
    Password "delegation.token.secret.key" = null, [Any], Medium, ReadOnly
        no_effect "delegation tokens are not issued",
        "The key that delegation tokens are signed with.";
    Long "delegation.token.expiry.check.interval.ms" = "3600000", [AtLeast(1)], Low, ReadOnly
        no_effect "delegation tokens are not issued",
        "How often delegation tokens are looked at for those past their time.";
    Long "delegation.token.expiry.time.ms" = "86400000", [AtLeast(1)], Medium, ReadOnly
        no_effect "delegation tokens are not issued",
        "How long a delegation token is good before it has to be renewed.";
    Long "delegation.token.max.lifetime.ms" = "604800000", [AtLeast(1)], Medium, ReadOnly
        no_effect "delegation tokens are not issued",
        "How long a delegation token can be renewed.";
}
