/** How soon the dashboard shows something, compared with a page that reads the same rows and has nothing around them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { BROWSERS, findCommand } from '../scripts/provide.mjs'
import { fillWithConversations } from './many-conversations.ts'
import { EVENTS, benchPages, makeWorkdir } from './dashboard-pages.ts'
import { KEY, NEW_CONVERSATION, URL, startServerProcess } from './server-process.ts'
import { lengthen } from '../test/support/long-conversation.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const CONVERSATIONS = 10_000
const ROUNDS = 5
const ACTIVE = 8
const CHANGES = 25
/** The page waits so long on a busy machine, milliseconds. */
const PATIENCE_MS = 120_000

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }

/** Draws the titles of the first page of rows, as text. */
const BARE = `<!doctype html><p>Conversations</p><ul></ul><script type="module">
  const response = await fetch('/conversations/summaries?sort=updated_at&limit=100', { headers: ${JSON.stringify(HEADERS)} })
  for (const { id, title } of (await response.json()).items) {
    const row = document.createElement('li')
    row.className = 'summary'
    row.textContent = title ?? id
    document.querySelector('ul').append(row)
  }
</script>`

/** Notes when the first row is in the page, and when each title is. */
const WATCH = `
  globalThis.seen = {}
  new MutationObserver(() => {
    const now = performance.timeOrigin + performance.now()
    globalThis.firstRow ??= document.querySelector('.summary') ? performance.now() : undefined
    for (const { textContent } of document.querySelectorAll('.summary strong')) seen[textContent] ??= now
  }).observe(document, { subtree: true, childList: true, characterData: true })`

export async function benchDashboard(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-dashboard-'))
  await fillWithConversations(home, CONVERSATIONS)
  const id = await makeLongConversation(home)
  const { kill } = await startServerProcess(home)
  const browser = await chromium.launch({ executablePath: findCommand(BROWSERS) ?? '', args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage()
    page.setDefaultTimeout(PATIENCE_MS)
    await page.addInitScript(WATCH)
    await page.route('**/blank', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }))
    await page.route('**/bare', (route) => route.fulfill({ contentType: 'text/html', body: BARE }))
    await page.goto(`${URL}/ui/#/conversations`)
    await page.fill('[name=password]', KEY)
    await page.click('button[type=submit]')
    await page.waitForSelector('.summary')
    const [own, bare]: Load[][] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      bare?.push(await load(page, `${URL}/bare`))
      own?.push(await load(page, `${URL}/ui/?${round}#/conversations`))
    }
    const [paint, row] = (['paint', 'row'] as const).map((what) =>
      [own, bare].map((loads = []) => median(loads.map((one) => one[what]))),
    )
    const delays = await delaysOf(page, id)
    const pages = await benchPages(page, id)
    const count = CONVERSATIONS.toLocaleString('en')
    return [
      ['first paint of the dashboard', ...besides(paint)],
      [`first row of ${count} conversations there`, ...besides(row)],
      [
        `a change in ${ACTIVE} conversations until it is on the screen, p50 / p95`,
        `${at(delays, 0.5)} / ${at(delays, 0.95)} ms`,
        `${(Number(at(delays, 0.95)) / 150).toFixed(2)} of 150 ms`,
      ],
      ...pages,
    ]
  } finally {
    await browser.close()
    await kill()
    await rm(home, { recursive: true, force: true })
  }
}

/** One more conversation, the oldest, with many events, and a workdir with long things. */
async function makeLongConversation(home: string): Promise<string> {
  const { kill } = await startServerProcess(home)
  const body = JSON.stringify({ ...NEW_CONVERSATION, workdir: makeWorkdir(home), title: 'long' })
  const answer = await fetch(`${URL}/conversations`, { method: 'POST', headers: HEADERS, body })
  const { id } = (await answer.json()) as { id: string }
  await kill('SIGTERM')
  await lengthen(join(home, 'data'), id, EVENTS)
  return id
}

type Load = { readonly paint: number; readonly row: number }

async function load(page: Page, url: string): Promise<Load> {
  await page.goto(url)
  await page.waitForSelector('.summary')
  return await page.evaluate<Load>(
    `({ paint: performance.getEntriesByName('first-contentful-paint')[0].startTime, row: firstRow })`,
  )
}

const besides = ([own = 0, bare = 0]: readonly number[] = []): [string, string] => [
  `${own.toFixed(0)} ms`,
  `${(own / bare).toFixed(2)} of the ${bare.toFixed(0)} ms of a page with nothing around the rows`,
]

const at = (sorted: readonly number[], part: number): string =>
  (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(0)

/** Renames conversations other than the long one. Returns how long after the answer of the server each title is on the screen, sorted. */
async function delaysOf(page: Page, long: string): Promise<number[]> {
  const answer = await fetch(`${URL}/conversations/summaries?sort=updated_at&limit=${ACTIVE + 1}`, { headers: HEADERS })
  const { items } = (await answer.json()) as { items: { id: string }[] }
  const storedAt = new Map<string, number>()
  await Promise.all(
    items
      .filter(({ id }) => id !== long)
      .slice(0, ACTIVE)
      .map(async ({ id }, place) => {
        for (let i = 0; i < CHANGES; i++) {
          const title = `change ${place} ${i}`
          const body = JSON.stringify({ title })
          await fetch(`${URL}/conversations/${id}/config`, { method: 'PUT', headers: HEADERS, body })
          storedAt.set(title, performance.timeOrigin + performance.now())
          await sleep(200 + 200 * Math.random())
        }
      }),
  )
  await sleep(1000)
  const seen = await page.evaluate<Record<string, number>>('seen')
  return [...storedAt].map(([title, stored]) => (seen[title] ?? Infinity) - stored).toSorted((a, b) => a - b)
}
