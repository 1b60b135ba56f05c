/** The README's requests and the tour, as a newcomer pastes them: the server in one terminal, everything else in another. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** In the order in which a reader pastes them: the second page continues where the first one ends. */
const TOUR = ['README.md', 'docs/README.md']
type TerminalName = 'terminal-1' | 'terminal-2'

const EXPORTED_KEY = '9f8e7d6c5b4a39281706f5e4d3c2b1a0'

test.each([
  ['at terminals', true, {}],
  ['without a terminal, with a key that is exported already', false, { OPENHANDS_MASTER_KEY: EXPORTED_KEY }],
])('the commands of the README and of the tour run as they are written %s', async (_, isTerminal, exported) => {
  const home = await mkdtemp(join(tmpdir(), 'agent-server-tour-'))
  const env = { PATH: process.env['PATH'], HOME: home, TERM: 'dumb', ...exported }
  const open = (script: string) => openTerminal(script, { home, env, isTerminal })
  const server = await open(await commandsFor('terminal-1'))
  try {
    await expect.poll(server.output).toMatch(isTerminal ? /Try it:/ : /"msg":"ready"/)
    const client = await open(await commandsFor('terminal-2'))
    expect(await client.ended, client.output()).toBe(0)
    const output = client.output()
    expect(output, 'the run that was waited for').toMatch(/"status":"idle","result":\{[^\n]*"stop_reason":"completed"/)
    expect(output, 'the sum that the script printed').toMatch(/total: 505/)
    expect(output).toMatch(/event: AssistantDelta\n/)
    expect(output, 'both messages').toMatch(/\{"count":2\}/)
    expect(output).toMatch(/event: deleted\n/)
    // The script of the agent has an error on purpose, which is part of the events.
    expect(output, 'nothing goes wrong').not.toMatch(/^(curl|bash|npm|agent-server|sh): |Terminated/m)
    expect(server.output(), 'nothing worries').not.toMatch(/warn|error|fatal/i)
    expect(server.output() + output).not.toContain(EXPORTED_KEY)
  } finally {
    await server.interrupt()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
})

test('the commands need nothing that only Linux or only GNU has', async () => {
  const commands = `${await commandsFor('terminal-1')}${await commandsFor('terminal-2')}`
  expect(commands).not.toMatch(/\/proc\/|readlink -f|sed -i |date -[dI]|grep -P|xargs -r|mktemp --| {2}#|^#/m)
})

test('both pages have commands, and no other page has blocks marked with a terminal, which are the ones that are run', async () => {
  const pages = ['README.md', ...(await Array.fromAsync(glob('docs/*.md', { cwd: ROOT })))]
  const marked = await Promise.all(
    pages.map(async (page) => /^```sh terminal-/m.test(await readFile(join(ROOT, page), 'utf8'))),
  )
  expect(pages.filter((_, index) => marked[index]).sort()).toEqual(TOUR)
})

async function commandsFor(terminal: TerminalName): Promise<string> {
  const texts = await Promise.all(TOUR.map((page) => readFile(join(ROOT, page), 'utf8')))
  const blocks = texts.flatMap((text) => [...text.matchAll(/^```sh (terminal-\d)\n(.*?)^```$/gms)])
  return blocks.flatMap(([, name, commands]) => (name === terminal ? commands : [])).join('')
}

type TerminalOptions = { readonly home: string; readonly env: NodeJS.ProcessEnv; readonly isTerminal: boolean }

/** A bash in the project's directory, which stops at the first command that fails. */
async function openTerminal(script: string, { home, env, isTerminal }: TerminalOptions) {
  const file = join(await mkdtemp(join(home, 'terminal-')), 'commands.sh')
  // A person's terminal stays open until the stream has ended, too.
  await writeFile(file, `${script}wait\n`)
  const bash = ['bash', '-e', '-u', '-o', 'pipefail', file]
  const [command = '', ...args] = isTerminal
    ? ['script', '--quiet', '--return', '--command', bash.join(' '), '/dev/null']
    : bash
  const child = spawn(command, args, { cwd: ROOT, env, stdio: 'pipe', detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text.replaceAll('\r', '')))
  const closed = once(child, 'close')
  const ended = once(child, 'exit').then(async ([code]) => {
    // After a failure the stream may still have the output open.
    if (code === 0) await closed
    return code as number | null
  })
  const interrupt = async () => {
    if (isTerminal) child.stdin.write(CTRL_C)
    else process.kill(-child.pid!, 'SIGINT')
    await ended
  }
  return { output: () => output, ended, interrupt }
}

const CTRL_C = '\x03'
