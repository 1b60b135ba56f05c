/** Which test files need the Linux sandbox. Elsewhere `test/needs-linux.test.ts` counts them as skipped. */

/** What holds for shells on the host holds in the sandbox too: these run a second time, in the sandbox. */
export const SHELL_TESTS = [
  'test/workspace/{background,bash-session,command-ends,command-output,forged-reports,interrupt,output-filter,shells}.test.ts',
  'test/tools/bash.test.ts',
  'test/stories/{ending,processes}.test.ts',
]

/** These run in the sandbox only, or mount file systems. */
export const SANDBOX_TESTS = [
  'test/stories/{isolation,network,network-escape,network-requests,real-disks}.test.ts',
  'test/workspace/{bubblewrap,sandbox}.test.ts',
]
