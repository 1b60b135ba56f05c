/** V8's flags and the size of the thread pool, for the executable and for a start from the sources. */
import { setFlagsFromString } from 'node:v8'

/**
 * Flags of Node, for the executable and for the scripts of package.json: a young generation of 12 MB at most. With V8's
 * own limit the server keeps 15 MB more after some hundred steps; a step takes as much processor time, within the
 * noise. And no debugger, which SIGUSR1 would open at a port of this machine: commands without a sandbox can send signals
 * to the server, and would read its memory.
 */
export const NODE_FLAGS = ['--max-semi-space-size=4', '--disable-sigusr1'] as const

/**
 * More threads for files than libuv's four: one unresponsive file system would block those, and with them every log.
 */
const THREAD_POOL_SIZE = '16'

/** V8 has no compilers under `--jitless`, which also takes WebAssembly away: to turn them on would end the process. */
const hasCompilers = 'WebAssembly' in globalThis

/**
 * What a server uses of Node. Node contains them compiled, and takes that only while V8 has the flags of its build: each one
 * that is loaded later is compiled again and kept as a code cache, together a twelfth of the processor time of a start.
 */
const NODE_MODULES = [
  'assert',
  'child_process',
  'cluster',
  'crypto',
  'dns',
  'dns/promises',
  'fs/promises',
  'http',
  'perf_hooks',
  'sqlite',
  'timers/promises',
  'worker_threads',
  'zlib',
] as const

/**
 * Allocations at startup are mostly garbage: a young generation that grows with it keeps 8 MB permanently. What runs once
 * is not worth optimizing: the compilers take a fifth of the processor time of a start, and 10 MB.
 */
const START_FLAGS = ['--semi-space-growth-factor=1', ...(hasCompilers ? ['--no-maglev', '--no-turbofan'] : [])]
/** V8's defaults. */
const RUN_FLAGS = ['--semi-space-growth-factor=2', ...(hasCompilers ? ['--maglev', '--turbofan'] : [])]

/** Bytes: a module that keeps a few bytes, such as a separator, keeps the whole pool that they were taken from. */
const START_POOL_SIZE = 8192
const RUN_POOL_SIZE = Buffer.poolSize

let isPrepared = false

/** Call it before the first use of the file system: after that the size of the pool is fixed. */
export function prepareProcess(): void {
  process.env.UV_THREADPOOL_SIZE ??= THREAD_POOL_SIZE
  for (const name of NODE_MODULES) process.getBuiltinModule(`node:${name}`)
  for (const flag of START_FLAGS) setFlagsFromString(flag)
  Buffer.poolSize = START_POOL_SIZE
  isPrepared = true
}

/**
 * Lets V8 optimize functions, and the young generation grow with the workload. Call it before work that can take long,
 * such as reading many conversations. Does nothing in a process that was not prepared: its flags are those of another program.
 */
export function endPreparation(): void {
  if (!isPrepared) return
  for (const flag of RUN_FLAGS) setFlagsFromString(flag)
  Buffer.poolSize = RUN_POOL_SIZE
}
