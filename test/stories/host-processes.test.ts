/**
 * What clients set never reaches a process outside of the sandbox: neither as a variable, with which a process runs code
 * of others, nor as an argument, which every user of the host can read. Needs the linker of Linux's C library.
 */
import { readdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findDescendants } from '../../src/shell/processes/process-table.ts'
import { setStage, type Stage } from '../support/agent.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')
/** One of a secret, and one of other texts: a secret in these is refused. */
const [SECRET, TEXT] = ['canary-in-a-secret', 'canary-in-a-text']
const OPEN = {}
const ALLOWLIST = { network: { mode: 'allowlist', allow: ['example.com'] } }

describe.each([
  { isolation: 'none', networks: [OPEN] },
  { isolation: 'bubblewrap', networks: [OPEN, ALLOWLIST] },
])('with the isolation $isolation', ({ isolation, networks }) => {
  let stage: Stage
  beforeAll(async () => {
    const readable = [join(ROOT, 'node_modules'), CHILDREN].join(':')
    stage = await setStage(
      { replies: [{ turns: [{ text: 'Done.' }] }] },
      { env: { OPENHANDS_ISOLATION: isolation, OPENHANDS_SANDBOX_READABLE: readable } },
    )
  })
  afterAll(() => stage[Symbol.asyncDispose]())

  const create = async (network: object) => {
    const id = await stage.create({ ...network, secrets: { TOKEN: SECRET } })
    const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
    return { id, workdir }
  }
  // Its processes end with it, and the next search does not find them.
  const remove = (id: string) => stage.server.call('DELETE', `/conversations/${id}`)
  const connect = async (id: string, env: Record<string, string>) => {
    const args = [join(CHILDREN, 'odd-server.ts'), 'plain', '${TOKEN}']
    const mcp = { mcpServers: { odd: { command: process.execPath, args, env } } }
    expect(await stage.server.call('PUT', `/conversations/${id}/config`, { mcp })).toMatchObject({ status: 200 })
    await stage.say(id, 'hello')
    const statusOf = async () => (await stage.server.call('GET', `/conversations/${id}/mcp`)).body.items[0].status
    await expect.poll(statusOf).toBe('connected')
  }

  test.each(networks)('the program is the only process that runs with its variables: %j', async (network) => {
    const { id, workdir } = await create(network)
    await writeFile(
      join(workdir, 'loaded.cjs'),
      `require('fs').appendFileSync('${workdir}/loaded', process.argv[1] + '\\n')`,
    )
    await connect(id, {
      // The linker of each process with these variables writes down which program it starts.
      LD_DEBUG: 'files',
      LD_DEBUG_OUTPUT: join(workdir, 'linked'),
      NODE_OPTIONS: `--require=${join(workdir, 'loaded.cjs')}`,
      BASH_ENV: join(workdir, 'none'),
    })
    const logs = (await readdir(workdir)).filter((name) => name.startsWith('linked.'))
    const texts = await Promise.all(logs.map((name) => readFile(join(workdir, name), 'utf8')))
    const started = texts.join('\n').matchAll(/transferring control: (.*)/g)
    expect([...started].map(([, program]) => program)).toEqual([process.execPath])
    expect(await readFile(join(workdir, 'loaded'), 'utf8')).toBe(`${join(CHILDREN, 'odd-server.ts')}\n`)
    await remove(id)
  })

  test.each(networks)('no other process of the host has them, a secret or a command: %j', async (network) => {
    const { id } = await create(network)
    await connect(id, { MINE: TEXT, NAMED: '${TOKEN}' })
    const command = `export MINE=${TEXT}; sleep 1000; : ${TEXT}`
    const exec = await stage.server.call('POST', `/conversations/${id}/commands`, { command, background: true })
    expect(exec.status).toBeLessThan(300)
    const holders = async () => {
      const found = await Promise.all(findDescendants(stage.server.pid).map(seenOf))
      return found.filter(({ texts }) => texts.includes('canary-in-'))
    }
    // The program and the command have them, so the search finds what there is.
    await expect.poll(async () => namesOf(await holders())).toEqual(['node', 'sleep'])
    // In the sandbox, they have another space of process ids.
    const outside = (await seenOf({ pid: stage.server.pid })).space
    const others = (await holders()).filter(({ space }) => space === outside)
    expect(namesOf(others)).toEqual(isolation === 'none' ? ['node', 'sleep'] : [])
    await remove(id)
  })
})

const namesOf = (found: readonly { readonly program: string | undefined }[]) =>
  found.map(({ program = '' }) => program).toSorted((a, b) => a.localeCompare(b))

/** What the host shows of a process; nothing of one that has ended. */
async function seenOf({ pid }: { readonly pid: number }) {
  const read = (name: string) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
  const [environment, words] = [await read('environ'), await read('cmdline')]
  const space = await readlink(`/proc/${pid}/ns/pid`).catch(() => '')
  return { program: words.split('\0')[0]?.split('/').at(-1), space, texts: environment + words }
}
