/** The list of conversations follows what happens, without reading it again. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConversationSummary } from '../../src/contract/conversations/summary.ts'
import { filterText, hasFilterText, listQueryOf, withFilter } from '../../src/ui/state/list-query.ts'
import { withChange } from '../../src/ui/state/summary-rows.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

describe('a change of a row', () => {
  const at = (id: string, second: number, fields: object = {}) =>
    ({ id, status: 'idle', updated_at: `2026-01-31T12:00:0${second}.000Z`, ...fields }) as ConversationSummary
  const ROWS = [at('c', 5), at('b', 4), at('a', 1)]
  const change = (summary: ConversationSummary, filter = {}, isWhole = true) =>
    withChange(ROWS, { id: summary.id, summary }, { filter, isWhole }).map(({ id }) => id)

  test('moves it to where its time belongs', () => {
    expect(change(at('a', 6))).toEqual(['a', 'c', 'b'])
    expect(change(at('new', 4))).toEqual(['c', 'new', 'b', 'a'])
    expect(change(at('old', 0))).toEqual(['c', 'b', 'a', 'old'])
  })

  test('is left to a later page if the row belongs there', () => {
    expect(change(at('old', 0), {}, false)).toEqual(['c', 'b', 'a'])
    expect(change(at('a', 1, { title: 'renamed' }), {}, false), 'unless it is the last one here').toEqual([
      'c',
      'b',
      'a',
    ])
  })

  test('removes it if it is deleted or does not match any more', () => {
    expect(withChange(ROWS, { id: 'b' }, { filter: {}, isWhole: true }).map(({ id }) => id)).toEqual(['c', 'a'])
    expect(change(at('b', 6, { status: 'running' }), { status: ['idle'] })).toEqual(['c', 'a'])
    expect(change(at('b', 6, { archived: true }), { archived: false })).toEqual(['c', 'a'])
    expect(change(at('b', 6, { title: 'totals', preview: 'Sum.' }), { q: 'tests' })).toEqual(['c', 'a'])
    expect(change(at('b', 6, { title: 'The Tests' }), { q: 'tests' })).toEqual(['b', 'c', 'a'])
    const fields = { labels: ['x', 'y'], model: 'small', user_id: 'ada' }
    expect(change(at('b', 6, fields), { label: ['y', 'x'], model: 'small', user_id: 'ada' })).toEqual(['b', 'c', 'a'])
    for (const filter of [{ label: ['x', 'z'] }, { model: 'large' }, { user_id: 'grace' }])
      expect(change(at('b', 6, fields), filter)).toEqual(['c', 'a'])
  })
})

describe('what somebody types', () => {
  test('has filters and words', () => {
    expect(listQueryOf('the  tests')).toEqual({ q: 'the tests' })
    expect(listQueryOf('label:ci user:ada tests label:"two words" model:gpt-5')).toEqual({
      q: 'tests',
      label: ['ci', 'two words'],
      user_id: 'ada',
      model: 'gpt-5',
    })
    expect(listQueryOf('label: http://user:8000 xlabel:y')).toEqual({ q: 'http://user:8000 xlabel:y' })
    expect(listQueryOf(filterText('label', 'two words'))).toEqual({ label: ['two words'] })
  })

  test('keeps its other filters and words when one filter is chosen', () => {
    const text = 'tests label:ci label:"two words" user:ada'
    expect(listQueryOf(withFilter(text, 'label', 'new'))).toEqual({ q: 'tests', label: ['new'], user_id: 'ada' })
    expect(withFilter('label:"two words"', 'label', undefined)).toBe('')
    expect(withFilter('', 'model', 'a b')).toBe('model:"a b"')
  })

  test('can name each value, except those with a quote and a space', () => {
    expect(['ci', 'two words', 'a"b', 'a:b'].map((value) => hasFilterText('label', value))).not.toContain(false)
    expect(['', 'a "b"', ' ci'].map((value) => hasFilterText('user', value))).not.toContain(true)
  })
})

describe('an open list', () => {
  let browser: Browser
  let stage: Stage
  beforeAll(async () => {
    browser = await openBrowser()
    const replies = [
      { when: 'wait', turns: [bash('while [ ! -e go ]; do sleep 0.05; done'), { text: 'It has gone on.' }] },
      { when: 'hello', turns: [{ text: 'Hello there.' }] },
    ]
    stage = await setStage({ replies })
  })
  afterAll(async () => {
    await browser.close()
    await stage[Symbol.asyncDispose]()
  })

  test('shows what changes, in the order of the changes, and reads no list for it', async () => {
    const [first, second] = [await stage.create({ title: 'first' }), await stage.create({ title: 'second' })]
    const { page, misdeeds } = await openTab(browser, stage.server.url)
    const names = () => page.locator('.summary strong').allTextContents()
    await page.goto('about:blank')
    let reads: string[] = []
    page.on('request', (request) => {
      if (/conversations\/summaries|conversations\/[0-9a-f-]{36}/.test(request.url())) reads.push(request.url())
    })
    await page.goto(`${stage.server.url}/ui/#/conversations`)
    await expect.poll(names).toEqual(['second', 'first'])
    await stage.say(first, 'hello')
    await page.waitForSelector('.summary:has-text("Hello there.")')
    await expect.poll(names).toEqual(['first', 'second'])
    // The list is read once before there is a connection, and once when it has opened.
    await expect.poll(() => reads.length).toBe(2)
    reads = []
    const third = await stage.create({ title: 'third' })
    await expect.poll(names).toEqual(['third', 'first', 'second'])
    await stage.server.call('PUT', `/conversations/${second}/config`, { title: 'renamed' })
    await expect.poll(names).toEqual(['renamed', 'third', 'first'])
    await stage.server.call('PUT', `/conversations/${first}/config`, { archived: true })
    await expect.poll(names).toEqual(['renamed', 'third'])
    for (const id of [second, third]) await stage.server.call('DELETE', `/conversations/${id}`)
    await expect.poll(names).toEqual([])
    expect(reads).toEqual([])
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('has no rows of former filters, which arrive late', async () => {
    const ids: string[] = []
    for (const title of ['odd 1', 'even 2', 'odd 3', 'even 4', 'odd 5']) ids.push(await stage.create({ title }))
    const { page } = await openTab(browser, stage.server.url)
    const isLate = Promise.withResolvers<void>()
    const further = /summaries\?.*page_id=/
    // Instead of a hundred, the first page has two.
    await page.route('**/conversations/summaries?*', async (route) => {
      const url = route.request().url()
      if (further.test(url)) await isLate.promise
      await route.continue({ url: url.replace('limit=100', 'limit=2') })
    })
    const asked = page.waitForRequest(further)
    await goTo(page, '#/conversations')
    const answered = (await asked).response()
    await page.fill('[data-search]', 'odd')
    const names = () => page.locator('.summary strong').allTextContents()
    await expect.poll(names).toEqual(['odd 5', 'odd 3'])
    isLate.resolve()
    await (await answered)?.finished()
    await page.evaluate(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
    expect((await names()).filter((name) => name.startsWith('even'))).toEqual([])
    for (const id of ids) await stage.server.call('DELETE', `/conversations/${id}`)
    await page.context().close()
  })

  test('of what runs has what an agent does now, and loses it at the end', async () => {
    const id = await stage.create({ title: 'works' })
    const { page } = await openTab(browser, stage.server.url)
    await page.waitForSelector('text=No agent needs you.')
    const { status } = await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'wait', run: true })
    expect(status).toBe(202)
    await page.waitForSelector('.summary:has-text("Bash: while")')
    // A message of now is read in the next step, and can be taken back until then.
    await goTo(page, `#/c/${id}`)
    await page.waitForSelector('.meta:has-text("Bash: while")')
    await page.fill('.composer textarea', 'and then?')
    await page.click('.composer button')
    await page.waitForSelector('.said.user:has-text("and then?") .badge:has-text("queued")')
    await page.click('text=Take back')
    await page.waitForSelector('.note:has-text("A message was taken back.")')
    await expect.poll(() => page.inputValue('.composer textarea')).toBe('and then?')
    expect(await page.locator('.said.user .badge').count()).toBe(0)
    await goTo(page, '#/')
    expect((await stage.server.call('PUT', `/conversations/${id}/files/go`, 'go')).status).toBe(201)
    await page.waitForSelector('.summary', { state: 'detached' })
    await goTo(page, '#/conversations')
    await page.waitForSelector('.summary:has-text("It has gone on.")')
    await stage.create({ title: 'labelled', labels: ['two words'] })
    await page.fill('[data-search]', 'label:"two words"')
    await page.waitForSelector('.filters:has-text("All 1")')
    await expect.poll(() => page.locator('.summary strong').allTextContents()).toEqual(['labelled'])
    // A reload, and going back from a conversation, keep what was looked for.
    await page.reload()
    await page.waitForSelector('.filters:has-text("All 1")')
    expect(await page.inputValue('[data-search]')).toBe('label:"two words"')
    await page.context().close()
  })

  test('is filtered by labels, models and users with their counts, which follow the other filters', async () => {
    const id = await stage.create({ title: 'choice a', labels: ['nightly', '<b>'], user_id: 'ada' })
    await stage.create({ title: 'choice b', labels: ['nightly'], user_id: 'ada lovelace' })
    await stage.create({ title: 'choice c', labels: ['release'], user_id: 'ada' })
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/conversations?q=choice' })
    const options = (name: string) => page.locator(`select[aria-label="Filter by ${name}"] option`).allTextContents()
    await expect.poll(() => options('label')).toEqual(['Any label', 'nightly (2)', '<b> (1)', 'release (1)'])
    // All have the same model.
    expect(await options('model')).toEqual([])
    await page.getByLabel('Filter by user').selectOption('ada')
    await expect.poll(() => options('label')).toEqual(['Any label', '<b> (1)', 'nightly (1)', 'release (1)'])
    await page.getByLabel('Filter by label').selectOption('<b>')
    const titles = () => page.locator('.summary strong').allTextContents()
    await expect.poll(titles).toEqual(['choice a'])
    expect(await page.inputValue('[data-search]')).toBe('choice user:ada label:<b>')
    await page.getByLabel('Filter by label').selectOption('')
    await expect.poll(titles).toEqual(['choice c', 'choice a'])
    await page.click('.filters button:has-text("idle")')
    await stage.server.call('PUT', `/conversations/${id}/config`, { labels: ['changed'] })
    await expect.poll(() => options('label')).toEqual(['Any label', 'changed (1)', 'release (1)'])
    await page.getByLabel('Filter by user').selectOption('')
    await page.getByLabel('Filter by user').selectOption('ada lovelace')
    await expect.poll(titles).toEqual(['choice b'])
    // What is chosen can be given up, also where there is only one.
    await page.getByLabel('Filter by user').selectOption('')
    await expect.poll(titles).toEqual(['choice a', 'choice c', 'choice b'])
    expect(misdeeds).toEqual([])
    await page.context().close()
  })
})
