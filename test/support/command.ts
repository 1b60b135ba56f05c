/** Runs a command of the program under test as a shell does: arguments, environment and stdin in, two outputs and an exit code out. */
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFailed } from 'vitest'
import { commandLine } from './server.ts'

export type CommandOptions = {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Stdin. Without it there is none. */
  readonly input?: string
}

export type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

export type Running = {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  /** Resolves when stderr contains the text; throws if the command ends without it. */
  readonly said: (text: string) => Promise<void>
}

export const runCommand = (args: readonly string[], options?: CommandOptions) => startCommand(args, options).finished

export function startCommand(args: readonly string[], { env = {}, cwd, input }: CommandOptions = {}): Running {
  const [command, ...rest] = commandLine(args)
  const child = spawn(command, rest, {
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  let [stdout, stderr] = ['', '']
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  if (input !== undefined) child.stdin!.on('error', () => {}).end(input)
  const finished = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }))
  tellIfTestFails(() => `agent-server ${args.join(' ')}: exit code ${child.exitCode}\n${stderr}`)
  const said = async (text: string) => {
    while (!stderr.includes(text)) {
      const isOver = await Promise.race([once(child.stderr!, 'data').then(() => false), finished.then(() => true)])
      if (isOver && !stderr.includes(text)) throw new Error(`it never said ${text}:\n${stderr}\n${stdout}`)
    }
  }
  return { child, finished, said }
}

/** A comparison of some of what a command returned shows only these, and what it said of its failure is on stderr. */
function tellIfTestFails(tell: () => string): void {
  try {
    onTestFailed(() => console.error(tell()))
  } catch {
    // It is not called in a test, but in a hook.
  }
}
