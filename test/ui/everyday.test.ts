/** What a person does all day: answers, finds, archives, pauses, copies, forks, starts, uploads. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page, WebSocket } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { goTo, openTab, watchConnection } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const options = ['Staging', 'Production'].map((label) => ({ label, description: `to ${label}` }))
  const questions = [{ question: 'Where to?', header: 'Target', options }]
  const replies = [
    {
      when: 'question',
      turns: [{ calls: [{ name: 'AskUserQuestion', arguments: { questions } }] }, { text: 'It is there.' }],
    },
    { when: 'wait', turns: [bash('sleep 600'), { text: 'Done.' }] },
    { when: 'lines', turns: [bash('seq 1000 1099'), { text: 'Done.' }] },
    {
      when: 'edit',
      turns: [
        { calls: [{ name: 'FileEditor', arguments: { command: 'create', path: 'a.txt', file_text: 'one\ntwo\n' } }] },
        {
          calls: [
            {
              name: 'FileEditor',
              arguments: { command: 'str_replace', path: 'a.txt', old_str: 'one\ntwo', new_str: 'one\n2' },
            },
          ],
        },
        { text: 'Done.' },
      ],
    },
    {
      when: 'decoy',
      turns: [
        {
          calls: [
            {
              name: 'FileEditor',
              arguments: { command: 'create', path: 'b.txt', file_text: 'written', old_str: 'a', new_str: 'b' },
            },
          ],
        },
        { text: 'Done.' },
      ],
    },
    { when: 'hello', turns: [{ text: 'Hello there.' }] },
  ]
  // Not one that others have used: their costs would be shown, too.
  stage = await setStage({ replies }, {})
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const post = async (id: string, message: string) => {
  const { status } = await stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  expect(status).toBe(202)
}

const viewOf = async (id: string) => (await stage.server.call('GET', `/conversations/${id}`)).body

const titlesOf = (page: Page) => page.locator('.summary strong').allInnerTexts()

test('a question is answered with a number and Enter, and an inbox without one says what runs and what today costs', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  await page.waitForSelector('a:has-text("Today costs $0.00 so far")')
  const icon = () => page.getAttribute('link[rel=icon]', 'href')
  const plain = await icon()
  const id = await stage.create({ title: 'asks', tools: ['AskUserQuestion'] })
  await post(id, 'question')
  await page.waitForSelector('legend:has-text("Where to?")')
  expect(await page.title()).toContain('(1)')
  expect(await icon()).toMatch(/^data:/)
  await page.waitForSelector('.unseen:has-text("The agent: has a question")', { state: 'attached' })
  // The card has to be on the screen for a moment.
  await expect
    .poll(async () => {
      for (const key of ['n', '2', 'Enter']) await page.keyboard.press(key)
      return await page.locator('[data-request]').count()
    })
    .toBe(0)
  await expect.poll(async () => (await viewOf(id)).status).toBe('idle')
  const [answered] = await stage.events(id, 'types=RequestAnswered')
  expect(JSON.stringify(answered)).toContain('Production')
  await expect.poll(icon).toBe(plain)
  const busy = await stage.create({ title: 'at work' })
  await post(busy, 'wait')
  await page.waitForSelector('h2:has-text("1 agent is at work")')
  await page.waitForSelector('.summary:has-text("at work"):has-text("Bash: sleep 600")')
  await stage.server.call('POST', `/conversations/${busy}/pause`, { interrupt: true })
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('conversations are found by label and status, and several are archived and come back', async () => {
  for (const title of ['one', 'two', 'three'])
    await stage.create({ title, labels: title === 'three' ? ['day'] : ['night'], user_id: 'ada' })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
  // What a search leaves out of the list is not archived with what is in it.
  await page.getByLabel('three', { exact: true }).check()
  await page.waitForSelector('text=1 selected')
  await page.fill('[data-search]', 'label:night user:ada')
  await expect.poll(() => titlesOf(page)).toEqual(['two', 'one'])
  expect(await page.locator('text=1 selected').count()).toBe(0)
  await page.locator('.filters button:has-text("idle 2")').click()
  await expect.poll(() => titlesOf(page)).toEqual(['two', 'one'])
  for (const title of ['one', 'two']) await page.getByLabel(title, { exact: true }).check()
  await page.click('button:has-text("Archive"):not([aria-pressed])')
  await page.waitForSelector('text=2 conversations archived')
  await expect.poll(() => titlesOf(page)).toEqual([])
  await page.click('.notice button:has-text("Undo")')
  await expect.poll(async () => (await titlesOf(page)).toSorted()).toEqual(['one', 'two'])
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('a person sees what an agent does, writes a message that waits, takes it back, and pauses with Escape', async () => {
  const id = await stage.create({ title: 'busy' })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.fill('.composer textarea', 'wait')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.meta:has-text("Bash: sleep 600 · ")')
  await page.fill('.composer textarea', 'and then this')
  // The message before is sent.
  await page.waitForSelector('.composer button:enabled')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.said.user:has-text("and then this") .badge:has-text("queued")')
  await page.click('text=Take back')
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('and then this')
  // The answer to it is lost now, and what was taken back is sent again.
  await page.route('**/messages', async (route) => {
    const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
    await route.fetch({ headers })
    return await route.abort()
  })
  await page.keyboard.press('Control+Enter')
  await page.click('text=Take back')
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('and then this\n\nand then this')
  await page.waitForSelector('.composer button:enabled')
  await page.unroute('**/messages')
  await page.fill('.composer textarea', 'and then this')
  await page.keyboard.press('Control+Enter')
  await page.click('text=Take back')
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('and then this')
  await page.keyboard.press('Escape')
  await page.waitForSelector('button:has-text("Continue")')
  expect((await viewOf(id)).status).toBe('paused')
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('an event is copied as a command that works, and a fork begins at it', async () => {
  const id = await stage.create({ title: 'copied' })
  await stage.say(id, 'hello')
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const message = page.locator('.said.user')
  await message.locator('.more summary').click()
  await message.locator('text=Copy as curl').click()
  await page.waitForSelector('.notice:has-text("Copied")')
  const command = await page.evaluate<string>('navigator.clipboard.readText()')
  expect(command).toMatch(/ '[^']*'$/)
  const printed = execFileSync('sh', ['-c', command.replace('curl', 'curl -sS')], { env: { ...process.env, KEY } })
  expect(JSON.parse(String(printed))).toMatchObject({ type: 'UserMessage', conversation_id: id })
  await message.locator('text=Fork from here').click()
  await expect.poll(() => page.evaluate('location.hash')).not.toBe(`#/c/${id}`)
  await page.waitForSelector('.note:has-text("Forked")')
  expect(await page.locator('.said').allInnerTexts()).toHaveLength(1)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('every line of a conversation has a link to its event, also one without a message', async () => {
  const id = await stage.create({ title: 'linked' })
  await stage.say(id, 'hello')
  await stage.server.call('PUT', `/conversations/${id}/config`, { labels: ['linked'] })
  await stage.server.call('POST', `/conversations/${id}/commands`, { command: 'true' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.waitForSelector('.note:has-text("exit 0")')
  const links = await page.evaluate<string[][]>(`[...document.querySelectorAll('.row[data-seq]')].map(
    (row) => [row.dataset.seq, row.querySelector(".origin a").hash.split("seq=")[1]])`)
  expect(links).toHaveLength(5)
  for (const [seq, target] of links) expect(target).toBe(seq)
  await page.context().close()
})

test('a long output has forty lines until somebody wants all', async () => {
  const id = await stage.create({ title: 'lines' })
  await stage.say(id, 'lines')
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const card = page.locator('.tool')
  await expect(card.locator('.line').innerText()).resolves.toMatch(/Bash\s+seq 1000 1099/)
  await card.locator('.line').click()
  await page.waitForSelector('pre:has-text("1039")')
  expect(await card.locator('pre').innerText()).not.toContain('1040')
  await card.locator('button:has-text("Show all")').click()
  await page.waitForSelector('pre:has-text("1099")')
  await page.context().close()
})

test('an edit is shown as what it changes, and the conversation is exported as Markdown', async () => {
  const id = await stage.create({ title: 'edited' })
  await stage.say(id, 'edit')
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.locator('.tool .line:has-text("str_replace")').click()
  await page.waitForSelector('.diff .removed:has-text("-two")')
  await page.waitForSelector('.diff .added:has-text("+2")')
  expect(await page.locator('.diff .same').allInnerTexts()).toEqual([expect.stringContaining('one')])
  await goTo(page, `#/c/${id}/settings`)
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Export as Markdown')])
  const text = readFileSync(await download.path(), 'utf8')
  for (const part of ['edited', 'FileEditor', 'Done.']) expect(text).toContain(part)
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('a pair of texts hides no other field of a call', async () => {
  const id = await stage.create({ title: 'decoy' })
  await stage.say(id, 'decoy')
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.locator('.tool .line:has-text("create b.txt")').click()
  const [rest] = await page.locator('.tool .inside pre').allInnerTexts()
  expect(rest).toContain('"file_text": "written"')
  await page.context().close()
})

test('the form for a new conversation has the choices of the last time', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/new' })
  await page.fill('textarea[name=message]', 'hello')
  await page.fill('input[name=model]', 'some-model')
  await page.selectOption('select[name=permission_mode]', 'plan')
  await page.keyboard.press('Escape')
  await page.focus('textarea[name=message]')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.said.user, [role=alert]')
  await goTo(page, '#/')
  await goTo(page, '#/new')
  expect(await page.inputValue('input[name=model]')).toBe('some-model')
  expect(await page.inputValue('select[name=permission_mode]')).toBe('plan')
  await page.context().close()
})

test('files are uploaded by dropping them, and read; a process is seen and ended', async () => {
  const workdir = mkdtempSync(join(tmpdir(), 'everyday-'))
  const id = await stage.create({ workdir })
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  await page.waitForSelector('text=This directory is empty.')
  const data = await page.evaluateHandle(`(() => {
    const data = new DataTransfer()
    data.items.add(new File(['dropped text'], 'dropped.txt'))
    return data
  })()`)
  await page.dispatchEvent('.files', 'drop', { dataTransfer: data })
  await page.waitForSelector('.notice:has-text("1 file uploaded")')
  expect(readFileSync(join(workdir, 'dropped.txt'), 'utf8')).toBe('dropped text')
  // The same file can be chosen again when it has changed.
  await page.setInputFiles('[type=file]', { name: 'chosen.txt', mimeType: 'text/plain', buffer: Buffer.from('first') })
  expect(await page.inputValue('[type=file]')).toBe('')
  await page.waitForSelector('.files button:has-text("chosen.txt")')
  await page.click('.files button:has-text("dropped.txt")')
  await page.waitForSelector('pre:has-text("dropped text")')
  await goTo(page, `#/c/${id}/commands`)
  await page.getByLabel('Command').fill('sleep 599 & echo started')
  await page.keyboard.press('Enter')
  await page.waitForSelector('pre:has-text("started")')
  const line = page.locator('li:has-text("sleep 599")').first()
  await line.locator('button:has-text("End")').click()
  await page.waitForSelector('text=No process runs.')
  expect(misdeeds).toEqual([])
  await page.context().close()
  rmSync(workdir, { recursive: true })
})

test('a key is made, shown once and revoked, and another login is ended', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/server' })
  await page.fill('input[name=name]', 'daily')
  await page.check('input[name=write]')
  await page.click('text=Make a key')
  const key = await page.innerText('code.secret')
  await page.waitForSelector('li:has-text("daily"):has-text("read, write")')
  const other = await openTab(browser, stage.server.url, { key })
  await page.reload()
  await page.waitForSelector('li:has-text("daily")')
  expect(await page.locator('code.secret').count()).toBe(0)
  await page.locator('li:has-text("daily") button:has-text("End")').first().click()
  await other.page.waitForSelector('[name=password]')
  await other.page.fill('[name=password]', key)
  await other.page.click('button[type=submit]')
  await other.page.waitForSelector('nav.places')
  page.removeAllListeners('dialog')
  page.on('dialog', (dialog) => void dialog.accept())
  await page.locator('li:has-text("daily") button:has-text("Revoke")').click()
  await other.page.waitForSelector('[name=password]')
  await other.page.context().close()
  await page.context().close()
})

test('who logs in only to read gets no more than that, and the master key comes with the offer of an API key', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/settings' })
  await page.waitForSelector('text=You are logged in with the master key')
  await page.click('text=Log out')
  const [name, password] = [page.locator('[name=username]'), page.locator('[name=password]')]
  expect(await name.getAttribute('autocomplete')).toBe('username')
  expect(await password.getAttribute('autocomplete')).toBe('current-password')
  await password.fill(KEY)
  await page.check('[name=reader]')
  await page.click('button[type=submit]')
  await page.waitForSelector('nav.places')
  expect(await page.locator('nav.places >> text=New').count()).toBe(0)
  await page.context().close()
})

test('the page speaks German, and single keys can be switched off', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/settings' })
  await page.keyboard.press('?')
  await page.waitForSelector('dialog[open]:has-text("Allow, deny")')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog[open]', { state: 'detached' })
  await page.getByLabel('Single keys').uncheck()
  await page.keyboard.press('?')
  expect(await page.locator('dialog[open]').count()).toBe(0)
  await page.getByLabel('Language').selectOption('de')
  await page.waitForSelector('h1:has-text("Einstellungen")')
  expect(await page.getAttribute('html', 'lang')).toBe('de')
  await page.getByLabel('Aussehen').selectOption('dark')
  expect(await page.getAttribute('html', 'data-look')).toBe('dark')
  await page.reload()
  await page.waitForSelector('h1:has-text("Einstellungen")')
  await page.context().close()
})

test('a tab that is hidden for a minute gives up its connection, and continues after what it has', async () => {
  const id = await stage.create({ title: 'hidden' })
  await stage.say(id, 'hello')
  const { page } = await openTab(browser, stage.server.url)
  await page.clock.install()
  await page.addInitScript(`Object.defineProperty(Document.prototype, 'hidden', { get: () => globalThis.isHidden })`)
  await page.goto('about:blank')
  const opened: WebSocket[] = []
  const closed: string[] = []
  page.on('websocket', (socket) => {
    opened.push(socket)
    socket.on('close', () => closed.push(socket.url()))
  })
  const connected = watchConnection(page)
  await page.goto(`${stage.server.url}/ui/#/c/${id}`)
  await page.waitForSelector('.said strong, .said:has-text("Hello there.")')
  await expect.poll(() => opened.filter((socket) => socket.url().includes(id)).length).toBe(1)
  await connected()
  const setHidden = (isHidden: boolean) =>
    page.evaluate(`globalThis.isHidden = ${isHidden}; document.dispatchEvent(new Event('visibilitychange'))`)
  await setHidden(true)
  // A connection that is silent for 45 seconds is given up, too, and opened again.
  for (const title of ['still', 'still there']) {
    await page.clock.fastForward(20_000)
    expect(closed.filter((url) => url.includes(id))).toEqual([])
    await stage.server.call('PUT', `/conversations/${id}/config`, { title })
    await page.waitForSelector(`h1:text-is("${title}")`)
  }
  await page.clock.fastForward(21_000)
  await expect.poll(() => closed.filter((url) => url.includes(id)).length).toBe(1)
  await stage.say(id, 'hello')
  // The connection to all conversations is there: it says that the agent has finished.
  await page.waitForSelector('.unseen:has-text("The agent: finished")', { state: 'attached' })
  expect(opened.filter((socket) => socket.url().includes(id)).length).toBe(1)
  await setHidden(false)
  await expect.poll(() => page.locator('.said').count()).toBe(4)
  expect(opened.filter((socket) => socket.url().includes(id)).length).toBe(2)
  await page.context().close()
})
