/** The whole work of a person with the keyboard alone, and what a screen reader has of it. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { newContext, openTab, watchConnection } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [{ when: 'decide', turns: [bash('touch made'), { text: 'It is made.' }] }] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

test('a person logs in, finds a conversation, writes, decides, reads and moves without a mouse', async () => {
  const id = await stage.create({ title: 'by keyboard', permission_mode: 'default' })
  const context = await newContext(browser)
  const page = await context.newPage()
  const connected = watchConnection(page)
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const tree = (selector: string) => page.locator(selector).ariaSnapshot()
  /** Presses Tab until the element has the focus. */
  const tabTo = async (selector: string) => {
    await expect
      .poll(async () => {
        await press('Tab')
        return await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)
      })
      .toBe(true)
  }
  await page.goto(`${stage.server.url}/ui/`)
  await page.waitForSelector('[name=password]:focus')
  expect(await tree('main')).toMatch(/textbox "API key or master key"[^]*checkbox "Only read"[^]*button "Log in"/)
  await page.keyboard.type(KEY)
  await press('Enter')
  await page.waitForSelector('h1:has-text("Inbox")')
  await connected()
  expect(await tree('nav')).toMatch(/link "Inbox"[^]*link "Conversations"[^]*link "Settings"/)

  await press('Control+k')
  await page.waitForSelector('dialog[open]')
  await page.keyboard.type('by keyboard')
  await page.waitForSelector('[role=option]:has-text("by keyboard")')
  await press('Enter')
  await page.waitForSelector('h1:has-text("by keyboard")')
  await tabTo('.composer textarea')
  await page.keyboard.type('decide')
  await press('Control+Enter')

  await page.waitForSelector('[data-request] button[data-key=a]:enabled')
  expect(await tree('[data-request]')).toMatch(/Permission[^]*touch made[^]*button "Allow"[^]*button "Deny"/)
  await page.waitForSelector('.unseen:text-is("The agent: needs a decision")', { state: 'attached' })
  await tabTo('nav.places *')
  await press('n')
  await page.waitForSelector('[data-request]:is(:focus, :focus-within)')
  // Without a request, the key that finds the next one leads to the inbox.
  await expect
    .poll(async () => {
      await press('a')
      return (await stage.server.call('GET', `/conversations/${id}/requests`)).body.items.length
    })
    .toBe(0)
  await page.waitForSelector('.said:has-text("It is made.")')
  await page.waitForSelector('.unseen:text-is("The agent: finished")', { state: 'attached' })
  // What is written all the time is not read out.
  expect(
    await page.locator('.conversation [aria-live], .conversation [role=status], .conversation [role=log]').count(),
  ).toBe(0)

  await tabTo('.tool .line')
  expect(await tree('.tool .line')).toMatch(/button "[^"]*Bash touch made/)
  await press('Enter')
  await page.waitForSelector('.tool .line[aria-expanded=true]')
  // The second key belongs to the first one for a moment only.
  await expect
    .poll(async () => {
      await press('g', 's')
      return await page.locator('h1:has-text("Server")').count()
    })
    .toBe(1)
  await press('?')
  expect(await tree('dialog')).toContain('Allow, deny the request that has the focus')
  await press('Escape')
  await page.waitForSelector('dialog[open]', { state: 'detached' })
  await press('/')
  await page.waitForSelector('[data-search]:focus')
  await context.close()
})

test('a key that is pressed as soon as there is a screen is not lost', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  await page.addInitScript(`new MutationObserver((_, observer) => {
    if (!document.querySelector('nav.places')) return
    observer.disconnect()
    dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))
  }).observe(document, { childList: true, subtree: true })`)
  await page.reload()
  await page.waitForSelector('dialog[open]')
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test.each([
  ['/', {}, '[data-search]:focus'],
  ['k', { ctrlKey: true }, 'dialog[open] [role=combobox]'],
])('a key that follows Escape at once is not lost in the dialog that it closes: %s', async (key, more, selector) => {
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  await page.keyboard.press('?')
  await page.waitForSelector('dialog[open]')
  // What the browser does for Escape, with the next key before the event `close`.
  await page.evaluate(`{
    const dialog = document.querySelector('dialog')
    dialog.dispatchEvent(new Event('cancel'))
    dialog.close()
    dispatchEvent(new KeyboardEvent('keydown', ${JSON.stringify({ key, ...more })}))
  }`)
  await page.waitForSelector(selector)
  expect(misdeeds).toEqual([])
  await page.context().close()
})
