/** What a person is about to press stays where it is, and keeps the focus, whatever arrives around it. */
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'decide', turns: [bash('touch made'), { text: 'It is made.' }] },
    { when: 'say', turns: [{ text: 'Said.\n\n'.repeat(40) }] },
  ]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

async function ask(title: string, message = 'decide'): Promise<string> {
  const id = await stage.create({ title, permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  await expect
    .poll(async () => (await stage.server.call('GET', `/conversations/${id}`)).body.status)
    .toBe('waiting_for_confirmation')
  return id
}

const cards = (page: Page) => page.locator('[data-request]')

const deleteAll = async (ids: readonly string[]) => {
  for (const id of ids) expect((await stage.server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
}

/** Waits for two frames, after which a list has drawn what it knows. */
const frames = (page: Page) =>
  page.evaluate(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)

const placeOf = (element: Locator) =>
  element.evaluate((one) => ({
    top: one.getBoundingClientRect().top,
    hasFocus: one.matches(':focus, :focus-within'),
  }))

test.each(['last', 'first'])(
  'a request that arrives as the %s one does not move the card that has the focus',
  async (end) => {
    const ids = [await ask('one'), await ask('two'), await ask('three')]
    const { page, misdeeds } = await openTab(browser, stage.server.url)
    await expect.poll(() => cards(page).count()).toBe(3)
    const two = cards(page).filter({ hasText: 'two' })
    await page.keyboard.press('n')
    await page.keyboard.press('n')
    const before = await placeOf(two)
    expect(before.hasFocus).toBe(true)
    // Of several instances, one may be behind, and have older requests that were not there yet.
    await page.route('**/requests?*', async (route) => {
      const response = await route.fetch()
      const { items, ...rest } = (await response.json()) as { items: unknown[] }
      await route.fulfill({
        response,
        json: { ...rest, items: end === 'last' ? items : [items.at(-1), ...items.slice(0, -1)] },
      })
    })
    ids.push(await ask('four'))
    await expect.poll(() => cards(page).count()).toBe(4)
    await frames(page)
    expect(await placeOf(two)).toEqual(before)
    await page.unrouteAll({ behavior: 'wait' })
    await deleteAll(ids)
    expect(misdeeds).toEqual([])
    await page.context().close()
  },
)

test('a row of the list that has the focus stays in its place while others change, and keeps the focus when it changes', async () => {
  const ids: string[] = []
  for (let i = 0; i < 30; i++) ids.push(await stage.create({ title: `row ${i}` }))
  const { page } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
  await page.waitForSelector('.summary:has-text("row 29")')
  const row = page.locator('.summary', { hasText: 'row 22' })
  await row.focus()
  const before = await placeOf(row)
  for (const place of [1, 2, 3]) {
    await stage.server.call('PUT', `/conversations/${ids[place]}/config`, { title: `changed ${place}` })
    // The list draws it where it can be seen, or has it above.
    await expect.poll(() => page.locator(`.placed[data-index="${7 + place}"] .summary`).innerText()).toContain('row 22')
  }
  await frames(page)
  expect(await placeOf(row)).toEqual(before)
  await stage.server.call('PUT', `/conversations/${ids[22]}/config`, { title: 'row 22, renamed' })
  await page.waitForSelector('.placed[data-index="0"]:has-text("row 22, renamed")')
  await frames(page)
  expect((await placeOf(row)).hasFocus).toBe(true)
  await deleteAll(ids)
  await page.context().close()
})

test('a request of a conversation stays where it is while it has the focus, and the end is followed again afterwards', async () => {
  const id = await ask('busy', `decide${'\n\nmore'.repeat(60)}`)
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await cards(page).waitFor()
  await page.keyboard.press('n')
  const before = await placeOf(cards(page))
  expect(before.hasFocus).toBe(true)
  for (let i = 0; i < 8; i++)
    await stage.server.call('POST', `/conversations/${id}/commands`, { command: `echo line-${i}` })
  await page.waitForSelector('.row:has-text("line-2")')
  await frames(page)
  expect(await placeOf(cards(page))).toEqual(before)
  await page.evaluate(`document.activeElement.blur()`)
  await stage.server.call('POST', `/conversations/${id}/commands`, { command: 'echo the-last-line' })
  await page.waitForSelector('.row:has-text("the-last-line")')
  await expect
    .poll(() =>
      page
        .locator('.conversation .scroller')
        .evaluate((list) => list.scrollHeight - list.clientHeight - list.scrollTop),
    )
    .toBeLessThan(40)
  await deleteAll([id])
  await page.context().close()
})

test('a message whose sending ends late takes the focus from no request, and gives it back where it was lost', async () => {
  const id = await ask('focused')
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await cards(page).waitFor()
  let answer = Promise.withResolvers<void>()
  await page.route('**/messages', async (route) => {
    await answer.promise
    await route.fulfill({ status: 202, json: {} })
  })
  const sendSlowly = async (text: string, meanwhile: () => Promise<unknown>) => {
    answer = Promise.withResolvers()
    await page.fill('.composer textarea', text)
    await page.click('.composer button')
    await page.waitForSelector('.composer button:disabled')
    await meanwhile()
    answer.resolve()
    await expect.poll(() => page.inputValue('.composer textarea')).toBe('')
    await frames(page)
  }
  await sendSlowly('wait', () => cards(page).focus())
  expect((await placeOf(cards(page))).hasFocus).toBe(true)
  await sendSlowly('again', async () => {})
  expect(await page.evaluate(`document.activeElement.matches('.composer textarea')`)).toBe(true)
  await deleteAll([id])
  await page.context().close()
})

/** Lets the time of the page go by in small steps until the condition holds. Returns the milliseconds. */
async function timeUntil(page: Page, holds: () => Promise<boolean>): Promise<number> {
  for (let ms = 0; ; ms += STEP_MS) {
    if (await holds()) return ms
    expect(ms).toBeLessThan(10_000)
    await page.clock.runFor(STEP_MS)
  }
}

const STEP_MS = 20

test('a card takes an answer half a second after it has appeared, and sends the hash of what it shows', async () => {
  const { page } = await openTab(browser, stage.server.url)
  await page.waitForSelector('text=No agent needs you.')
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 60_000)
  const id = await ask('appears')
  const [{ payload }] = (await stage.server.call('GET', `/conversations/${id}/requests`)).body.items
  await expect
    .poll(async () => {
      await page.clock.runFor(STEP_MS)
      return await cards(page).count()
    })
    .toBe(1)
  const allow = page.locator('[data-request] button[data-key=a]')
  expect(await allow.isEnabled()).toBe(false)
  await page.evaluate(`document.querySelector('[data-request] button[data-key=a]').click()`)
  const ms = await timeUntil(page, () => allow.isEnabled())
  // It looks ten times in a second.
  expect(ms).toBeGreaterThanOrEqual(500 - STEP_MS)
  expect(ms).toBeLessThanOrEqual(800)
  const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().includes('/requests/'))
  await page.evaluate(`document.querySelector('[data-request] button[data-key=a]').click()`)
  expect((await sent).postDataJSON()).toMatchObject({
    kind: 'permission',
    decisions: [{ input_hash: payload.tool_uses[0].input_hash, behavior: 'allow' }],
  })
  await page.context().close()
})
