/**
 * Many tabs of one browser. A browser has six connections to a server over HTTP/1.1: a page that kept one of them for its
 * events would be the last that loads.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const TABS = 20

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({
    replies: ['there', 'again'].map((when) => ({ when, turns: [{ text: `Hello **${when}**.` }] })),
  })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

test('twenty tabs of one browser are live, the next one loads, and all of them stay live', async () => {
  const id = await stage.create({ title: 'tabs' })
  const { page: first, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
  const open = async (hash: string): Promise<Page> => {
    const page = await first.context().newPage()
    await page.goto(`${stage.server.url}/ui/${hash}`)
    await page.waitForSelector('h1')
    return page
  }
  const chats = await Promise.all(Array.from({ length: TABS / 2 }, () => open(`#/c/${id}`)))
  const lists = [first, ...(await Promise.all(Array.from({ length: TABS / 2 - 1 }, () => open('#/conversations'))))]
  /** Resolves when each tab has an answer that was given after it was loaded. */
  const hear = async (word: string) => {
    await Promise.all(chats.map((page) => page.waitForSelector('.composer')))
    await Promise.all(lists.map((page) => page.waitForSelector('.summary')))
    await stage.say(id, word)
    await Promise.all(chats.map((page) => page.waitForSelector(`.said strong:has-text("${word}")`)))
    await Promise.all(lists.map((page) => page.waitForSelector(`.summary:has-text("Hello ${word}.")`)))
  }
  await hear('there')
  expect(first.context().pages().length).toBe(TABS)
  chats.push(await open(`#/c/${id}`))
  await hear('again')
  expect(first.context().pages().length).toBe(TABS + 1)
  expect(misdeeds).toEqual([])
  await first.context().close()
})
