/** The dashboard with long conversations and many of them: what is in the page does not grow with what there is. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { lengthen } from '../support/long-conversation.ts'
import { goTo, openBrowser, openTab } from './browser.ts'

const EVENTS = 50_000
/** Messages of 2 kB that arrive while the page is open, in four parts. */
const LIVE = 4000
const TEXT = 'x'.repeat(2000)
const MOST_NODES = 1500
const MOST_HEAP_BYTES = 40e6

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
  page.on('request', (request) => {
    if (request.url().includes(`/conversations/${id}`)) requests.push(request.url())
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
  await goTo(page, `#/c/${id}?seq=${EVENTS - 900}`)
  await page.waitForSelector(`text=message ${EVENTS - 900} `)
  expect(await nodesOf(page)).toBeLessThan(MOST_NODES)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('what arrives in an open page does not fill its memory, and a reader above is not pulled down', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.waitForSelector('.said.user')
  const heaps: number[] = []
  for (let part = 0; part < 4; part++) {
    await post(LIVE / 4, part)
    await page.waitForSelector(`text=live ${part} ${LIVE / 4 - 1} `)
    expect(await nodesOf(page)).toBeLessThan(MOST_NODES)
    heaps.push(await heapOf(page))
  }
  expect(heaps.at(-1)).toBeLessThan(MOST_HEAP_BYTES)
  // The window of rows is full after two parts.
  expect(heaps[3]! - heaps[2]!).toBeLessThan(3e6)
  await page.evaluate(`document.querySelector('.conversation .scroller').scrollBy(0, -3000)`)
  await page.waitForSelector('.to-end')
  const seen = await page.locator('.placed .as-written').first().textContent()
  await post(20, 4)
  await page.waitForSelector('.to-end')
  expect(await page.locator('.placed .as-written').first().textContent()).toBe(seen)
  await page.click('.to-end')
  await page.waitForSelector('text=live 4 19 ')
  expect(misdeeds).toEqual([])
  await page.context().close()
})

async function post(count: number, part: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { status } = await stage.server.call('POST', `/conversations/${id}/messages`, {
      message: `live ${part} ${i} ${TEXT}`,
    })
    expect(status).toBe(202)
  }
}
