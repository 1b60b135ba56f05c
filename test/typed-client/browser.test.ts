/** The client module of the npm package in a real browser, on a page of another origin. */
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleModules } from '../../scripts/package/bundle-modules.ts'
import { BROWSERS, findCommand } from '../../scripts/provide.mjs'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { KEY } from '../support/server.ts'

/** What the page does, after `SETTINGS` was filled in. */
const PROGRAM = `
import { AgentServerError, createClient } from '/client.js'
const { llm_config, ...options } = SETTINGS
const client = createClient(options)
const conversation = client.conversation((await client.conversations.create({ llm_config })).id)
const types = []
const reading = (async () => {
  for await (const event of conversation.events({ types: ['UserMessage', 'ToolUse', 'Result'] })) {
    types.push(event.type)
    if (event.type === 'Result') return
  }
})()
const { result } = await conversation.sendAndWait('add')
await reading
await conversation.files.put('ü.txt', new Blob(['hello']))
const file = await (await conversation.files.get('ü.txt')).text()
const { headers } = await conversation.files.head('ü.txt')
await conversation.delete()
const error = await conversation.get().catch((reason) => reason)
await client.conversations.create({ llm_config })
const firehose = client.firehose({ cursor: '0' })
const first = await firehose.next()
window.seen = {
  text: result.final_text,
  types,
  file,
  hasTag: headers.get('etag') !== null,
  error: error instanceof AgentServerError && error.code,
  hasCursor: first.value.cursor !== undefined,
}
await firehose.return()
`

let folder: string
let page: Awaited<ReturnType<typeof servePage>>
let stage: Stage
let browser: Browser
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agent-server-browser-'))
  await bundleModules(folder)
  page = await servePage()
  const replies = [{ turns: [bash('echo $((6*7))'), { text: 'It is 42.' }] }]
  stage = await setStage({ replies }, { env: { OPENHANDS_CORS_ORIGINS: page.url } })
  browser = await chromium.launch({
    executablePath: findCommand(BROWSERS)!,
    args: ['--no-sandbox'],
    timeout: PATIENCE_MS,
  })
})
afterAll(async () => {
  await browser.close()
  page.close()
  await stage[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

/** The page, and the modules of the package. */
async function servePage() {
  let program = ''
  const answer = async (path: string, response: ServerResponse) => {
    if (!path.endsWith('.js')) return void response.setHeader('content-type', 'text/html').end(program)
    response.setHeader('content-type', 'text/javascript').end(await readFile(join(folder, path)))
  }
  const listener = createServer(({ url = '/' }, response) => void answer(url, response)).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    show: (code: string) => (program = `<!doctype html><title>page</title><script type="module">${code}</script>`),
    close: () => listener.close(),
  }
}

test('a page of an allowed origin creates, sends, follows, reads files and gets errors', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const settings = { baseUrl: stage.server.url, apiKey: KEY, llm_config }
  page.show(PROGRAM.replace('SETTINGS', JSON.stringify(settings)))
  const tab = await browser.newPage()
  tab.setDefaultTimeout(PATIENCE_MS)
  const faulted = new Promise<never>((_, reject) => void tab.on('pageerror', reject))
  await tab.goto(page.url)
  const seen = async () => (await tab.waitForFunction(() => (globalThis as { seen?: object }).seen)).jsonValue()
  expect(await Promise.race([seen(), faulted])).toEqual({
    text: 'It is 42.',
    types: ['UserMessage', 'ToolUse', 'Result'],
    file: 'hello',
    hasTag: true,
    error: 'conversation_deleted',
    hasCursor: true,
  })
})
