import { defineConfig } from 'vitest/config'

/** What holds for shells holds behind a wall too: these run again there. */
const SHELL_TESTS = [
  'test/workspace/{background,bash-session,command-output,forged-reports,interrupt,output-filter,shells}.test.ts',
  'test/tools/bash.test.ts',
  'test/stories/processes.test.ts',
]

export default defineConfig({
  test: {
    // Most of them wait for processes and timers: two at a time, also where there are only two cores.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A condition is waited for as long as the machine may be busy with something else.
    expect: { poll: { timeout: 20_000 } },
    reporters: ['default'],
    projects: [
      { extends: true, test: { name: 'all', include: ['test/**/*.test.ts'], provide: { isolation: 'none' } } },
      {
        extends: true,
        test: {
          name: 'behind a wall',
          include: SHELL_TESTS,
          provide: { isolation: 'bubblewrap' },
        },
      },
    ],
  },
})
