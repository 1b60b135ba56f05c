import { defineConfig } from 'vitest/config'

/** What holds for shells holds behind a wall too: these run again there. */
const SHELL_TESTS = ['test/workspace/**/*.test.ts', 'test/tools/bash.test.ts']

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default'],
    projects: [
      { extends: true, test: { name: 'all', include: ['test/**/*.test.ts'], provide: { isolation: 'none' } } },
      {
        extends: true,
        test: {
          name: 'behind a wall',
          include: SHELL_TESTS,
          exclude: ['test/workspace/bubblewrap.test.ts'],
          provide: { isolation: 'bubblewrap' },
        },
      },
    ],
  },
})
