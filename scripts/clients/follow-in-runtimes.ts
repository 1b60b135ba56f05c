/** Runs a small program with the typed client of the npm package in Deno, in Bun and in the oldest supported Node. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { bundleModules } from '../package/bundle-modules.ts'
import type { Environment } from './toolchains.ts'

const RUN_MS = 60_000

/** Arguments after which the path of the program follows. */
const RUNTIMES = { deno: ['run', '--allow-net', '--allow-env'], bun: ['run'], node: [] } as const

const PROGRAM = `
import { AgentServerError, createClient } from './package/client.js'
import process from 'node:process'
const client = createClient({ baseUrl: process.env.AGENT_SERVER_URL, apiKey: process.env.AGENT_SERVER_KEY })
const conversation = client.conversation((await client.conversations.create({ title: 'sum' })).id)
const { result } = await conversation.sendAndWait('What is six times seven?')
const types = []
for await (const { type } of conversation.events({ types: ['UserMessage', 'Result'] })) {
  types.push(type)
  if (type === 'Result') break
}
await conversation.files.put('a b.txt', new Blob(['hello']))
const file = await (await conversation.files.get('a b.txt')).text()
await conversation.delete()
const error = await conversation.get().catch((reason) => reason)
console.log([result.final_text, ...types, file, error instanceof AgentServerError && error.code].join(' '))
`
const OUTPUT = 'It is 42. UserMessage Result hello conversation_deleted'

/** True if it works in all of them. `say` gets a line for each. */
export async function followInRuntimes(
  directory: string,
  work: string,
  settings: Environment,
  say: (text: string) => void,
): Promise<boolean> {
  const folder = join(work, 'runtimes')
  mkdirSync(folder)
  await bundleModules(join(folder, 'package'))
  const program = join(folder, 'program.mjs')
  writeFileSync(program, PROGRAM)
  let works = true
  for (const [name, args] of Object.entries(RUNTIMES)) {
    const command = join(directory, 'node_modules/.bin', name)
    const { stdout, all } = await execa(command, [...args, program], {
      env: settings,
      all: true,
      reject: false,
      timeout: RUN_MS,
    })
    say(`the typed client in ${name}: ${stdout === OUTPUT ? 'works' : `FAILED\n${all}`}`)
    works &&= stdout === OUTPUT
  }
  return works
}
