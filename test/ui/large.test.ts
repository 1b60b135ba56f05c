/** The dashboard with long conversations and many of them: what is in the page does not grow with what there is. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:http'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { lengthen } from '../support/long-conversation.ts'
import { KEY } from '../support/server.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const EVENTS = 50_000
/** Messages that arrive while the page is open; `npm run soak:page` makes them ten times as many. */
const LIVE = Number(process.env['LIVE_EVENTS'] ?? 10_000)
const PARTS = 10
/** Those that arrive while somebody reads above the end. */
const ABOVE = 12_000
/** So many are posted at a time. */
const POSTS = 16
/** They take minutes, and more on a busy machine. */
const LIVE_MS = 45 * 60_000
const TEXT = 'x'.repeat(2000)
const MOST_NODES = 1500
const MOST_HEAP_BYTES = 40e6
const MOST_GROWTH_BYTES = 1.5e6

let browser: Browser
let stage: Stage
let id: string
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [{ turns: [{ text: 'Done.' }] }] }, {})
  id = await stage.create({ title: 'long' })
  await stage.server.stop()
  await lengthen(stage.server.dataDir, id, EVENTS)
  await stage.server.restart()
})
afterAll(async () => {
  connections.destroy()
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const nodesOf = (page: Page) => page.evaluate<number>(`document.querySelectorAll('*').length`)

const distanceFromEnd = (page: Page) =>
  page.evaluate<number>(`(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(
    document.querySelector('.conversation .scroller'))`)

async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  await session.detach()
  return usedSize
}

test('a conversation of 50,000 events opens at its end with two requests, and reads back to any event', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  const requests: string[] = []
  page.on('request', (sent) => {
    if (sent.url().includes(`/conversations/${id}`)) requests.push(sent.url())
  })
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector(`text=message ${EVENTS} `)
  expect(requests.length).toBeLessThanOrEqual(2)
  expect(await nodesOf(page)).toBeLessThan(MOST_NODES)
  // A window that becomes narrow, and wide again, stays at the end.
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 800 })
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(2)
    await page.waitForSelector(`text=message ${EVENTS} `)
    await expect.poll(() => page.locator('.to-end').count()).toBe(0)
  }
  // There is nothing to look for before the end.
  await goTo(page, `#/c/${id}?seq=${2 * EVENTS}`)
  await goTo(page, `#/c/${id}?seq=${EVENTS - 900}`)
  await page.waitForSelector(`text=message ${EVENTS - 900} `)
  expect(requests.length).toBeLessThanOrEqual(4)
  // A link far back reads what is around its event, and what follows is read on.
  requests.length = 0
  await goTo(page, `#/c/${id}?seq=20000.5`)
  await page.waitForSelector('text=message 20000 ')
  expect(requests.length).toBeLessThanOrEqual(2)
  await expect
    .poll(async () => {
      await page.evaluate(`document.querySelector('.conversation .scroller').scrollBy(0, 1000)`)
      return await page.locator('text=message 20400 ').count()
    })
    .toBe(1)
  expect(requests.length).toBeLessThanOrEqual(5)
  await page.click('.to-end')
  await page.waitForSelector(`text=message ${EVENTS} `)
  await expect.poll(() => distanceFromEnd(page)).toBeLessThan(2)
  await expect.poll(() => page.locator('.to-end').count()).toBe(0)
  expect(await nodesOf(page)).toBeLessThan(MOST_NODES)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('who reads above the end is not pulled down by what arrives', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.waitForSelector('.said.user')
  await page.evaluate(`document.querySelector('.conversation .scroller').scrollBy(0, -3000)`)
  await page.waitForSelector('.to-end')
  const seen = await page.locator('.placed .as-written').first().textContent()
  await post(20, 'above')
  await page.waitForSelector('.to-end')
  expect(await page.locator('.placed .as-written').first().textContent()).toBe(seen)
  await page.click('.to-end')
  await page.waitForSelector('text=live above last ')
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test(
  'who reads above the end for long does not fill the memory either, and gets the end when they go there',
  { timeout: LIVE_MS },
  async () => {
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
    await page.waitForSelector('.said.user')
    await page.evaluate(`document.querySelector('.conversation .scroller').scrollBy(0, -3000)`)
    await page.waitForSelector('.to-end')
    const seen = await page.locator('.placed .as-written').first().textContent()
    const before = await heapOf(page)
    await post(ABOVE, 'unread')
    // The page has the others when it has the title.
    await stage.server.call('PUT', `/conversations/${id}/config`, { title: 'all are there' })
    await page.waitForSelector('h1:has-text("all are there")')
    expect((await heapOf(page)) - before).toBeLessThan(MOST_HEAP_BYTES / 2)
    expect(await page.locator('.placed .as-written').first().textContent()).toBe(seen)
    await page.click('.to-end')
    await page.waitForSelector('text=live unread last ')
    // What follows is there once.
    await post(1, 'after')
    await page.waitForSelector('text=live after last ')
    expect(await page.locator('text=live after last ').count()).toBe(1)
    await expect.poll(() => page.locator('.to-end').count()).toBe(0)
    expect(misdeeds).toEqual([])
    await page.context().close()
  },
)

test(
  `${LIVE} events of 2 kB that arrive in an open page leave its heap and its nodes as they are`,
  { timeout: LIVE_MS },
  async () => {
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
    await page.waitForSelector('.said.user')
    const heaps: number[] = []
    for (let part = 0; part < PARTS; part++) {
      await post(LIVE / PARTS, `${part}`)
      await page.waitForSelector(`text=live ${part} last `)
      expect(await nodesOf(page)).toBeLessThan(MOST_NODES)
      heaps.push(await heapOf(page))
    }
    expect(Math.max(...heaps)).toBeLessThan(MOST_HEAP_BYTES)
    // The window of rows is full after the first part.
    const [, ...later] = heaps
    expect(Math.max(...later) - Math.min(...later), later.join(' ')).toBeLessThan(MOST_GROWTH_BYTES)
    expect(misdeeds).toEqual([])
    await page.context().close()
  },
)

/** The last message is posted when the server has all others. */
async function post(count: number, name: string): Promise<void> {
  const numbers = Array.from({ length: count - 1 }, (_, place) => place).values()
  const postRest = async () => {
    for (const number of numbers) await postOne(`live ${name} ${number} ${TEXT}`)
  }
  await Promise.all(Array.from({ length: POSTS }, postRest))
  await postOne(`live ${name} last ${TEXT}`)
}

/** Needs less time than `fetch`, which would be most of the test. */
async function postOne(message: string): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const sending = request(`${stage.server.url}/conversations/${id}/messages`, {
    method: 'POST',
    headers,
    agent: connections,
  })
  sending.end(JSON.stringify({ message }))
  const [response] = (await once(sending, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  expect(response.statusCode).toBe(202)
}

const connections = new Agent({ keepAlive: true, maxSockets: POSTS })
