/** A later version of the tables: profiles, as API keys are stored. */

export const ELEVENTH_MIGRATION = `
create table profiles (
  id text primary key,
  number bigint not null generated always as identity,
  value text not null,
  used_at text
);
create table profile_version (
  version bigint not null,
  changed_by uuid
);
insert into profile_version values (1)`
