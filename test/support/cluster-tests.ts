/** The stories that do not run a second time, with a database for each server. All others do, in `npm run test:cluster`. */
export const STORIES_OF_ONE_STORAGE = [
  // About the files of a data directory, or about disks.
  'test/stories/{earlier-data,earlier-tools,moved-data,older-data,transfer,full-disk,real-disks,faults,unfinished-stop}.test.ts',
  // With a database in every run.
  'test/stories/{database-outage,drained-instance,full-instance,lists-of-instances,postgres,remote-streams}.test.ts',
  'test/stories/{replays-of-instances,settings-of-instances,several-instances,tls-between-instances,racing-instances,restarted-instance}.test.ts',
  // Of the command line, which has a data directory of its own.
  'test/stories/{demo,doctor,first-start,first-answer,readme-tour,two-directories,personal-settings}.test.ts',
  'test/stories/{headless,headless-options,home-access,git-identity,additional-directories}.test.ts',
  // About the sandbox and the limits of processes, whatever the storage is.
  'test/stories/{isolation,network,network-escape,network-requests,guessing,resource-limits,host-processes}.test.ts',
]

/** The stories that run in `npm run test:cluster` alone: several instances with a database of their own, which stops. */
export const CLUSTER_TESTS = [
  'test/stories/{failing-instances,failed-over-database,killed-owner,stopped-owners}.test.ts',
]
