/** What somebody writes is kept until it is sent: the first message of a new conversation, and more than a browser keeps. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const options = ['Staging', 'Production'].map((label) => ({ label, description: `to ${label}` }))
  const questions = [{ question: 'Where to?', header: 'Target', options }]
  const turns = [{ calls: [{ name: 'AskUserQuestion', arguments: { questions } }] }, { text: 'It is there.' }]
  stage = await setStage({ replies: [{ turns }] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

test('the first message of a new conversation stays while other screens are shown, after a reload, and after a fault', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/new' })
  const message = page.locator('[name=message]')
  await message.fill('a long story')
  await goTo(page, '#/')
  await goTo(page, '#/new')
  expect(await message.inputValue()).toBe('a long story')
  await page.reload()
  expect(await message.inputValue()).toBe('a long story')
  // The server of this test has no model of its own.
  await page.route('**/conversations', (route) =>
    route.fulfill({ status: 507, json: { message: 'There is no room.' } }),
  )
  await page.click('button:has-text("Start")')
  await page.waitForSelector('form .fault:has-text("no room")')
  await goTo(page, '#/')
  await goTo(page, '#/new')
  expect(await message.inputValue()).toBe('a long story')
  const id = await stage.create({ title: 'started' })
  await page.route('**/conversations', (route) => route.fulfill({ status: 201, json: { id } }))
  await page.click('button:has-text("Start")')
  await page.waitForSelector('h1:has-text("started")')
  await goTo(page, '#/new')
  expect(await message.inputValue()).toBe('')
  await page.context().close()
})

test('who goes elsewhere while an agent is started stays there, and what is typed meanwhile is the next message', async () => {
  const id = await stage.create({ title: 'started slowly' })
  const { page } = await openTab(browser, stage.server.url, { hash: '#/new' })
  const isAnswered = Promise.withResolvers<void>()
  await page.route('**/conversations', async (route) => {
    await isAnswered.promise
    await route.fulfill({ status: 201, json: { id } })
  })
  await page.fill('[name=message]', 'a slow start')
  await page.click('button:has-text("Start")')
  await page.fill('[name=message]', 'a slow start, and more')
  await goTo(page, '#/conversations')
  isAnswered.resolve()
  await expect.poll(() => page.evaluate(`localStorage.getItem('draft new')`)).toBe(', and more')
  expect(new URL(page.url()).hash).toBe('#/conversations')
  await goTo(page, '#/new')
  expect(await page.inputValue('[name=message]')).toBe(', and more')
  expect(await page.isEnabled('button:has-text("Start")')).toBe(true)
  await page.context().close()
})

test('an answer that a person has begun is there on each screen that shows the question', async () => {
  const id = await stage.create({ title: 'asks', tools: ['AskUserQuestion'] })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'go', run: true })
  const { page } = await openTab(browser, stage.server.url)
  const other = page.getByLabel('Another answer')
  await other.fill('to a third place')
  await page.click('[data-request] a:has-text("asks")')
  await page.waitForSelector('.conversation [data-request]')
  expect(await other.inputValue()).toBe('to a third place')
  await goTo(page, '#/')
  expect(await other.inputValue()).toBe('to a third place')
  await page.click('[data-request] button:has-text("Answer"):enabled')
  await page.waitForSelector('text=No agent needs you')
  const [{ answer }] = await stage.events(id, 'types=RequestAnswered')
  expect(JSON.stringify(answer)).toContain('to a third place')
  await page.context().close()
})

test('a message whose answer was lost is sent once, also by a page that is loaded again and by another tab', async () => {
  const id = await stage.create({ title: 'lost answer' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const other = await page.context().newPage()
  let arrived = Promise.withResolvers<void>()
  await page.context().route('**/messages', async (route) => {
    // Requests that are not sent by the page itself lack what the browser says about it.
    const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
    const response = await route.fetch({ headers })
    arrived.resolve()
    if (route.request().frame().page() === other) await route.fulfill({ response })
    else await route.abort()
  })
  const send = async (tab: Page) => {
    arrived = Promise.withResolvers<void>()
    expect(await tab.inputValue('.composer textarea')).toBe('say it once')
    await tab.click('.composer button[type=submit]')
    await arrived.promise
  }
  await page.fill('.composer textarea', 'say it once')
  await send(page)
  await page.reload()
  await send(page)
  await other.goto(page.url())
  await send(other)
  await expect.poll(() => other.inputValue('.composer textarea')).toBe('')
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(1)
  await page.context().close()
})

test('a message whose answer was lost is sent once, although another tab has had an answer meanwhile', async () => {
  const id = await stage.create({ title: 'two tabs' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const other = await page.context().newPage()
  await other.goto(page.url())
  const send = async (tab: Page, text: string) => {
    const [arrived, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<'answer' | 'loss'>()]
    await tab.route('**/messages', async (route) => {
      const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
      const response = await route.fetch({ headers })
      arrived.resolve()
      if ((await ended.promise) === 'answer') await route.fulfill({ response })
      else await route.abort()
    })
    await tab.fill('.composer textarea', text)
    await tab.click('.composer button[type=submit]')
    await arrived.promise
    return async (end: 'answer' | 'loss') => {
      ended.resolve(end)
      await tab.waitForSelector('.composer button[type=submit]:enabled')
      await tab.unroute('**/messages')
    }
  }
  const endFirst = await send(page, 'the first')
  const endSecond = await send(other, 'the second')
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('the second')
  await endFirst('answer')
  await endSecond('loss')
  await other.click('.composer button[type=submit]')
  await expect.poll(() => other.inputValue('.composer textarea')).toBe('')
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(2)
  await page.context().close()
})

test('what was being written for a conversation that is deleted is forgotten, and all else stays', async () => {
  const [id, otherId] = [await stage.create({ title: 'goes' }), await stage.create({ title: 'stays' })]
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.fill('.composer textarea', 'never sent')
  await goTo(page, `#/c/${id}/commands`)
  await page.fill('form.bar input', 'never run')
  await goTo(page, `#/c/${otherId}`)
  await page.waitForSelector('h1:has-text("stays")')
  await page.fill('.composer textarea', 'later')
  await stage.server.call('DELETE', `/conversations/${id}`)
  const drafts = `Object.keys(localStorage).filter((name) => name.startsWith('draft '))`
  await expect.poll(() => page.evaluate(drafts)).toEqual([`draft ${otherId}`])
  await page.context().close()
})

/** Leaves room for less than a hundred characters. */
const FILL = `for (let length = 2 ** 24, place = 0; length > 50; place++) {
  try {
    localStorage.setItem('filling ' + place, 'x'.repeat(length))
  } catch {
    length /= 2
  }
}`

test('a draft for which the browser has no room is there until the page is left', async () => {
  const id = await stage.create({ title: 'no room' })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.evaluate(FILL)
  const draft = page.locator('.composer textarea')
  const leaveAndReturn = async () => {
    await goTo(page, `#/c/${id}/settings`)
    await page.waitForSelector('[name=title]')
    await goTo(page, `#/c/${id}`)
    return await draft.inputValue()
  }
  for (const text of ['long '.repeat(1000), 'longer '.repeat(1000), 'short']) {
    await draft.fill(text)
    expect(await leaveAndReturn()).toBe(text)
  }
  expect(misdeeds).toEqual([])
  await page.context().close()
})
