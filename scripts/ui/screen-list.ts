/** The screens and states of the dashboard of which pictures are taken, each with what makes the state. */
import type { Page } from 'playwright-core'
import type { StageIds } from './screen-stage.ts'

export type Screen = {
  readonly name: string
  readonly hash: string
  /** What makes the state, once the screen is shown. */
  readonly act?: (page: Page) => Promise<unknown>
}

export const screensOf = (ids: StageIds): Screen[] => [
  ...inboxScreens(),
  ...listScreens(),
  ...chatScreens(ids),
  ...tabScreens(ids),
  ...otherScreens(),
]

/** Screens in German, whose words are longer. */
export const germanScreensOf = ({ done }: StageIds): Screen[] => [
  { name: 'german-inbox', hash: '#/' },
  { name: 'german-conversations', hash: '#/conversations' },
  { name: 'german-chat', hash: `#/c/${done}` },
  { name: 'german-timeline', hash: `#/c/${done}/timeline` },
  { name: 'german-conversation-settings', hash: `#/c/${done}/settings` },
  { name: 'german-costs', hash: '#/costs' },
  { name: 'german-webhooks', hash: '#/webhooks' },
  { name: 'german-server', hash: '#/server' },
  { name: 'german-preferences', hash: '#/settings' },
]

/** Screens of a login that may only read. */
export const readerScreensOf = ({ permission, question, done }: StageIds): Screen[] => [
  { name: 'reader', hash: '#/' },
  { name: 'reader-conversations', hash: '#/conversations' },
  { name: 'reader-waiting', hash: `#/c/${permission}` },
  { name: 'reader-question', hash: `#/c/${question}` },
  { name: 'reader-settings', hash: `#/c/${done}/settings` },
  { name: 'reader-server', hash: '#/server' },
]

/** Requests of the page that never end, fail, or find nothing. */
const hang = (pattern: string) => async (page: Page) => {
  await page.route(pattern, () => {})
  await page.reload()
}
const fail = (pattern: string) => async (page: Page) => {
  const body = { error: 'storage_failed', message: 'The disk is full. Free some space, and try again.' }
  await page.route(pattern, (route) => route.fulfill({ status: 507, json: body }))
  await page.reload()
}
const answerEmpty = (pattern: string) => async (page: Page) => {
  await page.route(pattern, (route) => route.fulfill({ json: { items: [], count: 0, next_page_id: null } }))
  await page.reload()
}
const answerOne = (pattern: string) => async (page: Page) => {
  await page.route(pattern, async (route) => {
    const response = await route.fetch()
    const { items } = (await response.json()) as { items: unknown[] }
    await route.fulfill({ response, json: { items: items.slice(0, 1), next_page_id: null } })
  })
  await page.reload()
}
const click = (selector: string) => (page: Page) => page.click(selector)
const press = (key: string) => (page: Page) => page.keyboard.press(key)
const fill = (selector: string, text: string) => (page: Page) => page.fill(selector, text)
const open = async (page: Page) => {
  await page.evaluate(`document.querySelectorAll('.tool [aria-expanded=false]').forEach((line) => line.click())`)
}

const inboxScreens = (): Screen[] => [
  { name: 'inbox', hash: '#/' },
  { name: 'inbox-one', hash: '#/', act: answerOne('**/requests?*') },
  { name: 'inbox-empty', hash: '#/', act: answerEmpty('**/requests?*') },
  { name: 'inbox-loading', hash: '#/', act: hang('**/requests?*') },
  { name: 'inbox-failed', hash: '#/', act: fail('**/conversations/summaries?*') },
  { name: 'inbox-focus', hash: '#/', act: press('n') },
]

const listScreens = (): Screen[] => [
  { name: 'conversations', hash: '#/conversations' },
  { name: 'conversations-filtered', hash: '#/conversations', act: click('.filters button:has-text("failed")') },
  { name: 'conversations-selected', hash: '#/conversations', act: click('.selectable input >> nth=1') },
  {
    name: 'conversations-found',
    hash: '#/conversations',
    act: async (page) => {
      await page.fill('[data-search]', 'total')
      await page.waitForSelector('[data-found]')
    },
  },
  { name: 'conversations-none', hash: '#/conversations', act: fill('[data-search]', 'zzz') },
  { name: 'conversations-archived', hash: '#/conversations?archived=true' },
  { name: 'conversations-empty', hash: '#/conversations', act: answerEmpty('**/conversations/{summaries,count}?*') },
  { name: 'conversations-failed', hash: '#/conversations', act: fail('**/conversations/summaries?*') },
  { name: 'conversations-loading', hash: '#/conversations', act: hang('**/conversations/summaries?*') },
]

const chatScreens = ({ done, running, permission, question, failed, empty, long }: StageIds): Screen[] => [
  { name: 'chat', hash: `#/c/${done}` },
  { name: 'chat-open', hash: `#/c/${done}`, act: open },
  { name: 'chat-plan', hash: `#/c/${done}`, act: click('.plan summary') },
  { name: 'chat-more', hash: `#/c/${done}`, act: click('.more summary >> nth=-1') },
  { name: 'chat-above', hash: `#/c/${long}`, act: (page) => page.locator('.row').first().scrollIntoViewIfNeeded() },
  { name: 'chat-running', hash: `#/c/${running}` },
  { name: 'chat-waiting', hash: `#/c/${permission}` },
  { name: 'chat-question', hash: `#/c/${question}` },
  { name: 'chat-failed', hash: `#/c/${failed}` },
  { name: 'chat-empty', hash: `#/c/${empty}` },
  { name: 'chat-long', hash: `#/c/${long}` },
  { name: 'chat-loading', hash: `#/c/${done}`, act: hang('**/events?*') },
  { name: 'chat-unread', hash: `#/c/${done}`, act: fail('**/events?*') },
  { name: 'chat-deleted', hash: '#/c/0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1' },
]

const tabScreens = ({ done, running, empty, servers }: StageIds): Screen[] => [
  { name: 'changes', hash: `#/c/${done}/changes` },
  { name: 'changes-comment', hash: `#/c/${done}/changes`, act: click('button.line-number >> nth=2') },
  { name: 'changes-none', hash: `#/c/${done}/changes`, act: answerEmpty('**/git/*?*') },
  { name: 'changes-unknown', hash: `#/c/${empty}/changes` },
  { name: 'files', hash: `#/c/${done}/files` },
  { name: 'file', hash: `#/c/${done}/files`, act: click('.files button:has-text("total.sh")') },
  { name: 'files-none', hash: `#/c/${done}/files`, act: fill('[type=search]', 'zzz') },
  { name: 'files-empty', hash: `#/c/${empty}/files` },
  { name: 'commands', hash: `#/c/${done}/commands` },
  { name: 'commands-running', hash: `#/c/${running}/commands` },
  { name: 'commands-empty', hash: `#/c/${empty}/commands` },
  { name: 'timeline', hash: `#/c/${done}/timeline` },
  { name: 'timeline-range', hash: `#/c/${done}/timeline`, act: fill('input[type=range] >> nth=0', '60') },
  { name: 'timeline-failed', hash: `#/c/${done}/timeline`, act: click('.bar [type=checkbox]') },
  { name: 'timeline-empty', hash: `#/c/${empty}/timeline` },
  { name: 'conversation-settings', hash: `#/c/${done}/settings` },
  {
    name: 'mcp',
    hash: `#/c/${servers}/settings`,
    act: (page) => page.locator('.entry').last().scrollIntoViewIfNeeded(),
  },
]

const otherScreens = (): Screen[] => [
  { name: 'new', hash: '#/new' },
  {
    name: 'new-failed',
    hash: '#/new',
    act: async (page) => {
      await page.fill('[name=message]', 'Write a script that adds up the second column of a CSV file.')
      await page.fill('[name=workdir]', '/nowhere')
      await page.click('[type=submit]')
    },
  },
  { name: 'costs', hash: '#/costs' },
  { name: 'costs-table', hash: '#/costs', act: click('summary') },
  { name: 'costs-today', hash: '#/costs', act: (page) => page.selectOption('select >> nth=0', '1') },
  { name: 'costs-failed', hash: '#/costs', act: fail('**/usage?*') },
  {
    name: 'costs-empty',
    hash: '#/costs',
    act: async (page) => {
      const total = { answers: 0, unpriced: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0 }
      await page.route('**/usage?*', (route) => route.fulfill({ json: { items: [], total } }))
      await page.reload()
    },
  },
  { name: 'webhooks', hash: '#/webhooks' },
  { name: 'webhooks-empty', hash: '#/webhooks', act: answerEmpty('**/callbacks?*') },
  { name: 'server', hash: '#/server' },
  { name: 'server-limits', hash: '#/server', act: click('summary') },
  {
    name: 'server-key',
    hash: '#/server',
    act: async (page) => {
      await page.fill('[name=name]', 'daily')
      await page.click('form [type=submit]')
    },
  },
  { name: 'preferences', hash: '#/settings' },
  { name: 'palette', hash: '#/conversations', act: press('Control+k') },
  {
    name: 'palette-none',
    hash: '#/conversations',
    act: async (page) => {
      await page.keyboard.press('Control+k')
      await page.keyboard.type('zzz')
    },
  },
  { name: 'keys', hash: '#/conversations', act: press('?') },
  {
    name: 'notice-undo',
    hash: '#/conversations',
    act: async (page) => {
      await page.click('.selectable input >> nth=-1')
      await page.click('button:has-text("Archive") >> nth=-1')
    },
  },
  { name: 'notice', hash: '#/server', act: click('text=Pause all agents') },
]
