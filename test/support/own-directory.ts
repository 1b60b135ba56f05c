/**
 * Gives each test file a directory of its own for temporary files, and fails the file if it leaves something there, a
 * process that was started with it, or another state of this process, in which the next file runs. Vitest runs this
 * before each file.
 */
import { chmodSync, mkdtempSync, readdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeEach, expect, inject } from 'vitest'
import type { LeftProcess } from './left-processes.ts'
import { endProcesses, processesOf } from './left-processes.ts'
import { IS_SOAK, PATIENCE_MS } from './patience.ts'
import { removeAllSync } from './remove-all.ts'
import { until } from './until.ts'

/** The cache of Node, for all programs of a user that ask for one, such as those of npm. */
const SHARED_CACHE = 'node-compile-cache'

// The next run, and programs that tests run from the sources, load the same modules: in half of the processor time.
process.env['NODE_COMPILE_CACHE'] = join(import.meta.dirname, '../../node_modules/.cache/node-compile-cache')
enableCompileCache(process.env['NODE_COMPILE_CACHE'])
// It is for this process only: see scripts/test.ts.
delete process.env['MALLOC_ARENA_MAX']
// A search for a smaller counterexample ends before the test does, which would report nothing of it.
if (!IS_SOAK) fc.configureGlobal({ interruptAfterTimeLimit: PATIENCE_MS })
// Short, because the path of a Unix socket has at most 103 bytes.
const directory = mkdtempSync(join(inject('temporary'), 'f-'))
const before = process.env['TMPDIR']
process.env['TMPDIR'] = directory
const stateBefore = stateOfProcess()
// Tests run programs as other users.
chmodSync(directory, 0o711)

// Vitest cannot say which of the tests that run at the same time made an assertion, so it does not require one of each.
beforeEach((context) => {
  if (context.task.concurrent) context.expect(context.task.concurrent).toBe(true)
})

// Vitest runs the hooks of the setup after those of the file.
afterAll(async () => {
  // A process that got a signal to end takes a moment, and so does what a property had begun when its time was up.
  let [processes, files]: [LeftProcess[], string[]] = [[], []]
  const isClean = async () => {
    ;[processes, files] = [processesOf(directory), filesIn()]
    return processes.length === 0 && files.length === 0
  }
  await until('the end of all processes and files', isClean).catch(() => {}) // as they are
  const state = changesSince(stateBefore)
  if (before === undefined) delete process.env['TMPDIR']
  else process.env['TMPDIR'] = before
  endProcesses(processes)
  removeAllSync(directory)
  expect({ files, processes, state }, 'what this file leaves').toEqual({ files: [], processes: [], state: [] })
})

/** A directory, a variable or a replaced function that a file leaves would be that of the next file. */
function stateOfProcess(): Record<string, unknown> {
  const functions = { Date, fetch, setImmediate, setInterval, setTimeout, now: Date.now, random: Math.random }
  return { ...process.env, ...functions, 'current directory': process.cwd(), umask: process.umask() }
}

/** Returns names only: a variable can be a secret. */
function changesSince(stateBefore: Record<string, unknown>): string[] {
  const state = stateOfProcess()
  return Object.keys({ ...stateBefore, ...state }).filter((name) => state[name] !== stateBefore[name])
}

const filesIn = () => readdirSync(directory).filter((name) => name !== SHARED_CACHE)
