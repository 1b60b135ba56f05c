/** The size of the thread pool and of V8's young generation, for the executable and for a start from the sources alike. */
import { setFlagsFromString } from 'node:v8'

/**
 * Flags of Node, for the executable and for the scripts of package.json: a young generation of 12 MB at most. With V8's
 * own limit the server keeps 15 MB more after some hundred steps; a step takes as much processor time, within the noise.
 */
export const NODE_FLAGS = ['--max-semi-space-size=4'] as const

/** More threads for files than libuv's four: one file system that hangs would take those, and with them every log. */
const THREAD_POOL_SIZE = '16'

/** Comes before the first use of the file system: after that the pool has its size. */
export function prepareProcess(): void {
  process.env.UV_THREADPOOL_SIZE ??= THREAD_POOL_SIZE
  // What a start allocates is mostly garbage; a young generation that grows with it keeps 8 MB for good.
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** The young generation may grow again with the work there is. */
export function endPreparation(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}
