import { defineConfig } from 'vitest/config'
import { CLUSTER_TESTS, STORIES_OF_ONE_STORAGE } from './test/support/cluster-tests.ts'
import { LONG_TESTS } from './test/support/long-tests.ts'
import { PATIENCE_MS } from './test/support/patience.ts'
import { SANDBOX_TESTS, SHELL_TESTS } from './test/support/sandbox-tests.ts'

const isLinux = process.platform === 'linux'
const everywhere = { extends: true as const }
const elsewhere = isLinux ? ['test/needs-linux.test.ts'] : SANDBOX_TESTS

const all = {
  ...everywhere,
  test: {
    name: 'all',
    include: ['test/**/*.test.ts'],
    exclude: [...LONG_TESTS, ...CLUSTER_TESTS, ...elsewhere],
    provide: { isolation: 'none' as const },
  },
}
const long = {
  ...everywhere,
  test: { name: 'long', include: LONG_TESTS, exclude: elsewhere, provide: { isolation: 'none' as const } },
}
const sandboxed = {
  ...everywhere,
  test: { name: 'sandboxed', include: SHELL_TESTS, provide: { isolation: 'bubblewrap' as const } },
}

const onPostgres = { provide: { isolation: 'none' as const }, env: { TEST_STORAGE: 'postgres' } }
const cluster = {
  ...everywhere,
  test: {
    name: 'cluster',
    include: ['test/stories/*.test.ts'],
    exclude: [...STORIES_OF_ONE_STORAGE, ...LONG_TESTS],
    ...onPostgres,
  },
}
const clusterLong = {
  ...everywhere,
  test: {
    name: 'cluster-long',
    include: LONG_TESTS.filter((path) => path.startsWith('test/stories/')),
    exclude: STORIES_OF_ONE_STORAGE,
    ...onPostgres,
  },
}

export default defineConfig({
  test: {
    // Most of them wait for processes and timers: four at a time, also where there are only two cores.
    maxWorkers: 4,
    // A process of its own for each file took half of the processor time of all tests, to load the same modules again.
    isolate: false,
    // With 16 MB for what is new, every tenth of the processor time is spent on looking for what can be thrown away.
    execArgv: ['--max-semi-space-size=64', '--min-semi-space-size=64'],
    // Node loads the modules itself, as it does those of the server. Vite takes `#` and `?` in a path for parts of a URL.
    // No test replaces modules: to look for that, Vitest would parse each test file twice more.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // So that the caches of Node know the test files from the last run.
    runner: 'test/support/import-once.ts',
    globalSetup: ['test/support/run-directory.ts'],
    setupFiles: ['test/support/own-directory.ts', ...(process.env['TEST_COSTS'] ? ['test/support/costs.ts'] : [])],
    // Waits inside a test end sooner, and say what they saw.
    testTimeout: 2 * PATIENCE_MS,
    hookTimeout: 2 * PATIENCE_MS,
    // A test without an assertion passes whatever the code does.
    expect: { requireAssertions: true, poll: { timeout: PATIENCE_MS } },
    reporters: ['default'],
    projects: isLinux ? [sandboxed, all, long, cluster, clusterLong] : [all, long],
  },
})
