/** Many tabs of the dashboard in one browser: the time until they show what happens, and until one more of them has loaded. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrowserContext, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { BROWSERS, findCommand } from '../scripts/provide.mjs'
import { startScriptedModel } from '../src/llm/scripted/scripted-model.ts'
import { KEY, URL, startServerProcess } from './server-process.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const TABS = 20
const REQUESTS = 21
const ROUNDS = 5
const [HEARD_MS, LOADED_MS] = [300, 1000]
/** The pages wait so long on a busy machine, milliseconds. */
const PATIENCE_MS = 120_000

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }

/** Notes when each request is in the page, in the time of the clock, and when the first row is, since the page began to load. */
const WATCH = `
  globalThis.seen = {}
  new MutationObserver(() => {
    const now = performance.now()
    for (const { dataset } of document.querySelectorAll('[data-request]')) seen[dataset.request] ??= performance.timeOrigin + now
    globalThis.firstRow ??= document.querySelector('.summary') ? now : undefined
  }).observe(document, { subtree: true, childList: true })`

export async function benchDashboardTabs(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-tabs-'))
  const calls = [{ name: 'Bash', arguments: { command: 'touch made' } }]
  const model = await startScriptedModel({ replies: [{ turns: [{ calls }, { text: 'Done.' }] }] })
  const { kill } = await startServerProcess(home)
  const browser = await chromium.launch({ executablePath: findCommand(BROWSERS) ?? '', args: ['--no-sandbox'] })
  try {
    const context = await browser.newContext()
    context.setDefaultTimeout(PATIENCE_MS)
    await context.addInitScript(WATCH)
    const page = await context.newPage()
    await page.goto(`${URL}/ui/`)
    await page.fill('[name=password]', KEY)
    await page.click('button[type=submit]')
    await page.waitForSelector('nav.places')
    const id = await ask(model.baseUrl)
    await page.waitForSelector('[data-request]')
    const inbox = await openTab(context, '', '[data-request]')
    const delays: number[] = []
    for (let round = 0; round < REQUESTS; round++) delays.push(await delayOf(inbox, await ask(model.baseUrl)))
    for (let tab = 2; tab < TABS; tab++)
      await (tab % 2 === 0 ? openTab(context, `c/${id}`, '.composer') : openTab(context, 'conversations', '.summary'))
    const loads: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const next = await openTab(context, 'conversations', '.summary')
      loads.push(await next.evaluate<number>('firstRow'))
      await next.close()
    }
    return [
      rowOf('a request until it is in the inbox of another tab of the dashboard', median(delays), HEARD_MS),
      rowOf(`first row of the dashboard in a tab next to ${TABS} others`, median(loads), LOADED_MS),
    ]
  } finally {
    await browser.close()
    await kill()
    await model.close()
    await rm(home, { recursive: true, force: true })
  }
}

const rowOf = (what: string, ms: number, most: number): Row => [
  what,
  `${ms.toFixed(0)} ms`,
  `${(ms / most).toFixed(2)} of ${most} ms`,
]

async function openTab(context: BrowserContext, hash: string, selector: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${URL}/ui/#/${hash}`)
  await page.waitForSelector(selector)
  return page
}

async function send<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${URL}${path}`, { method, headers: HEADERS, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`)
  return (await response.json()) as T
}

/** Returns the id of a conversation that asks for a permission. */
async function ask(baseUrl: string): Promise<string> {
  const llm_config = { model: 'scripted', base_url: baseUrl, api_key: 'bench-model-key' }
  const initial_message = { role: 'user', content: 'Make it.' }
  const body = { llm_config, permission_mode: 'default', initial_message, run: true }
  return (await send<{ id: string }>('POST', '/conversations', body)).id
}

type Requests = { readonly items: readonly { readonly request_id: string; readonly opened_at: string }[] }

/** The time since the request was stored until it is in the page. */
async function delayOf(page: Page, id: string): Promise<number> {
  for (;;) {
    const [request] = (await send<Requests>('GET', `/conversations/${id}/requests`)).items
    const seen = request && (await page.evaluate<number | null>(`seen['${request.request_id}'] ?? null`))
    if (request && seen) return seen - Date.parse(request.opened_at)
    await sleep(10)
  }
}
