/** Long things in the dashboard: a conversation, a list, a diff and a file, each next to a page that only shows the same text. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CDPSession, Page, Request } from 'playwright-core'
import { KEY, URL } from './server-process.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

export const EVENTS = 50_000
const DIFF_LINES = 100_000
const FILE_BYTES = 64 * 1024 * 1024
const ROUNDS = 5
const SCROLLED_MS = 5000
/** What is not shown by then is never shown: the error has the end of the page. */
const PATIENCE_MS = 60_000
const HEADERS = JSON.stringify({ authorization: `Bearer ${KEY}` })

/** Makes a repository with a diff of many lines, and a large file that is not in it. */
export function makeWorkdir(home: string): string {
  const workdir = join(home, 'workdir')
  mkdirSync(workdir)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: workdir })
  const lines = (word: string) => Array.from({ length: DIFF_LINES / 2 }, (_, place) => `${word} ${place}\n`).join('')
  git('init', '-q')
  // The server cuts the patch of a file: the lines are those of several.
  for (let part = 0; part < PARTS; part++)
    writeFileSync(join(workdir, `part-${part}.txt`), partOf(lines('before'), part))
  git('add', '.')
  git('commit', '-qm', 'before')
  for (let part = 0; part < PARTS; part++)
    writeFileSync(join(workdir, `part-${part}.txt`), partOf(lines('after'), part))
  writeFileSync(join(workdir, 'large.log'), `${'y'.repeat(79)}\n`.repeat(FILE_BYTES / 80))
  return workdir
}

const PARTS = 20

function partOf(text: string, part: number): string {
  const lines = text.split('\n')
  const length = lines.length / PARTS
  return `${lines.slice(part * length, (part + 1) * length).join('\n')}\n`
}

/** `id` is a conversation of many events whose workdir is that of `makeWorkdir`. The page is logged in. */
export async function benchPages(page: Page, id: string): Promise<Row[]> {
  return [
    ...(await benchConversation(page, id)),
    ...(await benchScroll(page)),
    await benchShown(page, 'first rows of a diff of 100,000 lines', {
      from: `#/c/${id}/files`,
      act: `location.hash = '#/c/${id}/changes'`,
      selector: '.diff-line',
      bare: `/conversations/${id}/git/diff?limit=1000`,
      texts: `events.items.map(({ patch }) => patch)`,
    }),
    await benchShown(page, 'first rows of a file of 64 MiB', {
      from: `#/c/${id}/files`,
      act: `[...document.querySelectorAll('.files button')].find((line) => line.textContent.includes('large.log')).click()`,
      selector: 'pre.code',
      bare: `/conversations/${id}/files/large.log`,
      texts: `[events.slice(0, 4000)]`,
    }),
  ]
}

async function benchConversation(page: Page, id: string): Promise<Row[]> {
  const opened: Shown[] = []
  const bare: number[] = []
  const session = await metricsOf(page)
  for (let round = 0; round < ROUNDS; round++) {
    await goTo(page, '#/conversations', '.summary')
    const text = `message ${EVENTS}`
    const shown = isShown('.said', text)
    opened.push(await shownAfter(page, session, `location.hash = '#/c/${id}'`, shown, `/conversations/${id}`))
    const path = `/conversations/${id}/events?order=desc&limit=200&max_text=20000`
    bare.push((await bareTime(page, path, `events.items.map(({ content, id }) => content?.[0]?.text ?? id)`)).ms)
  }
  const requests = Math.max(...opened.map((one) => one.requests))
  const cpu = median(opened.map((one) => one.cpuMs))
  const ms = median(opened.map((one) => one.ms))
  return [
    [
      `click on a conversation of ${EVENTS.toLocaleString('en')} events to its last event`,
      `${ms.toFixed(0)} ms, ${requests} requests`,
      ratioTo(ms, median(bare)),
    ],
    ['CPU of the page for that', `${cpu.toFixed(0)} ms`, `${(cpu / 250).toFixed(2)} of 250 ms`],
  ]
}

async function benchScroll(page: Page): Promise<Row[]> {
  const session = await metricsOf(page)
  const [own, bare]: [Scroll[], Scroll[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    await goTo(page, '#/conversations', '.summary')
    own.push(await scroll(page, session, 'main .scroller'))
    await page.goto(`${URL}/blank`)
    await page.evaluate(LIST)
    bare.push(await scroll(page, session, '#list'))
    await page.goto(`${URL}/ui/#/conversations`)
  }
  const p95 = median(own.map((one) => one.p95))
  const cpu = median(own.map((one) => one.cpuMs))
  return [
    [
      'frame while 10,000 conversations are scrolled, p95',
      `${p95.toFixed(1)} ms`,
      ratioTo(p95, median(bare.map((one) => one.p95))),
    ],
    ['CPU of the page for such a frame', `${cpu.toFixed(1)} ms`, ratioTo(cpu, median(bare.map((one) => one.cpuMs)))],
  ]
}

type Long = {
  readonly from: string
  readonly act: string
  readonly selector: string
  readonly bare: string
  readonly texts: string
}

async function benchShown(page: Page, what: string, { from, act, selector, bare, texts }: Long): Promise<Row> {
  const session = await metricsOf(page)
  const own: number[] = []
  const others: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await page.goto(`${URL}/blank`)
    await page.goto(`${URL}/ui/${from}`)
    await page.waitForSelector('.files button')
    own.push((await shownAfter(page, session, act, isShown(selector, ''))).ms)
    others.push((await bareTime(page, bare, texts)).ms)
  }
  const ms = median(own)
  return [what, `${ms.toFixed(0)} ms`, ratioTo(ms, median(others))]
}

const ratioTo = (own: number, bare: number): string =>
  `${(own / bare).toFixed(2)} of the ${bare.toFixed(bare < 100 ? 1 : 0)} ms of a page with nothing around it`

type Shown = { readonly ms: number; readonly cpuMs: number; readonly requests: number }

const isShown = (selector: string, text: string): string =>
  `[...document.querySelectorAll('${selector}')].some((element) => element.textContent.includes('${text}'))`

/** Time from the act until the condition holds after a frame. */
async function shownAfter(
  page: Page,
  session: CDPSession,
  act: string,
  condition: string,
  counted = '/',
): Promise<Shown> {
  let requests = 0
  const count = (request: Request) => void (request.url().includes(counted) && requests++)
  page.on('request', count)
  const before = await taskMs(session)
  const ms = await page.evaluate<number>(`new Promise((resolve, reject) => {
    const began = performance.now()
    const look = () => {
      if (${condition}) resolve(performance.now() - began)
      else if (performance.now() - began < ${PATIENCE_MS}) requestAnimationFrame(look)
      else reject(new Error(document.body.innerText.slice(-500)))
    }
    ;${act}
    look()
  })`)
  const cpuMs = (await taskMs(session)) - before
  page.off('request', count)
  return { ms, cpuMs, requests }
}

/** Reads the same with a request, and shows it as text in one element for each part. */
async function bareTime(page: Page, path: string, texts: string): Promise<{ readonly ms: number }> {
  await page.goto(`${URL}/blank`)
  const ms = await page.evaluate<number>(`(async () => {
    const began = performance.now()
    const response = await fetch('${path}', { headers: ${HEADERS} })
    const isJson = response.headers.get('content-type').includes('json')
    const events = isJson ? await response.json() : await response.text()
    for (const text of ${texts}) {
      const element = document.createElement('p')
      element.textContent = text
      document.body.append(element)
    }
    await new Promise(requestAnimationFrame)
    return performance.now() - began
  })()`)
  return { ms }
}

/** All 10,000 titles as elements of a list that scrolls. */
const LIST = `(async () => {
  const list = document.createElement('div')
  list.id = 'list'
  list.style.cssText = 'height: 700px; overflow: auto'
  for (let next = ''; next !== undefined;) {
    const path = '/conversations/summaries?sort=updated_at&limit=500' + (next && '&page_id=' + encodeURIComponent(next))
    const { items, next_page_id } = await (await fetch(path, { headers: ${HEADERS} })).json()
    for (const { title, id } of items) {
      const row = document.createElement('p')
      row.textContent = title ?? id
      list.append(row)
    }
    next = next_page_id ?? undefined
  }
  document.body.append(list)
})()`

type Scroll = { readonly p95: number; readonly cpuMs: number }

/** Scrolls 40 pixels in each frame. */
async function scroll(page: Page, session: CDPSession, selector: string): Promise<Scroll> {
  const before = await taskMs(session)
  const frames = await page.evaluate<number[]>(`new Promise((resolve) => {
    const list = document.querySelector('${selector}')
    const frames = []
    const began = performance.now()
    let last = began
    const step = (now) => {
      frames.push(now - last)
      last = now
      list.scrollTop += 40
      if (now - began < ${SCROLLED_MS}) requestAnimationFrame(step)
      else resolve(frames.slice(1))
    }
    requestAnimationFrame(step)
  })`)
  const cpuMs = ((await taskMs(session)) - before) / frames.length
  return { p95: frames.toSorted((a, b) => a - b)[Math.floor(frames.length * 0.95)] ?? 0, cpuMs }
}

async function goTo(page: Page, hash: string, selector: string): Promise<void> {
  await page.goto(`${URL}/blank`)
  await page.goto(`${URL}/ui/${hash}`)
  await page.waitForSelector(selector)
}

async function metricsOf(page: Page): Promise<CDPSession> {
  const session = await page.context().newCDPSession(page)
  // The time of its thread: the time of the clock has the work of others in it.
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return session
}

/** What the main thread of the page has worked, milliseconds. */
async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics')
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0)
}
