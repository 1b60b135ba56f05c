/** Calls and links of an agent that are made to stop the page, to change it, or to lead a person astray. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'
import type { Tab } from './browser.ts'

/** Each second line is the same in both texts. */
const LINES = 1500
const textOf = (name: string) =>
  Array.from({ length: LINES }, (_, line) => (line % 2 === 0 ? 'same' : `${name}${line}`)).join('\n')

const STATUSES = ['__proto__', 'constructor', 'toString', 'done']
const task_list = STATUSES.map((status) => ({ title: `task ${status}`, status, notes: '' }))
const LONG_HOST = `accounts.example.${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`
const LINKS = [
  `[a user](https://accounts.example:${'a'.repeat(90)}@example.com/)`,
  `[a long host](https://${LONG_HOST}/log-in)`,
  String.raw`[slashes](https:\\example.com/a)`,
  '[no slashes](http:docs)',
  '[other letters](https://ех\u0430mple.com/)',
]

let browser: Browser
let stage: Stage
let tab: Tab
let page: Page
beforeAll(async () => {
  browser = await openBrowser()
  const call = (name: string, args: Record<string, unknown>) => ({ calls: [{ name, arguments: args }] })
  const edit = { command: 'str_replace', path: '/none/a.txt', old_str: textOf('a'), new_str: textOf('b') }
  const replies = [
    { when: 'plan', turns: [call('TaskTracker', { command: 'plan', task_list }), { text: 'Done.' }] },
    { when: 'edit', turns: [call('FileEditor', edit), { text: 'Done.' }] },
    { when: 'links', turns: [{ text: LINKS.join('\n\n') }] },
  ]
  stage = await setStage({ replies })
  tab = await openTab(browser, stage.server.url)
  page = tab.page
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

async function open(message: string): Promise<void> {
  const id = await stage.create()
  await stage.say(id, message)
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector('.end')
}

test('a plan with statuses that objects have as fields changes nothing of the page', async () => {
  await open('plan')
  await page.click('.plan summary')
  expect(await page.locator('.plan li .shape').allTextContents()).toEqual(['○', '○', '○', '✓'])
  expect(await page.evaluate('Object.keys(Object.prototype)')).toEqual([])
  expect(tab.misdeeds).toEqual([])
})

test('an edit with more changes than can be compared is shown as what it removes and adds, in parts', async () => {
  await open('edit')
  const lines = page.locator('.tool .diff span')
  await expect.poll(() => lines.count()).toBeGreaterThan(0)
  expect(await lines.count()).toBeLessThan(500)
  await page.click('.tool .inside button:has-text("Show all")')
  await expect.poll(() => lines.count()).toBe(2 * LINES)
  expect(await page.locator('.tool .diff .same').count()).toBe(0)
})

test('a link leads to the target that it shows, with the whole host', async () => {
  await open('links')
  const paragraphs = await page.locator('.markdown p').allTextContents()
  expect(paragraphs[0]).toMatch(/^a user \(https:\/\/accounts/)
  expect(paragraphs[1]).toContain(LONG_HOST)
  expect(paragraphs.slice(2)).toEqual([
    'slashes (https://example.com/a)',
    'no slashes (http://docs/)',
    expect.stringMatching(/^other letters \(https:\/\/xn--[\w-]+\.com\/\)$/),
  ])
  const targets = `[...document.querySelectorAll('.markdown a')].map(({ href }) => href)`
  expect(await page.evaluate(targets)).toEqual([
    `https://${LONG_HOST}/log-in`,
    'https://example.com/a',
    'http://docs/',
    expect.stringMatching(/^https:\/\/xn--[\w-]+\.com\/$/),
  ])
})
