/** A later version of the tables: logins, as API keys are stored. */

export const EIGHTH_MIGRATION = `
create table logins (
  id text primary key,
  number bigint not null generated always as identity,
  value text not null,
  used_at text
);
create table login_version (
  version bigint not null,
  changed_by uuid
);
insert into login_version values (1)`
