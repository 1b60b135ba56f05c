/** All environment variables, with their descriptions and defaults. `config.ts` parses their values. */
import { PROTOCOL_NAMES } from '../protocols/protocol-routes.ts'

const MIB = 1024 * 1024

export type Variable = {
  readonly about: string
  readonly default?: string
  readonly secret?: true
  /** The variable is not read from a `.env`, which may belong to somebody else's project: it starts a program. */
  readonly isExecuted?: true
}

/** All variables. A `secret` one may also be set as `NAME_FILE`, the path of a file that contains it. */
export const VARIABLES = {
  OPENHANDS_MASTER_KEY: {
    about:
      'Bearer key of the API, at least 16 characters. Several, separated by commas, while keys change: each is accepted, the first encrypts.',
    secret: true,
  },
  OPENHANDS_SERVER_HOST: {
    about:
      'Address to listen on. `localhost` is 127.0.0.1 and ::1; `0.0.0.0` is every IPv4 address and ::1; `::` is every address.',
    default: '0.0.0.0',
  },
  OPENHANDS_SERVER_PORT: { about: 'Port to listen on; 0 takes a free one.', default: '8000' },
  OPENHANDS_LOG_LEVEL: { about: 'DEBUG, INFO, WARN, ERROR or CRITICAL.', default: 'INFO' },
  OPENHANDS_LOG_FORMAT: {
    about: '`json`, one object per line; `pretty`, for a person; `auto`, pretty on a terminal and JSON elsewhere.',
    default: 'auto',
  },
  OPENHANDS_DATA_DIR: {
    about: 'Where conversations are kept. Default: the user data directory of the operating system.',
  },
  OPENHANDS_DATABASE_URL: {
    about:
      'PostgreSQL database, version 14 or newer, that keeps conversations, keys and secrets instead of files: `postgresql://user:password@host:5432/name`. Default: none.',
    secret: true,
  },
  OPENHANDS_DATABASE_SESSION_URL: {
    about:
      'The same database without a pooler, if OPENHANDS_DATABASE_URL leads to PgBouncer in transaction mode. Default: none.',
    secret: true,
  },
  OPENHANDS_CLUSTER_LISTEN: {
    about:
      'Address and port for other instances of the same database, for example `10.0.0.5:8100`. Default: none; this server uses the database alone.',
  },
  OPENHANDS_ADVERTISE_URL: {
    about:
      'Where other instances reach that address, as `http://host:port`, with TLS as `https://host:port`. Default: the address itself.',
  },
  OPENHANDS_CLUSTER_PLAIN: {
    about: '`1` permits connections between instances without encryption on addresses that are not loopback.',
  },
  OPENHANDS_CLUSTER_TLS_CERT: {
    about: 'PEM file with the certificate of this instance for connections between instances. Default: no TLS.',
  },
  OPENHANDS_CLUSTER_TLS_KEY: { about: 'PEM file with the private key of that certificate.' },
  OPENHANDS_CLUSTER_TLS_CA: {
    about: 'PEM file with the certificate of the authority that signs the certificates of all instances.',
  },
  OPENHANDS_DATABASE_OUTAGE_SECONDS: {
    about: 'How long an outage of the database delays requests, in seconds, before they are refused with 503.',
    default: '30',
  },
  OPENHANDS_DRAIN_SECONDS: {
    about:
      'How long one of several instances that is stopped waits for the current steps of its agents, in seconds, before it hands their conversations over.',
    default: '30',
  },
  OPENHANDS_SHARED_DIR: {
    about:
      'Directory on a file system of all instances, for working directories, homes, shell state, outputs and undo history. Default: the data directory.',
  },
  OPENHANDS_WORKDIR_BASE: {
    about: 'Where working directories are made. Default: `work` in `OPENHANDS_SHARED_DIR` or the data directory.',
  },
  OPENHANDS_WORKDIR_ROOTS: {
    about:
      'Directories, separated by colons, that an absolute workdir must be inside. Default: any directory is accepted.',
  },
  OPENHANDS_USER_SETTINGS_DIR: {
    about:
      'Directory with settings, instructions, skills and slash commands for conversations with the setting source `user`; it is trusted. Default: none.',
  },
  OPENHANDS_SECRET_KEY: {
    about:
      'Encrypts secrets at rest. Several, separated by commas, while the key changes: the first encrypts. Default: derived from the master key.',
    secret: true,
  },
  OPENHANDS_ISOLATION: {
    about: 'How commands are isolated: `bubblewrap`, required; `auto`, bubblewrap where it works; or `none`.',
    default: 'auto',
  },
  OPENHANDS_LIMIT_MEMORY: {
    about:
      'Memory of all processes of one conversation together: bytes, also as `512M` or `8G`, a part of the machine such as `50%`, or `none`.',
    default: '50%',
  },
  OPENHANDS_LIMIT_PROCESSES: {
    about:
      'Processes and threads of one conversation at the same time, or `none`. At most half of those that the server may have.',
    default: '2048',
  },
  OPENHANDS_LIMIT_CPU: {
    about: 'Processor cores of one conversation, such as `1.5`, or `none`: it then yields to the server only.',
    default: 'none',
  },
  OPENHANDS_LIMIT_DISK: {
    about:
      'Workdir, outputs, home and temporary files of one conversation together: bytes, also as `512M` or `20G`, or `none`.',
    default: 'none',
  },
  OPENHANDS_NETWORK: {
    about:
      'What commands may reach in conversations without their own policy: `open`, `none`, or `allowlist:` and hosts, separated by commas. Default: `OPENHANDS_NETWORK_CEILING`.',
  },
  OPENHANDS_NETWORK_CEILING: {
    about: 'The most that any conversation may reach, in the same form; a conversation can only be stricter.',
    default: 'open',
  },
  OPENHANDS_NETWORK_PRIVATE_ALLOW: {
    about:
      'Addresses that are not public and that the network proxy may connect to, separated by commas: `address`, `network/bits`, or `name=address`, each with `:port`.',
  },
  OPENHANDS_SANDBOX_READABLE: {
    about:
      'Files and directories, separated by colons, that sandboxed commands can read in addition to those of the operating system; all others are invisible then. `/usr` adds nothing. Default: all files of the host that are not hidden.',
  },
  OPENHANDS_PUBLIC_URL: {
    about:
      'Where browsers of users reach this server, for example behind a proxy: they are sent back there after they have authorized an MCP server. Cards of A2A have it, too. Default: `http://127.0.0.1` with the port.',
  },
  OPENHANDS_CORS_ORIGINS: {
    about:
      'Origins, separated by commas, whose pages may call the API from a browser; `*` is any. Default: only the page of this server.',
  },
  OPENHANDS_TRUST_PROXY: {
    about:
      'Addresses and networks of proxies, separated by commas, whose `X-Forwarded-For` tells a client’s address, and `X-Forwarded-Proto` whether it uses https. Default: nobody’s is believed.',
  },
  OPENHANDS_INSECURE_LOGIN: {
    about:
      '`true` accepts logins over plain http from other machines too. Everybody on the network can then read keys and use logins.',
    default: 'false',
  },
  OPENHANDS_SEARCH: {
    about: '`false` turns `GET /search` off, which keeps an index of the words of all conversations.',
    default: 'true',
  },
  OPENHANDS_PROTOCOLS: {
    about:
      'The protocols that clients may speak besides the API, separated by commas; also `a2a`. `none` turns all of them off.',
    default: PROTOCOL_NAMES.filter((name) => name !== 'a2a').join(',') || 'none',
  },
  OPENHANDS_ALLOW_PLAIN_MODELS: {
    about:
      'Whether clients of OpenAI may name models of LLM_BASE_URL instead of profiles. They have no tools of the server.',
    default: 'false',
  },
  OPENHANDS_MAX_CONCURRENT_RUNS: {
    about: 'Runs that work at the same time, over all conversations; further ones wait for their turn.',
    default: '256',
  },
  OPENHANDS_IDLE_SECONDS: {
    about:
      'Seconds after which a conversation that nobody uses and that does nothing is closed, so that it takes no memory; the next request opens it again. Sooner while memory is short.',
    default: '600',
  },
  OPENHANDS_SNAPSHOT_DAYS: {
    about: 'Days for which the snapshots of a conversation are kept. Those of its last run stay.',
    default: '30',
  },
  OPENHANDS_SNAPSHOT_BYTES: {
    about:
      'Size of the snapshots of a conversation above which the oldest are removed, bytes. Those of its last run stay.',
    default: String(1024 * MIB),
  },
  OPENHANDS_MAX_STREAMS_PER_CONVERSATION: {
    about: 'Streams that may be open on one conversation at the same time.',
    default: '500',
  },
  OPENHANDS_MAX_FIREHOSE_STREAMS: {
    about: 'Streams that may be open on the firehose at the same time, sockets among them.',
    default: '100',
  },
  OPENHANDS_MAX_BODY_BYTES: { about: 'Largest request body, bytes.', default: String(8 * MIB) },
  OPENHANDS_MAX_UPLOAD_BYTES: {
    about: 'Largest file, or set of files, that one request may bring, bytes.',
    default: String(1024 * MIB),
  },
  OPENHANDS_MAX_OUTPUT_BYTES: {
    about: 'How much of a command’s output a result keeps, bytes per stream; the whole goes to a file.',
    default: '30000',
  },
  OPENHANDS_STREAM_BUFFER_BYTES: {
    about: 'What a slow stream reader may be behind before it is cut off, bytes.',
    default: String(8 * MIB),
  },
  OPENHANDS_LOG_LLM_PAYLOADS: {
    about: '`true` logs each request to a model and what was understood of its answer, with secret values taken out.',
    default: 'false',
  },
  OPENHANDS_CALLBACK_ALLOW: {
    about:
      'Addresses, CIDR ranges and host names, separated by commas, that callbacks may reach though they are not public.',
  },
  OPENHANDS_MCP_ALLOW: {
    about:
      'Addresses, CIDR ranges and host names, separated by commas, that MCP servers with a URL may have though they are not public.',
  },
  OPENHANDS_LLM_ALLOW: {
    about:
      'Where model requests may go, separated by commas: origins such as `https://api.openai.com`, wildcard hosts such as `*.example.org`, and `public` for every public address. Default: anywhere.',
  },
  OPENHANDS_MODEL_CATALOG: {
    about:
      'File with context windows and prices of models, in the form of models.dev or LiteLLM, at most 8 MiB. It takes precedence over what the server knows by itself. Default: none.',
  },
  LLM_MODEL: { about: 'Model of conversations without llm_config.' },
  LLM_API_KEY: {
    about:
      'Key for LLM_BASE_URL; it is never sent anywhere else. Default: the variable of the vendor of LLM_MODEL, such as `ANTHROPIC_API_KEY`.',
    secret: true,
  },
  LLM_API_KEY_COMMAND: {
    about:
      'Prints the key for LLM_BASE_URL, instead of LLM_API_KEY: a JSON array with a program and its arguments. Not read from `.env`.',
    isExecuted: true,
  },
  TAVILY_API_KEY: {
    about: 'Key of Tavily, which the tool `WebSearch` asks. Default: there is no such tool.',
    secret: true,
  },
  TAVILY_BASE_URL: { about: 'Where Tavily is. Default: `https://api.tavily.com`.' },
  LLM_BASE_URL: {
    about: 'Endpoint that goes with LLM_MODEL. Default: that of its vendor, by its prefix or name.',
  },
  LLM_PROVIDER: {
    about: 'API of LLM_BASE_URL: `openai`, `openai_responses` or `anthropic`. Default: by URL and model.',
  },
} as const satisfies Record<string, Variable>

export type Name = keyof typeof VARIABLES

/** Settings by their variables, which take precedence over the environment. */
export type ServerSettings = Readonly<Partial<Record<Name, string>>>
