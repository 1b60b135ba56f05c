/** Commands that show facts of the conversation, and those that change its configuration. */
import { PermissionMode } from '../../../contract/values/permission.ts'
import { describeWeakMode } from '../../conversation/refuse-resume.ts'
import { THEMES } from '../render/theme.ts'
import { cleanLine, cleanText } from '../state/clean-text.ts'
import { costOf, countOf } from '../render/status-line.ts'
import type { ChatContext } from './command.ts'

export async function showModel({ session, options, pick }: ChatContext, name: string): Promise<void> {
  if (name !== '') return await changeModel(session, name)
  const { llm_config, usage } = await session.conversation.get()
  const { model: current = 'not set', base_url, fallback_models = [] } = llm_config
  const knownModels = new Set([current, ...(options.settings.models ?? []), ...fallback_models, ...Object.keys(usage)])
  const at = base_url === undefined ? '' : ` at ${base_url}`
  if (knownModels.size === 1) return session.say(`The model is ${current}${at}. /model NAME changes it.`)
  const names = [...knownModels]
  pick({
    title: 'Which model?',
    text: cleanText(`The model is ${current}${at}.`),
    options: names.map((each) => ({ label: cleanLine(each), description: '' })),
    isMultiple: false,
    hint: 'Enter or a number chooses it; Esc closes the list; /model NAME takes any other',
    onChoose: ([index = 0]) => void changeModel(session, names[index] ?? current).catch((error) => session.fail(error)),
  })
}

async function changeModel(session: ChatContext['session'], model: string): Promise<void> {
  // The event of the change says it.
  const isSame = session.state.model === model
  session.names.set('llm_config.model', '/model')
  await session.conversation.updateConfig({ llm_config: { model } })
  if (isSame) session.say(`The model is ${model}.`)
}

export async function showTools({ session }: ChatContext): Promise<void> {
  const { tools, mcp_servers } = await session.conversation.agentInfo()
  const rows = tools.map(({ name, description }) => `  ${name}: ${description.split('\n', 1)[0] ?? ''}`)
  const servers = mcp_servers.map(({ name, status, error = '' }) =>
    `  MCP server ${name}: ${status} ${error}`.trimEnd(),
  )
  session.say([`${tools.length} tools:`, ...rows, ...servers].join('\n'))
}

export async function showMcp({ session }: ChatContext, argument: string): Promise<void> {
  const { mcp } = session.conversation
  const [, name] = /^reconnect\s+(\S+)$/.exec(argument) ?? []
  if (argument !== '' && name === undefined) throw new Error('Write /mcp, or /mcp reconnect NAME.')
  if (name !== undefined) await mcp.reconnect(name)
  const { items } = await mcp.list()
  const rows = items.flatMap(({ name: each, transport, status, tools, error, authorization_url: url }) => [
    `  ${each} (${transport}): ${status}, ${tools.length} tools`,
    ...[error, url && `authorize it at ${url}`].flatMap((line) => (line ? [`    ${line}`] : [])),
  ])
  session.say(rows.length > 0 ? ['MCP servers:', ...rows].join('\n') : 'There are no MCP servers.')
}

export function changeTheme({ session, setTheme, options }: ChatContext, name: string): void {
  const theme = THEMES.find((each) => each === name)
  if (name !== '' && theme === undefined) throw new Error(`There is no theme ${name}; use ${THEMES.join(', ')}.`)
  if (theme !== undefined) setTheme(theme)
  const current = options.settings.theme ?? 'default'
  session.say(
    theme === undefined
      ? `The chat begins with the theme ${current}; /theme NAME changes it: ${THEMES.join(', ')}.`
      : `The theme is ${theme}, in this chat. chat.theme of the settings file sets it for each.`,
  )
}

export async function compact({ session }: ChatContext, instructions: string): Promise<void> {
  session.say('Compacting the conversation …')
  await session.conversation.compact(instructions === '' ? {} : { instructions })
}

export async function showPermissions({ session }: ChatContext, mode: string): Promise<void> {
  const { conversation } = session
  if (mode !== '') session.names.set('permission_mode', '/permissions')
  if (mode !== '') await conversation.updateConfig({ permission_mode: PermissionMode.parse(modeNamed(mode)) })
  const { state } = await conversation.get()
  const { allow, ask, deny, project } = await conversation.permissionRules.get()
  const rules = { allow, ask, deny }
  const rows = Object.entries(rules).map(([kind, list]) => `  ${kind}: ${list.join(', ') || 'no rules'}`)
  const more =
    project && Object.entries(project).map(([kind, list]) => `  ${kind} (project): ${list.join(', ') || 'no rules'}`)
  const confirms = state.confirmation_mode ? ', and every call needs a decision' : ''
  session.say([`The permission mode is ${state.permission_mode}${confirms}.`, ...rows, ...(more ?? [])].join('\n'))
  const weak = mode === '' ? undefined : describeWeakMode(state.permission_mode)
  if (weak !== undefined) session.dispatch({ type: 'Notice', tone: 'warning', text: `Warning: ${weak}` })
}

/** The modes that Shift+Tab goes through. `bypass` is not among them: it is chosen by its name. */
const CYCLE: readonly PermissionMode[] = ['default', 'accept_edits', 'plan']

export async function nextMode({ conversation, state }: ChatContext['session']): Promise<void> {
  const at = CYCLE.findIndex((mode) => mode === state.mode)
  await conversation.updateConfig({ permission_mode: CYCLE[(at + 1) % CYCLE.length] ?? 'default' })
}

/** Throws a sentence with the names of the modes. */
function modeNamed(mode: string): string {
  const names: readonly string[] = PermissionMode.options
  if (names.includes(mode)) return mode
  throw new Error(`There is no permission mode ${mode}; use ${names.join(', ')}.`)
}

export async function showStatus({ session, options }: ChatContext): Promise<void> {
  const [view, agent] = await Promise.all([session.conversation.get(), session.conversation.agentInfo()])
  const { info, server } = options
  const rows = [
    ['Conversation', view.id],
    ['Title', cleanLine(session.state.title)],
    ['Status', view.status],
    ['Directory', [view.workdir, ...(view.additional_directories ?? [])].join(', ')],
    ['Model', agent.model],
    ['Permissions', view.state.permission_mode],
    ['Sandbox', sandboxText(info.isolation)],
    ['Network', agent.network.mode],
    ['Server', `${server ?? 'on this machine'}, agent-server ${info.version}`],
    ['MCP servers', agent.mcp_servers.map(({ name, status }) => `${name} (${status})`).join(', ') || 'none'],
  ]
  session.say(rows.map(([name = '', value = '']) => `  ${name.padEnd(12)} ${value}`).join('\n'))
}

export const sandboxText = (isolation: 'bubblewrap' | 'none'): string =>
  isolation === 'none'
    ? 'none: commands run on the host, as the user of the server'
    : 'commands run in a sandbox (bubblewrap)'

export async function showCost({ session }: ChatContext): Promise<void> {
  const { usage, cost_usd } = await session.conversation.get()
  const rows = Object.entries(usage).map(
    ([model, { input_tokens, output_tokens, cached_tokens }]) =>
      `  ${model}: ${countOf(input_tokens)} input tokens (${countOf(cached_tokens)} from the cache), ${countOf(output_tokens)} output tokens`,
  )
  const cost =
    cost_usd === undefined ? 'The cost is not known: the model has no price.' : `The cost is ${costOf(cost_usd)}.`
  session.say([...(rows.length > 0 ? rows : ['  No tokens yet.']), cost].join('\n'))
}
