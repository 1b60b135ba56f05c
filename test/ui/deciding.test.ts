/** Requests in a real browser: only what a person has seen is decided, and only what they meant. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const LONG = Array.from({ length: 150 }, (_, line) => `touch made-${line}`).join('\n')

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'short', turns: [bash('touch made'), { text: 'It is made.' }] },
    {
      when: 'several',
      turns: [
        { calls: ['one', 'two'].flatMap((name) => bash(`touch ${name}`).calls ?? []) },
        { text: 'They are made.' },
      ],
    },
    { when: 'program', turns: [{ calls: [{ name: 'press', arguments: {} }] }, { text: 'It is pressed.' }] },
    { when: 'long', turns: [bash(LONG), { text: 'It has run.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

async function ask(message: string): Promise<string> {
  const id = await stage.create({ permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  await expect.poll(() => statusOf(id)).toBe('waiting_for_confirmation')
  return id
}

const statusOf = async (id: string) => (await stage.server.call('GET', `/conversations/${id}`)).body.status as string

const openRequests = async (id: string): Promise<number> =>
  (await stage.server.call('GET', `/conversations/${id}/requests`)).body.items.length

async function deny(id: string, place = 0): Promise<void> {
  const { items } = (await stage.server.call('GET', `/conversations/${id}/requests`)).body
  const call = items[0].payload.tool_uses[place]
  const { status } = await stage.server.call('POST', `/conversations/${id}/requests/${items[0].request_id}`, {
    kind: 'permission',
    decisions: [{ tool_use_id: call.tool_use_id, input_hash: call.input_hash, behavior: 'deny' }],
  })
  expect(status).toBeLessThan(300)
}

const ALLOW = '[data-request] button[data-key=a]'
const armed = (page: Page, count: number) => expect.poll(() => page.locator(`${ALLOW}:enabled`).count()).toBe(count)

test('a key that is held decides one request, not those after it', async () => {
  const ids = [await ask('short'), await ask('short')]
  const { page } = await openTab(browser, stage.server.url)
  await armed(page, 2)
  await page.keyboard.press('n')
  await page.keyboard.down('a')
  // The next card has the focus when the answer to the first decision has come.
  await expect.poll(() => page.locator('[data-request]').count()).toBe(1)
  await expect.poll(() => page.evaluate(`document.activeElement.matches('[data-request]')`)).toBe(true)
  for (let repeat = 0; repeat < 30; repeat++) await page.keyboard.down('a')
  await page.keyboard.up('a')
  expect(await page.locator(`${ALLOW}:enabled`).count()).toBe(1)
  expect(await page.locator('[data-request] .fault').count()).toBe(0)
  expect(await statusOf(ids[1]!)).toBe('waiting_for_confirmation')
  await deny(ids[1]!)
  await page.context().close()
})

test('a click in the moment in which a card has moved does not decide it', async () => {
  const id = await ask('short')
  const { page } = await openTab(browser, stage.server.url)
  await armed(page, 1)
  // As when a card above it appears or is gone.
  await page.evaluate(`{
    document.querySelector('h1').style.paddingTop = '80px'
    document.querySelector('${ALLOW}').click()
  }`)
  await page.waitForSelector('[data-request] .fault:has-text("moved")')
  expect(await statusOf(id)).toBe('waiting_for_confirmation')
  await expect
    .poll(async () => {
      await page.evaluate(`document.querySelector('${ALLOW}')?.click()`)
      return await statusOf(id)
    })
    .not.toBe('waiting_for_confirmation')
  await page.context().close()
})

test('a key does not decide a request that the frame around it cuts', async () => {
  const id = await ask(`short ${'\n\nmore'.repeat(60)}`)
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await armed(page, 1)
  const cut = `(() => {
    const card = document.querySelector('[data-request]')
    const list = card.closest('.scroller')
    card.focus({ preventScroll: true })
    list.scrollTop += card.getBoundingClientRect().bottom - list.getBoundingClientRect().bottom - 20
    const { bottom } = card.getBoundingClientRect()
    return bottom > list.getBoundingClientRect().bottom + 10 && bottom <= innerHeight
  })()`
  expect(await page.evaluate(cut)).toBe(true)
  await page.keyboard.press('a')
  expect(await page.locator(`${ALLOW}:enabled`).count()).toBe(1)
  expect(await page.locator('[data-request] .fault').count()).toBe(0)
  expect(await statusOf(id)).toBe('waiting_for_confirmation')
  await page.evaluate(`document.querySelector('[data-request]').scrollIntoView({ block: 'end' })`)
  await expect
    .poll(async () => {
      await page.keyboard.press('a')
      return await statusOf(id)
    })
    .not.toBe('waiting_for_confirmation')
  await page.context().close()
})

test('all that is asked for, and all that would always be allowed, is on the page and scrolls with it', async () => {
  const id = await ask('long')
  const { page } = await openTab(browser, stage.server.url)
  await armed(page, 1)
  const hidden = await page.evaluate<number>(
    `(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)(document.querySelector('[data-request] pre'))`,
  )
  expect(hidden).toBeLessThanOrEqual(1)
  const { items } = (await stage.server.call('GET', `/conversations/${id}/requests`)).body
  const rules = items[0].payload.tool_uses[0].rules as string[] | undefined
  const text = await page.locator('[data-request]').innerText()
  for (const rule of rules ?? []) expect(text).toContain(rule)
  expect(await page.locator('[data-request] >> text=Always allow').count()).toBe(rules ? 2 : 0)
  await deny(id)
  await page.context().close()
})

test('a request with several calls marks those that others have decided', async () => {
  const id = await ask('several')
  const { page } = await openTab(browser, stage.server.url)
  await armed(page, 1)
  expect(await page.locator('[data-request] .asked .badge').count()).toBe(0)
  await deny(id)
  await page.waitForSelector('.asked:has-text("touch one") .badge:has-text("already denied")')
  expect(await page.locator('.asked:has-text("touch two") .badge').count()).toBe(0)
  await deny(id, 1)
  await page.context().close()
})

test('requests that programs answer are not in the way of those for people, and more than are read are counted as such', async () => {
  const press = { name: 'press', description: 'Presses.', input_schema: { type: 'object' } }
  const id = await stage.create({ permission_mode: 'bypass', client_tools: [press] })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'program', run: true })
  await expect.poll(() => openRequests(id)).toBe(1)
  const ids = [await ask('short'), await ask('short')]
  const { page } = await openTab(browser, stage.server.url, { hash: '#/settings' })
  // Instead of some hundred requests, the page reads one.
  await page.route('**/requests?*', (route) =>
    route.continue({ url: route.request().url().replace('limit=200', 'limit=1') }),
  )
  await goTo(page, '#/')
  await page.reload()
  await page.waitForSelector('p:has-text("1+ requests need you")')
  expect(await page.locator('nav .badge').innerText()).toBe('1+')
  expect(await page.title()).toBe('(1+) agent-server')
  await deny(ids[0]!)
  await page.waitForSelector('p:has-text("1 request needs you")')
  expect(await page.locator('[data-request]').count()).toBe(1)
  await deny(ids[1]!)
  await page.waitForSelector('text=No agent needs you.')
  expect(await openRequests(id)).toBe(1)
  await page.context().close()
})
