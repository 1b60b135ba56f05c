/** The size of the thread pool and of V8's young generation, for the executable and for a start from the sources. */
import { setFlagsFromString } from 'node:v8'

/**
 * Flags of Node, for the executable and for the scripts of package.json: a young generation of 12 MB at most. With V8's
 * own limit the server keeps 15 MB more after some hundred steps; a step takes as much processor time, within the
 * noise.
 */
export const NODE_FLAGS = ['--max-semi-space-size=4'] as const

/**
 * More threads for files than libuv's four: one unresponsive file system would block those, and with them every log.
 */
const THREAD_POOL_SIZE = '16'

/** Call it before the first use of the file system: after that the size of the pool is fixed. */
export function prepareProcess(): void {
  process.env.UV_THREADPOOL_SIZE ??= THREAD_POOL_SIZE
  // Allocations at startup are mostly garbage; a young generation that grows with it keeps 8 MB permanently.
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** Lets the young generation grow again with the workload. */
export function endPreparation(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}
