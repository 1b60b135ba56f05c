/** A conversation of the durable bare loop: a file that takes its messages, and one bash that runs its commands. */
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { promisify } from 'node:util'

export type DurableConversation = {
  /** Resolves when it is on the disk. */
  readonly store: (message: object) => Promise<void>
  /** Returns what the command wrote. */
  readonly bash: (command: string) => Promise<string>
}

const open = promisify(fs.open)
const write = promisify(fs.write)
const APPEND_DURABLY = fs.constants.O_CREAT | fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_DSYNC

export async function createDurableConversation(path: string): Promise<DurableConversation> {
  // One trip through the thread pool for a message: the least that leaves the event loop free.
  const fd = await open(path, APPEND_DURABLY)
  return {
    store: async (message) => void (await write(fd, Buffer.from(`${JSON.stringify(message)}\n`))),
    bash: createBash(),
  }
}

function createBash(): (command: string) => Promise<string> {
  const child = spawn('bash', ['--norc', '--noprofile'], { stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  let mark = ''
  let finish: ((output: string) => void) | undefined
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    output += piece
    if (!output.endsWith(mark)) return
    finish?.(output.slice(0, -mark.length))
    output = ''
  })
  return (command) => {
    const { promise, resolve } = Promise.withResolvers<string>()
    finish = resolve
    mark = `${crypto.randomUUID()}\n`
    child.stdin.write(`{ ${command}\n} </dev/null 2>&1; echo ${mark}`)
    return promise
  }
}
