/** What of the server's environment a shell gets to see: an allow-list, so that no key of the server is ever in it. */
import { isAbsolute } from 'node:path'

const CERTIFICATES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']

const PASSED_ON = new Set(
  ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR'].concat(
    CERTIFICATES,
    ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ),
)

/** Nobody sits at a terminal: what would page, prompt or draw is told so. */
const UNATTENDED = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: '',
  GIT_TERMINAL_PROMPT: '0',
  DEBIAN_FRONTEND: 'noninteractive',
  PIP_NO_INPUT: '1',
}

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The environment a shell starts with. The server's own variables never pass, whichever way they come in. */
export function shellEnvironment(
  serverEnv: Readonly<Record<string, string | undefined>>,
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const passed = Object.entries(serverEnv).filter(([name]) => PASSED_ON.has(name) || name.startsWith('LC_'))
  const all = { PATH: DEFAULT_PATH, ...Object.fromEntries(passed), ...UNATTENDED, ...extra }
  const own = Object.entries(all).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !isServerVariable(entry[0]),
  )
  return Object.fromEntries(own)
}

/** The files that it names, without which programs fail. */
export function pathsNamedIn(env: Readonly<Record<string, string>>): string[] {
  return CERTIFICATES.flatMap((name) => env[name]?.split(':') ?? []).filter(isAbsolute)
}

function isServerVariable(name: string): boolean {
  return name.startsWith('OPENHANDS_') || name.startsWith('LLM_')
}
