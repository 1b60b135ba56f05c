/** Stands for the tests of the Linux sandbox on other systems, where each of their files is counted as skipped. */
import { test } from 'vitest'
import { SANDBOX_TESTS, SHELL_TESTS } from './support/sandbox-tests.ts'

for (const files of SANDBOX_TESTS) test.skip(`${files} needs the Linux sandbox`)
for (const files of SHELL_TESTS) test.skip(`${files} in the sandbox needs Linux`)
