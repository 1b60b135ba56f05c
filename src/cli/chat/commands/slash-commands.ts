/** The slash commands of the chat. `docs/chat.md` lists the same ones. */
import { nearestName } from '../../../contract/nearest-name.ts'
import type { ProjectSettings } from '../../../contract/project/project-settings.ts'
import type { CompletedCommand } from '../input/completion.ts'
import type { ChatCommand, ChatContext } from './command.ts'
import { exportConversation } from './export.ts'
import { copyAnswer, init } from './prompt-text.ts'
import { changeTheme, compact, showCost, showMcp, showModel, showPermissions, showStatus, showTools } from './facts.ts'
import { rewind, showChanges, undo } from './rewinding.ts'
import { THEMES } from '../render/theme.ts'
import { fork, newConversation, rename, resume } from './switching.ts'
import { PermissionMode } from '../../../contract/values/permission.ts'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { cleanLine } from '../state/clean-text.ts'

export const COMMANDS: readonly ChatCommand[] = [
  { name: 'help', description: 'Shows the commands and the keys.', run: ({ session }) => session.say(helpText()) },
  { name: 'new', description: 'Starts a new conversation in the same directory.', run: newConversation },
  { name: 'resume', argument: '[id]', description: 'Continues an earlier conversation.', run: resume },
  { name: 'rename', argument: 'TITLE', description: 'Gives the conversation a title.', run: rename },
  {
    name: 'fork',
    argument: '[title]',
    description: 'Continues in a copy of the conversation, in the same directory.',
    run: fork,
  },
  {
    name: 'diff',
    argument: '[path]',
    description: 'Shows what the last run has changed in the files.',
    run: showChanges,
  },
  {
    name: 'undo',
    argument: '[force]',
    description: 'Takes the last message back, with the files that were changed since.',
    run: undo,
  },
  { name: 'rewind', description: 'Offers the messages to go back to, and shows what would change.', run: rewind },
  {
    name: 'model',
    argument: '[name]',
    description: 'Offers the models of the settings, or changes to another one.',
    run: showModel,
  },
  { name: 'tools', description: 'Lists the tools of the agent.', run: showTools },
  {
    name: 'mcp',
    argument: '[reconnect NAME]',
    description: 'Shows the MCP servers, or connects one again.',
    run: showMcp,
  },
  {
    name: 'compact',
    argument: '[what to keep]',
    description: 'Replaces the conversation so far by a summary for the model.',
    run: compact,
  },
  {
    name: 'permissions',
    argument: '[mode]',
    description: 'Shows the mode and the rules, or changes the mode.',
    values: PermissionMode.options,
    run: showPermissions,
  },
  {
    name: 'add-dir',
    argument: 'DIRECTORY',
    description: 'Lets the agent work in another directory, too.',
    run: addDirectory,
  },
  { name: 'status', description: 'Shows the conversation, the server and the sandbox.', run: showStatus },
  { name: 'cost', description: 'Shows the tokens and the cost by model.', run: showCost },
  { name: 'init', description: 'Asks the agent to write AGENTS.md, the instructions of the project.', run: init },
  { name: 'copy', description: 'Copies the last answer to the clipboard.', run: copyAnswer },
  {
    name: 'export',
    argument: '[file]',
    description: 'Writes the conversation to a file, as Markdown.',
    run: exportConversation,
  },
  { name: 'editor', description: 'Opens the prompt in your editor.', run: ({ openEditor }) => openEditor() },
  {
    name: 'theme',
    argument: '[name]',
    description: 'Shows the colours, or changes them.',
    values: THEMES,
    run: changeTheme,
  },
  {
    name: 'clear',
    description: 'Clears the screen; the conversation continues.',
    run: ({ session }) => session.dispatch({ type: 'Cleared' }),
  },
  { name: 'exit', description: 'Leaves the chat.', run: ({ exit }) => exit() },
]

/** Keys that /help lists. */
export const KEYS: readonly (readonly [key: string, does: string])[] = [
  ['Enter', 'sends the message; while the agent works, it steers it'],
  ['Shift+Enter, Ctrl+J, \\ and Enter', 'begins another line'],
  ['!command', 'runs a command in the shell of the agent, which reads its output'],
  ['Esc', 'interrupts the agent, or a command after !; twice in an empty prompt, it opens /rewind'],
  ['Shift+Tab', 'the next permission mode: default, accept_edits, plan'],
  ['Ctrl+O', 'shows all output of tools and the reasoning, or less of it'],
  ['Up, Down', 'earlier messages, also of earlier chats'],
  ['Alt+Enter', 'sends the message when the run has ended'],
  ['Ctrl+G', 'opens the prompt in your editor'],
  ['Ctrl+R', 'searches the earlier messages'],
  ['Tab', 'completes commands after / and files after @'],
  ['Ctrl+C', 'clears the prompt; twice in an empty prompt, it leaves the chat'],
  ['Ctrl+D', 'leaves the chat'],
  ['Ctrl+Z', 'suspends the chat; fg continues it'],
  ['Ctrl+L', 'draws the screen again'],
]

function helpText(): string {
  const names = COMMANDS.map(({ name, argument = '', description }) => [`/${name} ${argument}`.trimEnd(), description])
  const rows = [...names, ...KEYS].map(([name = '', right = '']) => `  ${name.padEnd(24)} ${right}`)
  return ['Commands and keys:', ...rows, 'Slash commands and skills of the project are completed after /, too.'].join(
    '\n',
  )
}

/** Returns the commands of the chat and of the project. */
export function allCommands(project: ProjectSettings | undefined): CompletedCommand[] {
  const ours = new Set(COMMANDS.map(({ name }) => name))
  const theirs = [...(project?.commands ?? []), ...(project?.skills ?? [])].filter(({ name }) => !ours.has(name))
  return [
    ...COMMANDS.map(({ name, description, values }) => ({ name, description, ...(values && { values }) })),
    ...theirs.map(({ name, description }) => ({ name, description })),
  ]
}

export type TypedCommand =
  | { readonly command: ChatCommand; readonly argument: string }
  | { readonly unknown: string; readonly nearest: string | undefined }

/** Returns undefined for a message to the agent: an ordinary text, a command of the project, or a path. */
export function readCommand(text: string, knownCommands: readonly CompletedCommand[]): TypedCommand | undefined {
  const [match = '', name] = /^\/([\w:.-]+)(?=\s|$)/.exec(text) ?? []
  if (name === undefined) return undefined
  const command = COMMANDS.find((each) => each.name === name)
  if (command) return { command, argument: text.slice(match.length).trim() }
  const names = knownCommands.map((entry) => entry.name)
  // The server also finds `/push` for a command that is named `git:push`.
  if (names.some((each) => each === name || each.endsWith(`:${name}`))) return undefined
  return { unknown: name, nearest: nearestName(name, names) }
}

/** Throws if it is not a directory that the server allows, or while the agent works. */
async function addDirectory({ session, options }: ChatContext, path: string): Promise<void> {
  if (path === '') throw new Error('Give the directory: /add-dir DIRECTORY.')
  const { workdir, additional_directories: former = [] } = await session.conversation.get()
  const isHere = options.server === undefined
  const directory = isHere ? resolve(workdir, path.replace(/^~(?=\/|$)/, homedir)) : path
  const newView = await session.conversation.updateConfig({ additional_directories: [...former, directory] })
  session.say(`The agent works in ${(newView.additional_directories ?? []).map(cleanLine).join(', ')}, too.`)
}
