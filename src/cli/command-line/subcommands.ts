/** Every command: how it is written, what it does, and its options. Help, completion and the reader follow this table. */
import { OPTION_SETTINGS, SETTING_OPTIONS } from '../../contract/setting-options.ts'
import type { OptionName } from './options.ts'

export type CommandForm = {
  /** The command lines, without the name of the program. */
  readonly usage: readonly string[]
  /** One line. */
  readonly about: string
  /** Further paragraphs of its help. */
  readonly details?: readonly string[]
  /** The options in addition to `--version` and `--help`. */
  readonly options: readonly OptionName[]
  /** The words that can follow its name, if only these can. */
  readonly words?: readonly string[]
}

const MODEL_OPTIONS = ['model', 'base-url', 'effort', 'fallback-model', 'tool-choice'] as const
const RUN_OPTIONS: readonly OptionName[] = [
  'no-tui',
  'print',
  'output-format',
  'input-format',
  'include-partial-messages',
  'ask',
  'autoresume',
  'all',
  'resume',
  'fork-session',
  'rewind',
  'dry-run',
  'force',
  'session-id',
  'ephemeral',
  'image',
  'output-last-message',
  'settings',
  'api-key',
  ...MODEL_OPTIONS,
  'permission-mode',
  'allowed-tools',
  'disallowed-tools',
  'system-prompt',
  'append-system-prompt',
  ...OPTION_SETTINGS.map((setting) => SETTING_OPTIONS[setting].name),
  'max-steps',
  'cwd',
  'add-dir',
  'mcp-config',
]

/** The options of a conversation that an editor begins, in a directory that it names. */
const EDITOR_OPTIONS: readonly OptionName[] = [
  'settings',
  'api-key',
  ...MODEL_OPTIONS.filter((name) => name !== 'tool-choice'),
  'permission-mode',
  'allowed-tools',
  'disallowed-tools',
  'append-system-prompt',
  ...OPTION_SETTINGS.map((setting) => SETTING_OPTIONS[setting].name),
  'mcp-config',
]

/** The home is that of this machine. */
const HOME_OPTIONS = ['home-readable', 'ssh-agent', 'package-cache'] as const

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type CompletedShell = (typeof SHELLS)[number]

export const SNIPPETS = ['zed', 'claude', 'codex', 'openwebui', 'usechat', 'curl'] as const
export type SnippetName = (typeof SNIPPETS)[number]

export const SESSION_ACTIONS = ['list', 'show', 'export', 'rename', 'delete', 'prune'] as const
export type SessionAction = (typeof SESSION_ACTIONS)[number]

const EXIT_CODES =
  'Exit codes without the chat: 0 done; 1 error; 2 wrong use; 3 stopped by a limit, or a call was denied because nobody could approve it; 130 interrupted.'

export const COMMANDS = {
  chat: {
    usage: ['[chat] [OPTIONS] [PROMPT]', '-p [OPTIONS] [PROMPT]'],
    about: 'Talks with an agent in the current directory; the default on a terminal.',
    details: [
      'With -p or --no-tui it does not start the interactive chat: the prompt is the argument, or stdin. The answer is printed on stdout, and what the agent does on stderr. With --resume or --autoresume, and neither an argument nor text on stdin, the conversation continues where it stopped: what waits is asked again.',
      'Options take precedence over the environment (LLM_MODEL, LLM_API_KEY, LLM_BASE_URL), and that over the settings file, a JSON object with model, api_key, base_url, temperature, reasoning_effort, mcp and sandbox.',
      EXIT_CODES,
    ],
    options: [...RUN_OPTIONS, ...HOME_OPTIONS],
  },
  connect: {
    usage: ['connect URL [OPTIONS] [PROMPT]'],
    about: 'The same with the agents of a remote server.',
    details: [
      'The key of the server is --api-key, OPENHANDS_MASTER_KEY, or asked for on a terminal. Models are those of the server: LLM_* variables and the default settings file are not read. --cwd is a directory of the server.',
      EXIT_CODES,
    ],
    options: RUN_OPTIONS,
  },
  sessions: {
    usage: [
      'sessions list [--search TEXT] [--label TEXT] [--cwd DIRECTORY]',
      'sessions show|export|delete ID',
      'sessions rename ID TITLE',
      'sessions prune --older-than AGE [--label TEXT] [--cwd DIRECTORY]',
    ],
    about: 'Lists, shows, exports, renames and deletes conversations.',
    details: [
      'export prints every event as a line of JSON. delete also removes the working directory if the server created it. An ID can be shortened to its beginning or its end, as long as it is unique. prune deletes all conversations without an event for a time, except those that work, wait for an answer or are open in a chat.',
    ],
    options: ['limit', 'search', 'label', 'cwd', 'older-than', 'json', 'server', 'api-key'],
    words: SESSION_ACTIONS,
  },
  serve: {
    usage: ['serve [OPTIONS]'],
    about: 'Starts the server.',
    details: [
      'It needs OPENHANDS_MASTER_KEY in the environment; with --generate-key it makes a key at first use, keeps it in the data directory, and listens on localhost (127.0.0.1 and ::1) by default. --scripted-model adds a stand-in for a model, to try the server without an account.',
    ],
    options: ['host', 'port', 'generate-key', 'scripted-model', 'stop-with-stdin', 'log-format'],
  },
  import: {
    usage: ['import --from DIRECTORY'],
    about: 'Copies the conversations of a data directory into the database of OPENHANDS_DATABASE_URL.',
    details: [
      'The server must be stopped, and the database empty. At the end both are compared; until then the files count. If it is interrupted, run it again.',
    ],
    options: ['from'],
  },
  export: {
    usage: ['export --to DIRECTORY'],
    about: 'Copies the conversations of the database of OPENHANDS_DATABASE_URL back into files.',
    details: [
      'The server must be stopped. The directory is the data directory of the server, or an empty one. At the end both are compared; until then the database counts. If it is interrupted, run it again.',
    ],
    options: ['to'],
  },
  acp: {
    usage: ['acp [--server URL] [OPTIONS]'],
    about: 'The agent of an editor, by the Agent Client Protocol (ACP) on stdin and stdout.',
    details: [
      'Editors such as Zed start it. Sessions are conversations: chat, -p and the API continue them. With --server the agents are those of that server, work on when the editor is closed, and --api-key or OPENHANDS_MASTER_KEY is its key.',
    ],
    options: ['server', 'set-up', ...EDITOR_OPTIONS, ...HOME_OPTIONS],
  },
  mcp: {
    usage: ['mcp [--server URL] [OPTIONS]'],
    about: 'Agents as tools of other agents, by the Model Context Protocol (MCP) on stdin and stdout.',
    details: [
      'Programs such as Claude Code and Codex start it. The tools start and continue agents, read what they did, decide about their calls, and stop them. With --server the agents are those of that server, and --api-key or OPENHANDS_MASTER_KEY is its key.',
    ],
    options: ['server', ...EDITOR_OPTIONS, ...HOME_OPTIONS],
  },
  snippet: {
    usage: ['snippet zed|claude|codex|openwebui|usechat|curl [--server URL]'],
    about: 'Prints what to paste into another program, to use agents there.',
    options: ['server'],
    words: SNIPPETS,
  },
  dashboard: {
    usage: ['dashboard [--server URL]'],
    about: 'Prints a link that logs a browser in to the dashboard, once, and opens it on a desktop.',
    details: ['Without --server it is that of the server on this machine. The link is valid for a minute.'],
    options: ['server', 'api-key'],
  },
  key: {
    usage: ['key'],
    about: 'Prints the master key that serve --generate-key uses here, for scripts.',
    options: [],
  },
  doctor: {
    usage: ['doctor [OPTIONS]'],
    about: 'Checks the model, its key, the sandbox, git, ripgrep and the port, with advice.',
    details: [
      'The key is tried with the list of models of the endpoint, which costs nothing. Exit codes: 0 agents can work; 1 they cannot; 2 wrong use.',
    ],
    options: ['settings', 'api-key', 'model', 'base-url'],
  },
  demo: {
    usage: ['demo'],
    about: 'Shows an agent doing a small real job. Needs no key and no network.',
    options: [],
  },
  'scripted-model': {
    usage: ['scripted-model [--port PORT] [SCRIPT.json]'],
    about: 'A stand-in for a model, to try the server or test a client without a key.',
    details: ["An OpenAI-compatible endpoint that plays a script, the demo's by default."],
    options: ['port'],
  },
  completion: {
    usage: ['completion bash|zsh|fish'],
    about: 'Prints the completion script of a shell.',
    details: [
      'bash: source <(agent-server completion bash), in ~/.bashrc.',
      'zsh: source <(agent-server completion zsh), in ~/.zshrc, after compinit.',
      'fish: agent-server completion fish > ~/.config/fish/completions/agent-server.fish',
    ],
    options: [],
    words: SHELLS,
  },
  help: {
    usage: ['help [COMMAND]'],
    about: 'Prints the help of a command.',
    options: [],
  },
} as const satisfies Record<string, CommandForm>

export type CommandName = keyof typeof COMMANDS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[]

export const commandNamed = (name: CommandName): CommandForm => COMMANDS[name]

export const isCommandName = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name)
