/** The server on which the examples of the documentation run, its scripted model, and a receiver of its callbacks. */
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import type { TestServer } from '../../support/server.ts'
import { startServer } from '../../support/server.ts'
import { projectFiles } from '../blocks.ts'
import { answerFor } from './model.ts'

export type ExampleStage = AsyncDisposable & {
  readonly server: TestServer
  /** The directory in which commands of the pages run. Its name stands for `/srv` in examples. */
  readonly directory: string
  /** `llm_config` of the scripted model. */
  readonly model: Readonly<Record<string, string>>
}

/** Files that the commands and the requests of pages name. */
const FILES: Readonly<Record<string, string>> = {
  'notes.txt': 'hello\n',
  'more.txt': 'world\n',
  ...Object.fromEntries(Object.entries(projectFiles()).map(([path, text]) => [`checkout/${path}`, text])),
}

/** The MCP server that the examples start, without its packages: a sandbox shows no directory of this project in a home. */
const MCP_PROGRAM = `#!/usr/bin/env node
const { createInterface } = require('node:readline')
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  const tools = [{ name: 'read_file', inputSchema: { type: 'object' } }]
  const { protocolVersion } = params ?? {}
  const serverInfo = { name: 'files', version: '1' }
  const result = method === 'initialize' ? { protocolVersion, capabilities: { tools: {} }, serverInfo } : { tools }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
})
`

/** A home with the program in a directory of programs, which is visible in sandboxes. */
async function makeHome(): Promise<AsyncDisposable & { readonly path: string; readonly programs: string }> {
  const home = await mkdtempDisposable(join(tmpdir(), 'example-home-'))
  const programs = join(home.path, '.volta/bin')
  await mkdir(programs, { recursive: true })
  await writeFile(join(programs, 'mcp-server-filesystem'), MCP_PROGRAM, { mode: 0o755 })
  return { path: home.path, programs, [Symbol.asyncDispose]: () => home[Symbol.asyncDispose]() }
}

export async function setExampleStage(): Promise<ExampleStage> {
  const model = await startScriptedModel(answerFor)
  const llm = { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key' }
  const home = await makeHome()
  const server = await startServer({
    env: {
      HOME: home.path,
      PATH: `${home.programs}:${process.env['PATH']}`,
      LLM_MODEL: llm.model,
      LLM_BASE_URL: llm.base_url,
      LLM_API_KEY: llm.api_key,
      // Examples send to hosts that do not exist.
      OPENHANDS_CALLBACK_ALLOW: 'example.com',
      OPENHANDS_MCP_ALLOW: 'mcp.example.com',
    },
  })
  const directory = join(server.home, 'srv')
  for (const [name, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), text)
  }
  return {
    server,
    directory,
    model: llm,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await model.close()
      await home[Symbol.asyncDispose]()
    },
  }
}
