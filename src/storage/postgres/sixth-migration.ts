/** A later version of the tables: an instance that stops says so, and receives no more work. */

export const SIXTH_MIGRATION = 'alter table incarnations add column is_leaving boolean not null default false'
