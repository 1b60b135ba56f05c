/** Texts of agents, tools, files and clients in every place of the dashboard: they stay text, and hide nothing. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'
import type { Tab } from './browser.ts'
import { ALL_NUMBERS, HOSTILE_STRINGS, numbersIn } from './hostile-strings.ts'

const ALL = HOSTILE_STRINGS.join('\n\n')
/** The names of files have no slash, and few programs write one that has a line break. */
const NAMES = HOSTILE_STRINGS.map((text) => Buffer.from(text.replaceAll('/', '∕')).subarray(0, 200).toString())
/** The server cuts what is longer. */
const WITHOUT_SHAPE = HOSTILE_STRINGS.slice(66, 88)
/** Questions have no controls. */
const ASKED = HOSTILE_STRINGS.filter((text) => !/\p{Cc}/u.test(text)).slice(40, 60)
const INPUT = Object.fromEntries(HOSTILE_STRINGS.map((text, index) => [text, HOSTILE_STRINGS.at(-1 - index)]))

let browser: Browser
let stage: Stage
let tab: Tab
let page: Page
beforeAll(async () => {
  browser = await openBrowser()
  const cat = `cat <<'END'\n${ALL}\nEND`
  const questions = [0, 1, 2, 3].map((place) => ({
    question: ASKED[place],
    header: ASKED[place]?.slice(0, 12),
    options: ASKED.slice(4 + 4 * place, 8 + 4 * place).map((text) => ({ label: text.slice(0, 4), description: text })),
  }))
  const replies = [
    { when: 'answer', turns: [bash(cat), { reasoning: ALL, text: ALL }] },
    { when: 'permission', turns: [bash(cat), { text: 'Done.' }] },
    { when: 'question', turns: [{ calls: [{ name: 'AskUserQuestion', arguments: { questions } }] }] },
    { when: 'input', turns: [{ calls: [{ name: 'Unknown', arguments: INPUT }] }, { text: 'Done.' }] },
    { when: 'error', turns: [{ status: 400, error: { message: WITHOUT_SHAPE.join(' ') } }] },
  ]
  // Not one that others use later: it keeps the costs of these users and labels.
  stage = await setStage({ replies }, {})
  tab = await openTab(browser, stage.server.url)
  page = tab.page
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/**
 * Returns what is in the page that nobody sees: in its texts, and in what a screen reader says. Prose has joined emoji, so
 * that only what turns its direction is looked for there. What a person edits is not looked at.
 */
const hiddenIn = () =>
  page.evaluate<string[]>(`(() => {
    const hidden = /(?![\\t\\n])[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cn}\\p{Cs}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029\\u2800]/u
    const turning = /[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/
    const found = []
    for (const element of document.body.querySelectorAll('*')) {
      const isProse = element.closest('.markdown, .as-written') && !element.closest('code, pre, .target')
      const texts = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data)
      if (texts.some((text) => (isProse ? turning : hidden).test(text))) found.push(element.outerHTML.slice(0, 200))
      for (const name of ['aria-label', 'title', 'alt', 'placeholder', 'aria-description'])
        if (hidden.test(element.getAttribute(name) ?? '')) found.push(name + ' of ' + element.outerHTML.slice(0, 200))
    }
    return found
  })()`)

/** Addresses that the page offers to follow. */
const foreignLinks = () =>
  page
    .locator('a')
    .evaluateAll((links) =>
      links.map((link) => link.getAttribute('href') ?? '').filter((href) => !/^(?:#|https?:|mailto:)/.test(href)),
    )

/** Expects all strings in what is shown, and none of them to be more than text. */
async function expectHarmless(selector: string, texts = HOSTILE_STRINGS): Promise<void> {
  await expect
    .poll(async () => numbersIn((await page.locator(selector).allInnerTexts()).join('\n')), { message: selector })
    .toEqual(numbersIn(texts.join('\n')))
  expect(await hiddenIn()).toEqual([])
  expect(await foreignLinks()).toEqual([])
  expect(tab.misdeeds).toEqual([])
}

/** Scrolls a list up and down until all strings were in it. */
async function expectAllRows(selector: string): Promise<void> {
  const numbers = new Set<string>()
  await page.locator(selector).first().waitFor()
  await expect
    .poll(async () => {
      for (const number of numbersIn((await page.locator(selector).allInnerTexts()).join('\n'))) numbers.add(number)
      expect(await hiddenIn()).toEqual([])
      await page.evaluate(`{
        const list = document.querySelector('main .scroller')
        const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 1
        if (isAtEnd) list.scrollTo(0, 0)
        else list.scrollBy(0, 500)
      }`)
      return numbers
    })
    .toEqual(ALL_NUMBERS)
  expect(tab.misdeeds).toEqual([])
}

async function say(message: string, fields: Record<string, unknown> = {}): Promise<string> {
  const id = await stage.create(fields)
  const { status } = await stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  expect(status).toBe(202)
  return id
}

test('messages, reasoning, inputs and outputs of tools', async () => {
  const id = await say(`answer ${ALL}`)
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector('.end')
  await page.click('.tool button')
  await page.click('summary:has-text("Thoughts")')
  await expectHarmless('.said.user')
  await expectHarmless('.said .markdown')
  await expectHarmless('.said details')
  await expectHarmless('.tool .inside > pre:first-child')
  await page.click('.tool button.link')
  await expectHarmless('.tool .inside')
  await goTo(page, `#/c/${id}/timeline`)
  await page.waitForSelector('.span')
  expect(await hiddenIn()).toEqual([])
  await goTo(page, `#/c/${id}/settings`)
  await page.waitForSelector('form')
  expect(await hiddenIn()).toEqual([])
  expect(tab.misdeeds).toEqual([])
})

test('names and values of the input of a tool, and its error', async () => {
  const id = await say('input')
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector('.end')
  await expectHarmless('.tool .inside')
})

test('the error of a model', async () => {
  const id = await say('error')
  await goTo(page, `#/c/${id}`)
  await expectHarmless('p.fault', WITHOUT_SHAPE)
})

test('what is asked in the inbox: a command, and a question with its options', async () => {
  const ids = [
    await say('permission', { permission_mode: 'default' }),
    await say('question', { tools: ['AskUserQuestion'] }),
  ]
  await goTo(page, '#/')
  await expectHarmless('[data-request] pre')
  await expectHarmless('[data-request]:has(.option)', ASKED)
  for (const id of ids) await stage.server.call('DELETE', `/conversations/${id}`)
})

test('titles, labels, first words and models in the list, in the palette and in what is found', async () => {
  const create = (text: string) =>
    stage.create({
      title: text.slice(0, 200),
      labels: [text.slice(0, 30), `${text.slice(0, 4)}x`],
      user_id: text.slice(0, 100),
    })
  await Promise.all(HOSTILE_STRINGS.map(create))
  await goTo(page, '#/conversations')
  await expectAllRows('.summary strong')
  await expectAllRows('.summary .badge')
  await page.getByLabel('Filter by user').waitFor()
  expect(await hiddenIn()).toEqual([])
  await page.fill('[data-search]', 'script')
  await page.waitForSelector('[data-found] a')
  expect(await hiddenIn()).toEqual([])
  await page.keyboard.press('Control+k')
  await page.waitForSelector('[role=option]')
  expect(await hiddenIn()).toEqual([])
  await page.keyboard.press('Escape')
})

test('names of files, their content, and what has changed', async () => {
  const workdir = mkdtempSync(join(tmpdir(), 'hostile-'))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: workdir })
  git('init', '-q')
  writeFileSync(join(workdir, 'content.md'), 'before\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  writeFileSync(join(workdir, 'content.md'), ALL)
  for (const name of NAMES) writeFileSync(join(workdir, name), name)
  const id = await stage.create({ workdir })
  await goTo(page, `#/c/${id}/files`)
  await expectAllRows('.files .name')
  expect(await hiddenIn()).toEqual([])
  await page.fill('main [type=search]', 'h06')
  await expect.poll(() => page.locator('.files [role=listitem]').count()).toBe(10)
  expect(await hiddenIn()).toEqual([])
  await page.click('.files button:has-text("h066")')
  await page.waitForSelector('pre')
  expect(await hiddenIn()).toEqual([])
  await goTo(page, `#/c/${id}/changes`)
  await expectAllRows('.conversation .scroller code')
  // Files that git does not know are at the end, with their content.
  await page.evaluate(`document.querySelector('main .scroller').scrollTo(0, 1e9)`)
  await page.locator('.file-head:has-text("untracked") button').last().click()
  await page.waitForSelector('.file-head:has-text("untracked") [aria-expanded=true]')
  await expect
    .poll(async () => {
      await page.evaluate(`document.querySelector('main .scroller').scrollTo(0, 1e9)`)
      return await page.locator('.diff-line .added').count()
    })
    .toBeGreaterThan(0)
  expect(await hiddenIn()).toEqual([])
  // Comments on lines that are gone are quoted.
  const comments = NAMES.map((path, number) => ({
    path,
    side: 'new',
    number,
    text: ALL,
    base: 'head',
    comment: 'why?',
  }))
  await page.evaluate(`localStorage.setItem('draft comments ${id}', ${JSON.stringify(JSON.stringify(comments))})`)
  await page.reload()
  await expectHarmless('.lost-comments', NAMES)
  await page.evaluate(`localStorage.removeItem('draft comments ${id}')`)
  rmSync(workdir, { recursive: true })
})

test('commands that were run, and what they wrote', async () => {
  const id = await stage.create()
  for (const text of HOSTILE_STRINGS.filter((_, place) => place % 2 === 1)) {
    const command = `true '${text.replaceAll("'", `'"'"'`)}'`
    expect((await stage.server.call('POST', `/conversations/${id}/commands`, { command })).status).toBe(200)
  }
  await goTo(page, `#/c/${id}/commands`)
  await page.waitForSelector('li code')
  expect(await hiddenIn()).toEqual([])
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector('.note code')
  expect(await hiddenIn()).toEqual([])
  expect(tab.misdeeds).toEqual([])
})

test('names and errors of MCP servers, and their tools', async () => {
  const id = await stage.create()
  const items = HOSTILE_STRINGS.map((text, place) => ({
    name: `${place} ${text}`,
    transport: 'stdio',
    status: 'failed',
    error: text,
    server: text,
    tools: [text],
    left_out: [text],
    authorization_url: `javascript:alert(1)//${text}`,
  }))
  await page.route('**/mcp', (route) => route.fulfill({ json: { items } }))
  await goTo(page, `#/c/${id}/settings`)
  await page.locator('summary').first().waitFor()
  await page.evaluate(`document.querySelectorAll('summary').forEach((line) => line.click())`)
  await expectHarmless('main li .fault')
  await expectHarmless('main li details')
})

test('names of keys', async () => {
  const create = (name: string) => stage.server.call('POST', '/keys', { name: name.slice(0, 100), scopes: ['read'] })
  const answers = await Promise.all(HOSTILE_STRINGS.map(create))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  await goTo(page, '#/server')
  await expectHarmless('main ul')
})

test('addresses and errors of webhooks, and errors of the server', async () => {
  const at = '2026-01-31T12:00:00.000Z'
  const items = HOSTILE_STRINGS.map((text, place) => {
    const delivery = { id: `d${place}`, seq: place, type: 'Result', attempts: 3, error: text, last_attempt_at: at }
    const callback = { id: `c${place}`, url: `https://example.com/${text}`, enabled: false, disabled_reason: text }
    return { conversation_id: 'x', title: text, user_id: text, callback, pending: delivery, failed: [delivery] }
  })
  await page.route('**/callbacks?*', (route) => route.fulfill({ json: { items, next_page_id: null } }))
  await goTo(page, '#/webhooks')
  await expectHarmless('.webhook')
  await page.route('**/test', (route) =>
    route.fulfill({ status: 400, json: { error: 'invalid_request', message: ALL } }),
  )
  await page.click('.webhook button')
  await expectHarmless('.notice')
})
