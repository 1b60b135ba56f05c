/** A dashboard on another origin follows a conversation in a real browser, without ever holding a key: each event once. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PATIENCE_MS } from '../support/patience.ts'
import { startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'
import { openBrowser } from '../ui/shared-browser.ts'

const LIBRARY = new URL('../../node_modules/@microsoft/fetch-event-source/lib/esm/', import.meta.url)

/** The page's own code: three ways to follow. Each reports the names of the events that it is shown. */
const PAGE = `<!doctype html><title>dashboard</title><script type="module">
import { fetchEventSource } from '/lib/index.js'
const seen = { EventSource: [], fetch: [], WebSocket: [] }
window.seen = seen
const ticket = async () => (await fetch('/ticket')).text()
const streamOf = async (after) => SERVER + '/conversations/' + ID + '/events/stream?after_seq=' + after + '&ticket=' + (await ticket())
const note = (how, event) => event.type === 'ClientEvent' && seen[how].push(event.name)
const again = (connect) => setTimeout(() => connect().catch(() => again(connect)), 100)

let afterEventSource = 0
async function followWithEventSource() {
  const source = new EventSource(await streamOf(afterEventSource))
  source.addEventListener('ClientEvent', ({ data, lastEventId }) => {
    afterEventSource = Number(lastEventId)
    note('EventSource', JSON.parse(data))
  })
  source.onerror = () => {
    source.close()
    again(followWithEventSource)
  }
}

let afterFetch = 0
async function followWithFetch() {
  await fetchEventSource(await streamOf(afterFetch), {
    openWhenHidden: true,
    onmessage({ id, data }) {
      if (data === '') return void (seen.empty = true)
      if (id) afterFetch = Number(id)
      note('fetch', JSON.parse(data))
    },
    onclose() { throw new Error('ended') },
    onerror(error) { throw error },
  }).catch(() => again(followWithFetch))
}

let afterSocket = 0
async function followWithSocket() {
  const socket = new WebSocket(SERVER.replace('http', 'ws') + '/conversations/' + ID + '/ws?after_seq=' + afterSocket + '&ticket=' + (await ticket()))
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(data)
    if (frame.seq) afterSocket = frame.seq
    note('WebSocket', frame)
  }
  socket.onclose = () => again(followWithSocket)
}
for (const follow of [followWithEventSource, followWithFetch, followWithSocket]) follow().catch(() => again(follow))
</script>`

let server: TestServer
let browser: Browser
let dashboard: Awaited<ReturnType<typeof startDashboard>>
beforeAll(async () => {
  dashboard = await startDashboard()
  server = await startServer({ env: { LLM_MODEL: 'none', OPENHANDS_CORS_ORIGINS: dashboard.url } })
  browser = await openBrowser()
})
afterAll(async () => {
  await browser.close()
  await dashboard.close()
  await server[Symbol.asyncDispose]()
})

/** The backend of the page: it holds an API key, and gives the page tickets. */
async function startDashboard() {
  let page = ''
  let ticket: () => Promise<string> = async () => ''
  const answer = async (path: string, response: ServerResponse) => {
    try {
      const isCode = path.startsWith('/lib/')
      const body = isCode
        ? await readFile(new URL(path.slice('/lib/'.length).replace(/(\.js)?$/, '.js'), LIBRARY))
        : path === '/ticket'
          ? await ticket()
          : page
      response.setHeader('content-type', isCode ? 'text/javascript' : 'text/html').end(body)
    } catch {
      response.writeHead(502).end()
    }
  }
  const listener = createServer(({ url = '/' }, response) => void answer(url, response)).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    show: (html: string, getTicket: () => Promise<string>) => ([page, ticket] = [html, getTicket]),
    close: async () => void listener.close(),
  }
}

test('EventSource, fetch and WebSocket with tickets continue after a crash of the server, each event once', async () => {
  const { body } = await server.call('POST', '/conversations', {})
  const id = body.id as string
  const made = await server.call('POST', '/keys', { name: 'dashboard', scopes: ['read'], conversations: [id] })
  const asDashboard = { authorization: `Bearer ${made.body.key}` }
  dashboard.show(
    PAGE.replaceAll('SERVER', JSON.stringify(server.url)).replaceAll('ID', JSON.stringify(id)),
    async () => {
      return (await server.call('POST', '/stream-tickets', { conversation_id: id }, asDashboard)).body.ticket
    },
  )
  const page = await browser.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(dashboard.url)
  // oxlint-disable-next-line typescript/no-explicit-any -- what the page has put there
  const seen = () => page.evaluate(() => (globalThis as any).seen as Record<string, string[]>)
  const names: string[] = []
  const post = async (name: string) => {
    names.push(name)
    expect((await server.call('POST', `/conversations/${id}/events`, { name })).status).toBe(201)
  }
  const everyone = () => ({ EventSource: names, fetch: names, WebSocket: names })

  for (let count = 0; count < 5; count++) await post(`before-${count}`)
  await expect.poll(seen, { timeout: PATIENCE_MS }).toEqual(everyone())
  await server.restart('SIGKILL')
  for (let count = 0; count < 5; count++) await post(`after-${count}`)
  await expect.poll(seen, { timeout: PATIENCE_MS }).toEqual(everyone())
  await page.close()
})
