/** Every option of the command line: its form, and its description for help and completion. */
import type {
  SettingFlagName,
  SettingListName,
  SettingOption,
  SettingTextName,
} from '../../contract/setting-options.ts'
import { OPTION_SETTINGS, SETTING_OPTIONS } from '../../contract/setting-options.ts'

type Option = {
  readonly type: 'boolean' | 'string'
  readonly short?: string
  /** Can be given more than once. */
  readonly multiple?: true
  /** What stands for the value in help. */
  readonly value?: string
  readonly choices?: readonly string[]
  /** The shell completes names of these. */
  readonly completes?: 'files' | 'directories'
  /** An empty text is a value. */
  readonly mayBeEmpty?: true
  readonly about: string
}

const flag = (about: string, short?: string) =>
  ({ type: 'boolean', about, ...(short !== undefined && { short }) }) as const
const text = (value: string, about: string) => ({ type: 'string', value, about }) as const
const oneOf = <const C extends readonly string[]>(choices: C, about: string) =>
  ({ type: 'string', value: choices.join('|'), choices, about }) as const

const MULTIPLE = { multiple: true } as const

/** The options that are settings of the conversation. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names of the table
const OF_SETTINGS = Object.fromEntries(
  OPTION_SETTINGS.map((setting) => {
    const { name, form, value = '', about }: SettingOption = SETTING_OPTIONS[setting]
    const option = form === 'flag' ? flag(about) : text(value, about)
    return [name, { ...option, ...(form === 'names' && { mayBeEmpty: true }), ...(form === 'texts' && MULTIPLE) }]
  }),
) as Record<SettingTextName, ReturnType<typeof text> & { readonly mayBeEmpty?: true }> &
  Record<SettingListName, ReturnType<typeof text> & typeof MULTIPLE> &
  Record<SettingFlagName, ReturnType<typeof flag>>

export const OPTIONS = {
  host: text('ADDRESS', 'Listen on this address.'),
  port: text('PORT', 'Listen on this port; 0 takes a free one.'),
  from: { ...text('DIRECTORY', 'The data directory to copy into the database.'), completes: 'directories' },
  to: { ...text('DIRECTORY', 'The data directory to copy the database into.'), completes: 'directories' },
  'log-format': oneOf(['json', 'pretty'], 'How log lines look.'),
  'generate-key': flag('Make a master key at first use and keep it in the data directory.'),
  'scripted-model': flag('Add a stand-in for a model.'),
  'stop-with-stdin': flag('Stop when standard input ends, as with the program that has started this one.'),
  'no-tui': flag('Do not start the interactive chat: print the answer and exit.'),
  print: flag('The same as --no-tui.', 'p'),
  'output-format': oneOf(['text', 'json', 'stream-json'], 'What is printed without the chat. Default: text.'),
  'input-format': oneOf(['text', 'stream-json'], 'What stdin contains without the chat. Default: text.'),
  'include-partial-messages': flag('With stream-json, also print what the model is writing.'),
  ask: oneOf(
    ['nobody', 'stdin', 'clients'],
    'Where approvals and answers come from without the chat. Default: nobody.',
  ),
  autoresume: flag('Continue the conversation of this directory with the latest event.', 'c'),
  all: flag('With --autoresume, look in every directory.'),
  resume: { ...text('ID', 'Continue this conversation. With -p the prompt can be left out.'), short: 'r' },
  settings: {
    ...text('FILE', 'Read settings from this file. Default: ~/.openhands/settings_sdk.json.'),
    completes: 'files',
  },
  model: { ...text('NAME', 'The model. Environment: LLM_MODEL.'), short: 'm' },
  'api-key': text('KEY', 'The key. Other users of this machine can see it: prefer the environment.'),
  'base-url': text('URL', 'The endpoint of the model. Environment: LLM_BASE_URL.'),
  effort: text('LEVEL', 'How much the model reasons: none, minimal, low, medium, high, xhigh or max.'),
  'fallback-model': {
    ...text('NAME', 'Ask this model of the same endpoint while the other one is overloaded. Can be repeated.'),
    multiple: true,
  },
  'tool-choice': oneOf(
    ['auto', 'required', 'none'],
    'Whether the model calls tools; required holds for its first turn.',
  ),
  'permission-mode': oneOf(
    ['default', 'accept_edits', 'plan', 'bypass', 'deny', 'callback', 'prompt'],
    'Which tool calls need an approval. Default: default.',
  ),
  'allowed-tools': {
    ...text('RULES', "Allow calls, such as 'Edit, Bash(git status:*)'. Can be repeated."),
    multiple: true,
  },
  'home-readable': {
    ...text('PATH', 'Let the sandbox read this file or directory of your home, such as ~/.npmrc. Can be repeated.'),
    multiple: true,
    completes: 'files',
  },
  'ssh-agent': flag('Let commands of agents use the ssh agent of SSH_AUTH_SOCK, and read known_hosts.'),
  'package-cache': flag('Share downloads of npm, pip and cargo between your conversations in this directory.'),
  'disallowed-tools': {
    ...text('RULES', "Deny calls, such as 'Bash(git push:*)'. Can be repeated."),
    multiple: true,
  },
  'system-prompt': text('TEXT', 'Replace the system prompt.'),
  'append-system-prompt': text('TEXT', 'Add this to the system prompt.'),
  ...OF_SETTINGS,
  ephemeral: flag('Delete the conversation at the end.'),
  image: {
    ...text('FILE', 'An image for the prompt. Can be repeated.'),
    short: 'i',
    multiple: true,
    completes: 'files',
  },
  'output-last-message': {
    ...text('FILE', 'Also write the last answer to this file.'),
    short: 'o',
    completes: 'files',
  },
  'session-id': text('UUID', 'The id of the new conversation.'),
  'fork-session': flag('Continue in a copy of the conversation that is resumed.'),
  rewind: text('SEQ', 'Take the resumed conversation and its files back to this event, or to before this message id.'),
  'dry-run': flag('With --rewind, only print what would change.'),
  force: flag('With --rewind, also replace files that somebody else has changed since.'),
  'max-steps': text('NUMBER', 'Stop a run after this number of model answers.'),
  cwd: {
    ...text('DIRECTORY', 'Where the agent works. Default: the current directory; for sessions: every one.'),
    completes: 'directories',
  },
  'add-dir': {
    ...text('DIRECTORY', 'Another directory that the agent works in. Can be repeated.'),
    multiple: true,
    completes: 'directories',
  },
  'mcp-config': { ...text('FILE', 'Add the MCP servers of this file, in the form of .mcp.json.'), completes: 'files' },
  server: text('URL', 'Ask this server instead of the agents of this machine.'),
  'set-up': flag('Ask for a model and its key on this terminal, and end.'),
  json: flag('Print JSON, one object per line.'),
  limit: text('NUMBER', 'Print at most this number. Default: 20.'),
  search: text('TEXT', 'Only conversations with this text in the title or the first message.'),
  'older-than': text('AGE', 'Without an event for this time, such as 30d, 12h or 4w.'),
  version: flag('Print the version.', 'v'),
  help: flag('Print this help.', 'h'),
} as const satisfies Record<string, Option>

export type OptionName = keyof typeof OPTIONS

/** Returns the option with all fields, for those who iterate over the options. */
export const optionNamed = (name: OptionName): Option => OPTIONS[name]

export const isOptionName = (name: string): name is OptionName => Object.hasOwn(OPTIONS, name)
