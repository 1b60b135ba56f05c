/** What is on a screen stays where it is while the rest of it loads: a person does not click what has just moved there. */
import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

/** The sum of all shifts while a screen loads, as browsers count them; 0.1 is what they call good. */
const MOST_SHIFT = 0.02

/** Collects the shifts, with what moved. */
const OBSERVE = `
  globalThis.shifts = []
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) shifts.push([value, ...sources.map(({ node, previousRect: a, currentRect: b }) =>
        (node?.outerHTML ?? node?.textContent ?? '').slice(0, 80) + ' ' + [a.x, a.y, b.x, b.y].map(Math.round))])
  }).observe({ type: 'layout-shift', buffered: true })`

let browser: Browser
let stage: Stage
let id: string
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    {
      when: 'work',
      turns: [bash('seq 100; echo a > a.txt'), { text: '# Done\n\nIt has *gone* well.\n\n- one\n- two' }],
    },
    { when: 'ask', turns: [bash('touch made'), { text: 'It is made.' }] },
  ]
  stage = await setStage({ replies }, {})
  for (let i = 0; i < 30; i++)
    id = await stage.create({
      title: `conversation ${i}`,
      labels: ['night', `label ${i % 3}`],
      user_id: `user ${i % 3}`,
    })
  for (let i = 0; i < 5; i++) await stage.say(id, 'work')
  await stage.server.call('POST', `/conversations/${id}/callbacks`, { url: 'https://example.com/hook' })
  for (const name of ['one', 'two']) await stage.server.call('POST', '/keys', { name, scopes: ['read'] })
  for (let i = 0; i < 2; i++) {
    const asking = await stage.create({ title: 'asks', permission_mode: 'default' })
    await stage.server.call('POST', `/conversations/${asking}/messages`, { message: 'ask', run: true })
    const isAsked = async () =>
      (await stage.server.call('GET', `/conversations/${asking}/requests`)).body.items.length > 0
    await until('the request', isAsked)
  }
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** Returns the requests that have no answer yet. */
function watchRequests(page: Page): ReadonlySet<Request> {
  const pending = new Set<Request>()
  page.on('request', (request) => pending.add(request))
  page.on('requestfinished', (request) => pending.delete(request))
  page.on('requestfailed', (request) => pending.delete(request))
  return pending
}

async function shiftsOf(page: Page, hash: string, pending: ReadonlySet<Request>): Promise<[number, ...string[]][]> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
  await page.reload()
  await page.waitForSelector('h1')
  await page.waitForSelector('main >> text=Loading …', { state: 'detached' })
  await until('the whole screen', async () => {
    const isRead = pending.size === 0
    // What was read is drawn, which may read more.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    return isRead && pending.size === 0
  })
  return await page.evaluate('globalThis.shifts')
}

test.each([1280, 360])('no screen shifts while it loads, %i px wide', async (width) => {
  const { page } = await openTab(browser, stage.server.url)
  await page.setViewportSize({ width, height: 800 })
  await page.addInitScript(OBSERVE)
  const parts = ['', '/changes', '/files', '/commands', '/timeline', '/settings'].map((part) => `#/c/${id}${part}`)
  const faults: unknown[] = []
  const pending = watchRequests(page)
  for (const hash of ['#/', '#/conversations', '#/new', '#/costs', '#/webhooks', '#/server', '#/settings', ...parts]) {
    const shifts = await shiftsOf(page, hash, pending)
    const sum = shifts.reduce((all, [value]) => all + value, 0)
    if (sum > MOST_SHIFT) faults.push({ hash, sum, shifts })
  }
  expect(faults).toEqual([])
  await page.context().close()
})
