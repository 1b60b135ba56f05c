/** Lists the test files that need the Linux sandbox. Elsewhere `test/needs-linux.test.ts` counts them as skipped. */

/** What holds for shells on the host holds in the sandbox too: these run a second time, in the sandbox. */
export const SHELL_TESTS = [
  'test/shell/{background,bash-session,command-ends,forged-reports,output-filter,shells}.test.ts',
  'test/shell/output/output-capture.test.ts',
  'test/shell/processes/interrupt.test.ts',
  'test/tools/bash.test.ts',
  'test/stories/{ending,processes}.test.ts',
]

/** These run in the sandbox only, mount file systems, or need Linux's C library or its locks. */
export const SANDBOX_TESTS = [
  'test/stories/{home-access,host-processes,isolation,network,network-escape,network-requests,real-disks,replays,silent-name-server,without-git}.test.ts',
  'test/stories/restarted-instance.test.ts',
  'test/storage/postgres/former-incarnation.test.ts',
  'test/sandbox/{bubblewrap,sandbox}.test.ts',
]
