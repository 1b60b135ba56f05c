/** Version 3 of the tables: workdirs are named as in the tables of files, so that both can be copied to each other. */

export const SECOND_MIGRATION = `
update shared_workdirs set workdir = encode(sha256(convert_to(workdir, 'UTF8')), 'hex')`
