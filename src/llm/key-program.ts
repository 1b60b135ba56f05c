/** Runs the program of a key command to its end, within its limits. It leaves no process of its group behind. */
import { afterRunning } from '../lib/bounded-wait.ts'
import type { HostEnvironment } from '../lib/start-process.ts'
import { killGroup, startProcess } from '../lib/start-process.ts'

const TIMEOUT_MS = 10_000
const MAX_OUTPUT_BYTES = 64 * 1024
/** The last output of a program that has exited; what it has started may hold the pipe forever. */
const LAST_OUTPUT_MS = 200

export type ProgramOutput = {
  readonly stdout: string
  /** Its end, if it is long. */
  readonly stderr: string
  /** Why it did not succeed, as a clause; undefined if it did. */
  readonly end: string | undefined
}

/** Rejects if it cannot be started. Resolves when it has ended, whatever its output is. */
export async function runKeyProgram(
  [file = '', ...args]: readonly string[],
  env: HostEnvironment,
): Promise<ProgramOutput> {
  // The directory is one that nobody else writes to: programs read settings from the one they start in.
  const child = startProcess(file, args, { cwd: '/', env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const { promise: ending, resolve: end, reject } = Promise.withResolvers<string | undefined>()
  const stdout = new Tail()
  const stderr = new Tail()
  child.once('error', reject)
  child.once('close', (code, signal) => end(describe(code, signal)))
  child.once('exit', (code, signal) => {
    child.once(
      'close',
      afterRunning(LAST_OUTPUT_MS, () => end(describe(code, signal))),
    )
  })
  child.stderr?.on('error', () => {}).on('data', (bytes: Buffer) => stderr.add(bytes))
  child.stdout
    ?.on('error', () => {})
    .on('data', (bytes: Buffer) => {
      stdout.add(bytes)
      if (stdout.isCut) end(`it printed more than ${MAX_OUTPUT_BYTES / 1024} KiB`)
    })
  const cancel = afterRunning(TIMEOUT_MS, () => end(`it took longer than ${TIMEOUT_MS / 1000} s`))
  try {
    const why = await ending
    return { stdout: stdout.text, stderr: stderr.text, end: why }
  } finally {
    cancel()
    killGroup(child)
    child.stdout?.destroy()
    child.stderr?.destroy()
  }
}

function describe(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (code === 0) return undefined
  return code === null ? `it was ended by ${signal}` : `exit code ${code}`
}

/** The last bytes of an output. */
class Tail {
  #bytes = Buffer.alloc(0)
  /** True if the program wrote more. */
  isCut = false

  add(bytes: Buffer): void {
    const all = Buffer.concat([this.#bytes, bytes])
    this.isCut ||= all.length > MAX_OUTPUT_BYTES
    this.#bytes = all.subarray(-MAX_OUTPUT_BYTES)
  }

  get text(): string {
    return this.#bytes.toString('utf8')
  }
}
