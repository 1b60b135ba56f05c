/** The MCP servers of a conversation in its settings: each state, and what a person can do about it. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OauthServer } from '../mcp/children/oauth-server.ts'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'
import { accessibilityFaults, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')
const ODD_SERVER = join(CHILDREN, 'odd-server.ts')
/** It starts when there is a file `ready`. */
const LATE_SERVER = `test -e ready || { printf '<img src=x>'; exit 1; } >&2; exec "$@"`
/** It fails twice in the same way, the second time when there is a file `again`. */
const FAILING_SERVER = `if test -e tried; then until test -e again; do sleep 0.05; done; fi; touch tried; echo same >&2; exit 1`

let browser: Browser
let stage: Stage
let oauth: OauthServer
let workdir: string
beforeAll(async () => {
  workdir = mkdtempSync(join(tmpdir(), 'mcp-servers-'))
  browser = await openBrowser()
  oauth = await OauthServer.start()
  stage = await setStage(
    { replies: [{ turns: [{ text: 'Done.' }] }] },
    {
      env: {
        OPENHANDS_MCP_ALLOW: '127.0.0.1',
        OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':'),
      },
    },
  )
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
  await oauth[Symbol.asyncDispose]()
  rmSync(workdir, { recursive: true })
})

const create = () =>
  stage.create({
    title: 'with servers',
    workdir,
    mcp: {
      mcpServers: {
        late: { command: 'bash', args: ['-c', LATE_SERVER, 'late', process.execPath, ODD_SERVER] },
        safe: { url: oauth.mcpUrl('plain') },
      },
    },
  })

const server = (page: Page, name: string) =>
  page.locator('li').filter({ has: page.locator(`strong:text-is("${name}")`) })

test('the servers of a conversation are shown as they are, connect again, and are authorized', async () => {
  const id = await create()
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/settings` })
  for (const name of ['late', 'safe']) await server(page, name).locator('text=starts with the first run').waitFor()
  // The page follows what becomes of them.
  await stage.say(id, 'hello')
  await server(page, 'late').locator('.status:has-text("failed")').waitFor()
  await server(page, 'late').locator('.fault:has-text("<img src=x>")').waitFor()
  await server(page, 'safe').locator('.status:has-text("needs an authorization")').waitFor()
  expect(await accessibilityFaults(page)).toEqual([])

  const link = server(page, 'safe').locator('a:has-text("Authorize")')
  expect(await link.getAttribute('rel')).toBe('noopener noreferrer')
  // The user of this browser agrees, and comes back with a code.
  const agreed = await fetch((await link.getAttribute('href')) ?? '', { redirect: 'manual' })
  await fetch(agreed.headers.get('location') ?? '')
  await server(page, 'safe').locator('.status:has-text("connected")').waitFor()
  expect(await link.count()).toBe(0)

  writeFileSync(join(workdir, 'ready'), '')
  await server(page, 'late').locator('button:has-text("Reconnect")').click()
  await server(page, 'late').locator('.status:has-text("connected")').waitFor()
  expect(await server(page, 'late').locator('.fault').count()).toBe(0)
  await server(page, 'late').locator('summary:has-text("10 tools")').click()
  await server(page, 'late').locator('code:text-is("mcp__late__echo")').waitFor()
  expect(await accessibilityFaults(page)).toEqual([])
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('a server that fails again as before is not shown as one that still connects', async () => {
  const failingServer = { command: 'bash', args: ['-c', FAILING_SERVER] }
  const id = await stage.create({ title: 'failing', workdir, mcp: { mcpServers: { failing: failingServer } } })
  await stage.say(id, 'hello')
  await until('the second attempt', async () => {
    const { body } = await stage.server.call('GET', `/conversations/${id}/mcp`)
    return existsSync(join(workdir, 'tried')) && body.items[0].status === 'connecting'
  })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/settings` })
  await server(page, 'failing').locator('.status:has-text("connecting")').waitFor()
  writeFileSync(join(workdir, 'again'), '')
  await server(page, 'failing').locator('.status:has-text("failed")').waitFor()
  expect(await server(page, 'failing').locator('.fault').innerText()).toContain('same')
  await page.context().close()
})

test('a key that may only read sees the servers, and cannot connect them', async () => {
  const id = await create()
  const { body } = await stage.server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const { page } = await openTab(browser, stage.server.url, { key: body.key, hash: `#/c/${id}/settings` })
  await server(page, 'late').waitFor()
  expect(await page.locator('button:has-text("Reconnect")').count()).toBe(0)
  await page.context().close()
})
