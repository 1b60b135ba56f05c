/** The link that `agent-server dashboard` prints: it logs a browser in once, and opens where there is a desktop. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { runCommand } from '../support/command.ts'
import { KEY } from '../support/server.ts'
import { newContext } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

test.each([
  ['opens', { DISPLAY: ':0' }, true],
  ['without a desktop does not open', {}, false],
  [
    'for the desktop of another computer does not open',
    { DISPLAY: ':10', SSH_CONNECTION: '203.0.113.9 1 127.0.0.1 22' },
    false,
  ],
])('the command %s the link', async (_, variables, isOpened) => {
  const folder = mkdtempSync(join(tmpdir(), 'desktop-'))
  const program = `#!/bin/sh\nprintf '%s' "$1" > ${folder}/part && mv ${folder}/part ${folder}/opened\n`
  for (const name of ['xdg-open', 'open']) writeFileSync(join(folder, name), program, { mode: 0o755 })
  const settings = { OPENHANDS_MASTER_KEY: KEY, HOME: stage.server.home, PATH: `${folder}:${process.env['PATH']}` }
  const { stdout } = await runCommand(['dashboard', '--server', stage.server.url], {
    env: { ...settings, ...variables },
  })
  const opened = () => (existsSync(join(folder, 'opened')) ? readFileSync(join(folder, 'opened'), 'utf8') : undefined)
  if (isOpened) await expect.poll(opened).toBe(stdout.trim())
  else expect(opened()).toBeUndefined()
  rmSync(folder, { recursive: true })
})

test('a one-time code in a link logs in once', async () => {
  const settings = { OPENHANDS_MASTER_KEY: KEY, HOME: stage.server.home }
  const printed = await runCommand(['dashboard', '--server', stage.server.url], { env: settings })
  const link = printed.stdout.trim()
  expect(link, printed.stderr).toMatch(/\/ui\/#login=asc_/)
  const context = await newContext(browser)
  const page = await context.newPage()
  await page.goto(link)
  await page.waitForSelector('nav.places')
  expect(page.url()).not.toContain('asc_')
  const other = await (await newContext(browser)).newPage()
  await other.goto(link)
  await other.waitForSelector('[role=alert]')
  await other.context().close()
  await context.close()
})
