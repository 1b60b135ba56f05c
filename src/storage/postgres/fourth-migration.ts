/** A later version of the tables: each instance has an address at which the others reach it. */

export const FOURTH_MIGRATION = 'alter table incarnations add column address text'
