/** The server on which the examples of the documentation run, its scripted model, and a receiver of its callbacks. */
import { mkdir, writeFile } from 'node:fs/promises'
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

export async function setExampleStage(): Promise<ExampleStage> {
  const model = await startScriptedModel(answerFor)
  const llm = { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key' }
  const server = await startServer({
    env: {
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
    },
  }
}
