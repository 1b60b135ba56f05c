/** What a person looks for is where they look for it, stays there, and says what to do where there is nothing. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { accessibilityFaults, goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
let last: string
beforeAll(async () => {
  browser = await openBrowser()
  // Not one that others have used: their costs would be shown, too.
  stage = await setStage(
    { replies: [{ turns: [{ text: 'The harbour was frozen.', usage: { prompt_tokens: 10, completion_tokens: 5 } }] }] },
    {},
  )
  await stage.create({ title: 'short' })
  await stage.create({ title: 'long '.repeat(40), labels: ['a label', 'another label'], user_id: 'ada' })
  for (let i = 0; i < 12; i++) await stage.create({ title: `conversation ${i}` })
  last = await stage.create({ title: 'harbour' })
  await stage.say(last, 'go')
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** The left and the right edge of each element, and its height. */
const boxesOf = (page: Page, selector: string) =>
  page.evaluate<
    [left: number, right: number, height: number][]
  >(`[...document.querySelectorAll('${selector}')].map((one) => {
    const { left, right, height } = one.getBoundingClientRect()
    return [left, right, height].map(Math.round)
  })`)

const topOf = async (page: Page) => (await page.locator('.selectable').first().boundingBox())?.y

describe('the list of conversations', () => {
  test('has rows of one height, with the status and the age in columns', async () => {
    const { page } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
    await page.waitForSelector('.selectable:has-text("another label")', { state: 'attached' })
    const rows = await boxesOf(page, '.selectable')
    expect(rows.length).toBeGreaterThan(10)
    expect(new Set(rows.map(([, , height]) => height))).toEqual(new Set([56]))
    expect(new Set((await boxesOf(page, '.columns .word')).map(([left]) => left)).size).toBe(1)
    expect(new Set((await boxesOf(page, '.columns .age')).map(([, right]) => right)).size).toBe(1)
    await page.context().close()
  })

  test.each([1280, 360])('stays where it is while some are selected, %i px wide', async (width) => {
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
    await page.setViewportSize({ width, height: 800 })
    await page.waitForSelector('.filters:has-text("All 15")')
    await page.waitForSelector('.selectable')
    const top = await topOf(page)
    await page.locator('.selectable input').nth(1).check()
    await page.waitForSelector('.filters:has-text("1 selected")')
    expect(await topOf(page)).toBe(top)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.click('.filters button:has-text("Cancel")')
    await page.waitForSelector('.filters:has-text("All 15"):visible')
    expect(await page.locator('.selectable input:checked').count()).toBe(0)
    expect(await topOf(page)).toBe(top)
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('comes before the events that a search finds', async () => {
    const { page } = await openTab(browser, stage.server.url, { hash: '#/conversations?q=harbour' })
    await page.waitForSelector('.selectable:has-text("harbour")')
    await page.waitForSelector('[data-found] mark:has-text("harbour")')
    const [row, found] = [page.locator('.selectable').first(), page.locator('[data-found]')]
    expect((await row.boundingBox())!.y).toBeLessThan((await found.boundingBox())!.y)
    await page.context().close()
  })

  test('without a row leads to all of them, or to a first one', async () => {
    const { page } = await openTab(browser, stage.server.url, {
      hash: '#/conversations?q=nothing-has-this&archived=true',
    })
    await page.waitForSelector('text=No conversation matches.')
    await page.click('button:has-text("All conversations")')
    await page.waitForSelector('.selectable:has-text("harbour")')
    expect(await page.inputValue('[data-search]')).toBe('')
    await page.click('.filters button:has-text("Archived")')
    await page.waitForSelector('text=Nothing here')
    const nothing = { items: [], count: 0, next_page_id: null }
    await page.route('**/conversations/{summaries,count}?*', (route) => route.fulfill({ json: nothing }))
    await goTo(page, '#/conversations')
    await page.click('.blank a:has-text("Start an agent")')
    await page.waitForSelector('h1:has-text("New")')
    await page.context().close()
  })
})

test('a conversation that cannot be read says why, within the page, and is read when a person tries again', async () => {
  const { page } = await openTab(browser, stage.server.url)
  const body = { error: 'storage_failed', message: 'The disk is full.' }
  await page.route('**/events?*', (route) => route.fulfill({ status: 507, json: body }))
  await goTo(page, `#/c/${last}`)
  await page.waitForSelector('[role=alert]:has-text("The disk is full.")')
  expect(await page.locator('text=Loading …').count()).toBe(0)
  await page.unroute('**/events?*')
  await page.click('button:has-text("Try again")')
  await page.waitForSelector('h1:has-text("harbour")')
  await page.waitForSelector('.said:has-text("The harbour was frozen.")')
  await page.context().close()
})

test('the field for a message is as high as its text, also once that is shorter', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${last}` })
  const field = page.locator('.composer textarea')
  const height = async () => (await field.boundingBox())!.height
  const least = await height()
  await field.fill('line\n'.repeat(6))
  await expect.poll(height).toBeGreaterThan(3 * least)
  await field.fill('line')
  await expect.poll(height).toBe(least)
  await page.context().close()
})

test('the palette stays where it is, shows what is chosen, and says so where it finds nothing', async () => {
  const { page } = await openTab(browser, stage.server.url)
  await page.setViewportSize({ width: 1280, height: 400 })
  await page.keyboard.press('Control+k')
  const options = page.locator('[role=option]')
  await expect.poll(() => options.count()).toBe(16)
  const field = page.locator('dialog input')
  const place = await field.boundingBox()
  await page.keyboard.press('ArrowUp')
  await page.waitForSelector('[role=option]:last-child[aria-selected=true]')
  const [list, chosen] = [(await page.locator('#palette').boundingBox())!, (await options.last().boundingBox())!]
  expect(chosen.y + chosen.height).toBeLessThanOrEqual(list.y + list.height + 0.5)
  expect(await field.boundingBox()).toEqual(place)
  // Enter takes a word of an input method.
  await field.dispatchEvent('keydown', { key: 'Enter', isComposing: true })
  expect(await page.locator('dialog[open]').count()).toBe(1)
  await page.keyboard.type('nothing-has-this')
  await page.waitForSelector('dialog >> text=Nothing here')
  expect(await field.boundingBox()).toEqual(place)
  await page.context().close()
})

test('no duration has sixty seconds', async () => {
  const { page } = await openTab(browser, stage.server.url)
  await page.route('**/events?*', async (route) => {
    const response = await route.fetch()
    const text = (await response.text()).replaceAll(/("type":"Result".*?"duration_ms":)\d+/g, '$1119700')
    await route.fulfill({ response, body: text })
  })
  await goTo(page, `#/c/${last}`)
  await page.waitForSelector('.end')
  expect(await page.locator('.end').last().innerText()).toContain('1 min 59 s')
  await page.context().close()
})

test('costs that nobody knows are not called nothing', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/costs' })
  expect(await page.locator('li:has-text("scripted") .number').innerText()).toBe('–')
  expect(await page.locator('h2:has-text("Most expensive conversations")').count()).toBe(0)
  await page.context().close()
})

test('a server without webhooks says how there would be one', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/webhooks' })
  const text = await page.locator('.blank').innerText()
  expect(text).toContain('No conversation has a webhook.')
  expect(text).toContain('POST /conversations/{id}/callbacks')
  await page.context().close()
})
